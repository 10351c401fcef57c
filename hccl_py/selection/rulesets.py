"""Rulesets: HCCL's selection as of one release, with its tables and its sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from hccl_py.call.config import Config
from hccl_py.call.ops import OPS
from hccl_py.selection.levels import LevelRules
from hccl_py.selection.rules import DecisionTable, Rule, refuse, unknown
from hccl_py.selection.tables import HCCL_170DDEE, cann_2025_07, cann_2026_08


@dataclass(frozen=True)
class Ruleset:
    """The tables of one release, and their source: a commit of a repository, and the folder in it
    that rows name files of.

    `has_rules`: its tables are known, and not its cost table alone. `orders` are the words of
    HCCL_DETERMINISTIC that its sums know; `unfolds_a2`: the AI CPU of 910B makes tasks where it is
    asked to; `tags_by_level`: tags of ops with a root name the level of halving-doubling.
    """

    name: str
    repository: str
    commit: str
    date: str
    folder: str
    levels: LevelRules
    tables: Mapping[str, DecisionTable]
    orders: tuple[str, ...] = ("false", "true", "strict")
    unfolds_a2: bool = False
    tags_by_level: bool = False
    has_rules: bool = True

    def rows(self, device: str, op: str) -> tuple[Rule, ...]:
        """Return the rows of an op; a refusal where a device does not have it."""
        if device not in self.tables:
            known = ", ".join(self.tables)
            return (unknown(f"{self.name} has no table of {device}, but of {known}"),)
        return self.tables[device].get(op, (refuse(f"its selection has no {op} on {device}"),))

    def source_of(self, rule: Rule) -> str:
        """Return `repository@commit:file:lines` of a row; empty where no line says it. Rows of
        another repository than the ruleset's have all of that themselves.
        """
        if not rule.source or "@" in rule.source:
            return rule.source
        return f"{self.repository}@{self.commit}:{self.folder}/{rule.source}"


_UNREAD = unknown(
    f"of {HCCL_170DDEE} hccl-py knows the cost table on AICPU_TS of all_gather(_v), all_reduce, "
    "all_to_all, broadcast, reduce, reduce_scatter(_v) and scatter, with HCCL_USE_NEW_SELECTOR=1, "
    "no HCCL_ALGO, and equal meshes of up to 8 ranks on one level or two"
)

RULESETS = MappingProxyType(
    {
        found.name: found
        for found in (
            Ruleset(
                name="cann-2025.07",
                repository="yzh1703456/cann-hccl",
                commit="9aeddc0",
                date="July 2025",
                folder="src/domain/collective_communication",
                levels=cann_2025_07.LEVELS,
                tables=cann_2025_07.TABLES,
                orders=("false", "true"),
            ),
            Ruleset(
                name="cann-2026.08",
                repository="libochao-huawei/hcomm",
                commit="8958adb",
                date="August 2026",
                folder="src/legacy/ascend910",
                levels=cann_2026_08.LEVELS,
                tables=cann_2026_08.TABLES,
                unfolds_a2=True,
                tags_by_level=True,
            ),
            Ruleset(
                name=HCCL_170DDEE,
                repository="zstar1003/hccl-hcomm-annotated",
                commit="efbe1cd",
                date="hccl 170ddeec, after August 2026: part of its cost table",
                folder="hccl/src/ops",
                levels=cann_2026_08.LEVELS,
                tables=MappingProxyType({"950": dict.fromkeys(OPS, (_UNREAD,))}),
                has_rules=False,
            ),
        )
    }
)
"""The rulesets by name, in the order of their releases."""


def ruleset_of(config: Config) -> Ruleset:
    """Return the ruleset that the settings name."""
    return RULESETS[config.ruleset]
