"""What HCCL takes for one call, whatever is offered here: the row of a ruleset that decides."""

from __future__ import annotations

from hccl_py.call.algo import names_others
from hccl_py.call.config import Config
from hccl_py.call.op_param import OpParam
from hccl_py.errors import HcclResult
from hccl_py.selection.ascend950 import refusal_of
from hccl_py.selection.gathering import gather_facts
from hccl_py.selection.rules import Rule, refuse
from hccl_py.selection.rulesets import ruleset_of
from hccl_py.topology.topology import Topology


class HcclChoice:
    """One call under the ruleset of the settings: its facts, the rows of its op, and `row`, the
    first that holds.
    """

    def __init__(self, op: OpParam, topology: Topology, config: Config) -> None:
        self.ruleset, self._algo = ruleset_of(config), config.algo
        self.facts = gather_facts(op, topology, config)
        self.rows = self._rows(config)
        self.row = next(row for row in self.rows if row.holds(self.facts))

    def _rows(self, config: Config) -> tuple[Rule, ...]:
        device, op = self.facts.shape.device, self.facts.op.name
        if device == "950":
            return (refuse(refusal_of(op, config)),)
        return self.ruleset.rows(device, op)

    @property
    def executor(self) -> str | None:
        """The executor that HCCL takes; None where it refuses the call."""
        return None if self.refusal[0] else self.row.executor

    @property
    def levels(self) -> dict[str, str]:
        """What HCCL runs on each level; rows may take another word than the op's."""
        found = self.facts.levels
        levels = {"level0": self.row.level0_of(found), "level1": self.row.level1_of(found)}
        return levels | ({"level2": found.level2} if found.level2 else {})

    @property
    def words(self) -> dict[str, str]:
        """HCCL's words for levels that an executor leaves open: on level0 what HCCL_ALGO says where
        executors look at it, as what joins the devices of a server is no choice.
        """
        return self.levels | {"level0": "pairwise" if self.facts.pairwise_inside else ""}

    @property
    def refusal(self) -> tuple[str, HcclResult]:
        """Why HCCL refuses the call, and with what; empty where it does not."""
        if names_others(self._algo):
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
        """Where in HCCL's sources the row is; empty where no line says it."""
        return self.ruleset.source_of(self.row)
