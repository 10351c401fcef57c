"""What a decision table is made of: rows of conditions; the first row that holds decides.

Rows name HCCL's executors, whether they are offered here or not, or say that HCCL refuses the call.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hccl_py.errors import HcclResult
from hccl_py.op_param import OpParam
from hccl_py.selection.facts import Facts

__all__ = ["Condition", "DecisionTable", "Multiple", "Rule", "refuse", "rule"]

_RELATIONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    ">": operator.gt,
    "in": lambda value, choices: value in choices,
    "not in": lambda value, choices: value not in choices,
}

_BOUNDS = {
    "!=": "is not",
    "<=": "is at most",
    ">=": "is at least",
    ">": "is more than",
    "not in": "is none of",
}

_NEEDS = {"==": "", "in": "one of ", "!=": "other than ", "not in": "none of "}


@dataclass(frozen=True)
class Multiple:
    """A bound that is a multiple of another fact, such as 256 KB x ranks."""

    factor: int | Fraction
    fact: str

    def of(self, facts: Facts) -> int | Fraction:
        """Return the bound for a call."""
        product: int | Fraction = self.factor * facts.get(self.fact)
        return product

    def __str__(self) -> str:
        return f"{self.factor} x {self.fact}"


@dataclass(frozen=True)
class Condition:
    """One cell of a decision table."""

    fact: str
    relation: str
    value: Any

    def holds(self, facts: Facts) -> bool:
        """Whether the facts satisfy it."""
        value = self.value.of(facts) if isinstance(self.value, Multiple) else self.value
        return _RELATIONS[self.relation](facts.get(self.fact), value)

    def format_condition(self, facts: Facts) -> str:
        """Return why it holds, or what it would need."""
        actual = _format(facts.get(self.fact))
        if not self.holds(facts):
            needs = _NEEDS.get(self.relation, f"{self.relation} ")
            return f"needs {self.fact} {needs}{self._bound(facts)}, it is {actual}"
        if self.relation not in _BOUNDS:
            return f"{self.fact} is {actual}"
        return f"{self.fact} is {actual} ({_BOUNDS[self.relation]} {self._bound(facts)})"

    def _bound(self, facts: Facts) -> str:
        if isinstance(self.value, Multiple):
            return f"{self.value} = {int(self.value.of(facts))}"
        return _format(self.value)


@dataclass(frozen=True)
class Rule:
    """One row: an executor and when it is taken. `level1` is what the row forces between servers.

    Without an executor HCCL refuses such calls with `result`, for the reason `refusal`.
    """

    executor: str | None
    when: tuple[Condition, ...]
    level1: str = ""
    refusal: str = ""
    result: HcclResult | None = None

    def missing(self, facts: Facts) -> str:
        """Return the first condition that does not hold, in words; empty when all do."""
        return next((c.format_condition(facts) for c in self.when if not c.holds(facts)), "")

    def distance(self, facts: Facts) -> int:
        """Return how many conditions do not hold."""
        return sum(not condition.holds(facts) for condition in self.when)


@dataclass(frozen=True)
class DecisionTable:
    """The rows of a device by op; `ruleset` names their version."""

    ruleset: str
    rows: Mapping[str, tuple[Rule, ...]]

    def of(self, op: OpParam) -> tuple[Rule, ...]:
        """Return the rows of an op; none where the device does not have it."""
        return self.rows.get(op.name, ())


def rule(executor: str, *when: tuple[str, str, Any], level1: str = "") -> Rule:
    """Return a row that takes an executor."""
    return Rule(executor, tuple(Condition(*condition) for condition in when), level1)


def refuse(refusal: str, *when: tuple[str, str, Any]) -> Rule:
    """Return a row for what HCCL does not support."""
    conditions = tuple(Condition(*condition) for condition in when)
    return Rule(None, conditions, refusal=refusal, result=HcclResult.E_NOT_SUPPORT)


def _format(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
