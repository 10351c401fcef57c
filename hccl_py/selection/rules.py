"""HCCL's decision tables, row by row; the first row whose conditions all hold names the executor.

A condition is (fact, relation, value). Rows name HCCL's executors, whether they are offered here or
not.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hccl_py.selection.facts import KIB, MIB, Facts

__all__ = ["RULES", "RULESET", "Condition", "Rule"]

RULESET = "classic-910B/1"

_RELATIONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    ">": operator.gt,
}

_WORDS = {"==": "is", "!=": "is not", "<=": "is at most", ">=": "is at least", ">": "is more than"}


@dataclass(frozen=True)
class Condition:
    """One cell of a decision table."""

    fact: str
    relation: str
    value: Any

    def holds(self, facts: Facts) -> bool:
        """Whether the facts satisfy it."""
        return _RELATIONS[self.relation](facts.get(self.fact), self.value)

    def spell(self, facts: Facts) -> str:
        """Return why it holds, or what it would need."""
        actual = facts.get(self.fact)
        if self.holds(facts):
            bound = f" ({_WORDS[self.relation]} {self.value})" if self.relation != "==" else ""
            return f"{self.fact} is {_spell(actual)}{bound}"
        return f"needs {self.fact} {self.relation} {_spell(self.value)}, it is {_spell(actual)}"


@dataclass(frozen=True)
class Rule:
    """One row: an executor and when it is taken."""

    executor: str
    when: tuple[Condition, ...]

    def missing(self, facts: Facts) -> str:
        """Return the first condition that does not hold, in words; empty when all do."""
        return next((c.spell(facts) for c in self.when if not c.holds(facts)), "")


def _spell(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _rule(executor: str, *when: tuple[str, str, Any]) -> Rule:
    return Rule(executor, tuple(Condition(*condition) for condition in when))


_SINGLE = ("ranks", "==", 1)
_MESH = ("level0", "==", "mesh")
_OP_BASE = ("mode", "==", "op_base")
_GRAPH = ("mode", "==", "graph")
_ONE_SERVER = ("servers", "==", 1)
_MORE_SERVERS = ("servers", ">", 1)
_PIPELINE = ("level1", "==", "pipeline")
_FREE_ORDER = ("deterministic", "==", False)
_FIXED_ORDER = ("deterministic", "==", True)
_INLINE = ("inline", "==", True)
_PAIR = ("devices", "<=", 2)
_MANY = ("devices", ">", 2)

RULES: dict[tuple[str, str], tuple[Rule, ...]] = {
    ("910B", "all_gather"): (
        _rule("AllGatherSingleExecutor", _SINGLE),
        _rule("AllGatherMeshOpbaseExecutor", _MESH, _OP_BASE, _ONE_SERVER),
        _rule("AllGatherMeshOpbasePipelineExecutor", _MESH, _OP_BASE, _MORE_SERVERS, _PIPELINE),
        _rule("AllGatherMeshGraphExecutor", _MESH, _GRAPH, ("bytes", "<=", MIB)),
        _rule("AllGatherMeshExecutor", _MESH),
        _rule("AllGatherRingExecutor", ("level0", "==", "ring")),
        _rule("AllGatherComm"),
    ),
    ("910B", "all_reduce"): (
        _rule("AllReduceSingleExecutor", _SINGLE),
        _rule(
            "AllReduceMeshOpbasePipelineExecutor",
            _MESH,
            _MORE_SERVERS,
            _PIPELINE,
            _OP_BASE,
            _FREE_ORDER,
            _INLINE,
        ),
        _rule(
            "AllReduceMeshSmallCountExecutor",
            _PAIR,
            _MESH,
            _ONE_SERVER,
            _INLINE,
            _OP_BASE,
            ("bytes", "<=", 256 * KIB),
        ),
        _rule("AllReduceMeshOpbaseLoopExecutor", _PAIR, _MESH, _ONE_SERVER, _INLINE, _OP_BASE),
        _rule(
            "AllReduceMeshSmallCountExecutor",
            _PAIR,
            _MESH,
            _ONE_SERVER,
            _GRAPH,
            ("bytes", "<=", 64 * KIB),
        ),
        _rule(
            "AllReduceMeshSmallCountExecutor",
            _MANY,
            _MESH,
            _ONE_SERVER,
            _FREE_ORDER,
            _OP_BASE,
            ("bytes", "<=", 256 * KIB),
        ),
        _rule("AllReduceMeshOpbaseLoopExecutor", _MANY, _MESH, _ONE_SERVER, _FREE_ORDER, _OP_BASE),
        _rule(
            "AllReduceMeshSmallCountExecutor",
            _MANY,
            _MESH,
            _ONE_SERVER,
            _FIXED_ORDER,
            _GRAPH,
            ("bytes", "<=", 64 * KIB),
        ),
        _rule(
            "AllReduceMeshSmallCountExecutor",
            _MANY,
            _MESH,
            _ONE_SERVER,
            _FIXED_ORDER,
            _OP_BASE,
            ("bytes", "<=", 128 * KIB),
        ),
        _rule(
            "AllReduceMeshMidCountLoopExecutor",
            _MANY,
            _MESH,
            _ONE_SERVER,
            _FIXED_ORDER,
            _GRAPH,
            ("devices", "==", 8),
            ("bytes", "<=", 4 * MIB),
        ),
        _rule(
            "AllReduceMeshMidCountLoopExecutor",
            _MANY,
            _MESH,
            _ONE_SERVER,
            _FIXED_ORDER,
            _OP_BASE,
            ("devices", "==", 8),
        ),
        _rule("AllReduceMeshOneshotLoopExecutor", _MANY, _MESH, _ONE_SERVER, _FIXED_ORDER),
        _rule("AllReduceMeshExecutor", _MESH),
        _rule("AllReduceRingExecutor", ("level0", "==", "ring")),
        _rule("AllReduceComm"),
    ),
}
