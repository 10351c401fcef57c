"""HCCL's own choice for one call, offered here or not: the row of a ruleset that decides."""

from __future__ import annotations

from hccl_py.call.algo import names_others
from hccl_py.call.config import Config
from hccl_py.call.op_param import OpParam
from hccl_py.errors import HcclResult
from hccl_py.selection.ascend950 import refusal_of
from hccl_py.selection.gathering import gather_facts
from hccl_py.selection.rules import Rule, refuse
from hccl_py.selection.rulesets import ruleset_of
from hccl_py.selection.shape import WHOLE_RING
from hccl_py.topology.topology import Topology


class HcclChoice:
    """One call under the ruleset of the settings: its facts, the rows of its op, and `row`, the
    first that holds.
    """

    def __init__(self, op: OpParam, topology: Topology, config: Config) -> None:
        self.op, self.config, self.ruleset = op, config, ruleset_of(config)
        self.facts = gather_facts(op, topology, config)
        self.rows = self._rows(config)
        self.row = next(row for row in self.rows if row.holds(self.facts))

    def _rows(self, config: Config) -> tuple[Rule, ...]:
        device, op = self.facts.device, self.facts.op.name
        if device == "950":
            return (refuse(refusal_of(op, config)),)
        return self.ruleset.rows(device, op)

    @property
    def executor(self) -> str | None:
        """The executor that HCCL takes; None where it refuses the call."""
        return None if self.refusal[0] else self.row.executor

    @property
    def levels(self) -> dict[str, str]:
        """HCCL's algorithm on each level; a row may take another one than the op."""
        found = self.facts.levels
        levels = {"level0": self.row.level0_of(found), "level1": self.row.level1_of(found)}
        return levels | ({"level2": found.level2} if found.level2 else {})

    @property
    def why_levels(self) -> dict[str, str]:
        """The reason for HCCL's algorithm on each level."""
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

    @property
    def refusal(self) -> tuple[str, HcclResult]:
        """HCCL's reason for refusing the call, and its result; an empty reason if it does not."""
        if names_others(self.config.algo):
            text = "HCCL_ALGO's others= is read, and then taken for an op that it does not know"
            return text, HcclResult.E_PARA
        if self.facts.levels.refusal:
            return self.facts.levels.refusal, HcclResult.E_PARA
        order = self.facts.deterministic
        if self.facts.op.reduce is not None and order not in self.ruleset.orders:
            return f"{self.ruleset.name} knows no {order} order of sums", HcclResult.E_PARA
        return self.row.refusal, self.row.result or HcclResult.SUCCESS

    @property
    def source(self) -> str:
        """The row's place in HCCL's sources; empty for a row without one."""
        return self.ruleset.source_of(self.row)
