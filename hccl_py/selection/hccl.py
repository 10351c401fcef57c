"""HCCL's own choice for one call, offered here or not: the row of a ruleset that decides."""

from __future__ import annotations

from functools import cached_property

from hccl_py.call.algo import names_others
from hccl_py.call.config import Config
from hccl_py.call.op_param import OpParam
from hccl_py.errors import HcclResult
from hccl_py.selection.facts_950 import Facts950
from hccl_py.selection.gathering import gather_facts
from hccl_py.selection.rules import Decision, Rule
from hccl_py.selection.rulesets import ruleset_of
from hccl_py.selection.shape import WHOLE_RING
from hccl_py.topology.topology import Topology


class HcclChoice:
    """One call under the ruleset of the settings: its facts, the rows of its op, and `row`, the
    first that holds; on an Ascend 950 by engine, or by cost.
    """

    def __init__(self, op: OpParam, topology: Topology, config: Config) -> None:
        self.op, self.config, self.ruleset = op, config, ruleset_of(config)
        self.facts = gather_facts(op, topology, config)
        name = op.name if isinstance(self.facts, Facts950) else self.facts.op.name
        rows = self.ruleset.rows(self.facts.device, name)
        self.decision = self._decide(rows)
        self.rows, self.row = self.decision.rows, self.decision.row

    def _decide(self, rows: tuple[Rule, ...]) -> Decision:
        if isinstance(self.facts, Facts950) and self.facts.device in self.ruleset.tables:
            from hccl_py.selection.engines_950 import decide  # its tables are for this device alone

            return decide(self.op, rows, self.facts, self.config)
        return Decision(rows, next(row for row in rows if row.holds(self.facts)))

    @property
    def executor(self) -> str | None:
        """The executor that HCCL takes; None where it refuses the call, or is not known to."""
        return None if self.refusal[0] else self.row.executor

    @property
    def levels(self) -> dict[str, str]:
        """HCCL's algorithm on each level; a row may take another one than the op. Names of an
        Ascend 950's executors say it all.
        """
        if isinstance(self.facts, Facts950):
            return {}
        found = self.facts.levels
        levels = {"level0": self.row.level0_of(found), "level1": self.row.level1_of(found)}
        return levels | ({"level2": found.level2} if found.level2 else {})

    @property
    def why_levels(self) -> dict[str, str]:
        """The reason for HCCL's algorithm on each level."""
        if isinstance(self.facts, Facts950):
            return {}
        facts, found = self.facts, self.facts.levels
        level0, level1 = self.row.level0_of(found), self.row.level1_of(found)
        inside = (
            f"the links of {facts.devices} devices in a server, which HCCL_ALGO does not change"
        )
        if found.level0 in ("null", WHOLE_RING):
            inside = "HCCL_ALGO asks for it" if found.level0 == "null" else found.why1
        why0 = inside if level0 == found.level0 else f"the row of the table takes {level0}"
        why1 = found.why1
        if level1 not in (found.level1, found.early):
            others = ", ".join(self.row.keeps or ())
            kept = f" in place of all but {others}" if others else ""
            why1 = f"the row of the table takes {level1}{kept}"
        why = {"level0": why0, "level1": why1}
        return why | ({"level2": found.why2} if found.level2 else {})

    @property
    def algorithm_names(self) -> dict[str, str]:
        """HCCL's algorithms for levels that an executor leaves open. On level0 that is HCCL_ALGO's
        word where executors look at it: the links inside a server are no choice.
        """
        return self.levels | {"level0": "pairwise" if self.facts.pairwise_inside else ""}

    @cached_property
    def refusal(self) -> tuple[str, HcclResult]:
        """HCCL's reason for refusing the call, and its result; an empty reason if it does not."""
        if isinstance(self.facts, Facts950):
            return self.row.refusal, self.row.result or HcclResult.SUCCESS
        if names_others(self.config.algo):
            text = "HCCL_ALGO's others= is read, and then taken for an op that it does not know"
            return text, HcclResult.E_PARA
        if self.facts.levels.refusal:
            return self.facts.levels.refusal, HcclResult.E_PARA
        if self.facts.bad_module:
            devices = self.facts.server_devices[0]
            text = f"a server of 910A has 1, 2, 4 or 8 devices, not {devices}"
            return text, HcclResult.E_PARA
        order = self.facts.deterministic
        if self.facts.op.reduce is not None and order not in self.ruleset.orders:
            return f"{self.ruleset.name} knows no {order} order of sums", HcclResult.E_PARA
        return self.row.refusal, self.row.result or HcclResult.SUCCESS

    @property
    def level1(self) -> str:
        """HCCL's algorithm between servers, or the one that it would have on other devices."""
        return self.levels.get("level1", self.facts.level1)

    @property
    def unknown(self) -> str:
        """The reason why hccl-py does not know HCCL's choice; empty where it does."""
        return self.row.unknown

    @property
    def source(self) -> str:
        """The row's place in HCCL's sources; empty for a row without one."""
        return self.ruleset.source_of(self.row)
