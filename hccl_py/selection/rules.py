"""Rows of decision tables: conditions, and an executor or a refusal; the first row that holds wins.

Rows name HCCL's executors, whether they are offered here or not, or say that HCCL refuses the call,
and the lines of HCCL's source that they come from.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from hccl_py.errors import HcclResult

if TYPE_CHECKING:
    from hccl_py.selection.facts import Facts
    from hccl_py.selection.levels import Levels

Cell = tuple[str, str, Any]

_RELATIONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
    "in": lambda value, choices: value in choices,
    "not in": lambda value, choices: value not in choices,
}

_BOUNDS = {
    "!=": "is not",
    "<=": "is at most",
    ">=": "is at least",
    "<": "is less than",
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
        product: int | Fraction = self.factor * getattr(facts, self.fact)
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
        """Return True if the facts satisfy the condition."""
        value = self.value.of(facts) if isinstance(self.value, Multiple) else self.value
        return _RELATIONS[self.relation](getattr(facts, self.fact), value)

    def format_condition(self, facts: Facts) -> str:
        """Return the reason why it holds, or the value that it needs."""
        actual = _format(getattr(facts, self.fact))
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
    """One row: an executor and when it is taken; `source` is its file and lines in HCCL.

    Without an executor HCCL refuses such calls with `result`, for the reason `refusal`. Where the
    algorithm between servers is none of `keeps`, the row takes `level1`; inside servers it takes
    `level0`, if it has one. HCCL decides `early` rows before the op chooses the algorithm between
    servers.

    Rows of an Ascend 950 are those of an `engine`; one with `leaves`, a reason, hands the call to
    the engine that comes next. With `unknown`, a reason, hccl-py does not know HCCL's choice.
    """

    executor: str | None
    when: tuple[Condition, ...]
    source: str = ""
    keeps: tuple[str, ...] | None = None
    level0: str = ""
    level1: str = ""
    early: bool = False
    refusal: str = ""
    result: HcclResult | None = None
    engine: str = ""
    leaves: str = ""
    unknown: str = ""

    def missing(self, facts: Facts) -> str:
        """Return the first condition that does not hold, in words; empty when all do."""
        return next((c.format_condition(facts) for c in self.when if not c.holds(facts)), "")

    def distance(self, facts: Facts) -> int:
        """Return the number of conditions that do not hold."""
        return sum(not condition.holds(facts) for condition in self.when)

    def holds(self, facts: Facts) -> bool:
        """Return True if all conditions hold."""
        return all(condition.holds(facts) for condition in self.when)

    def level0_of(self, levels: Levels) -> str:
        """Return the algorithm inside servers that HCCL takes with this row."""
        return self.level0 or levels.level0

    def level1_of(self, levels: Levels) -> str:
        """Return the algorithm between servers that HCCL takes with this row."""
        found = levels.early if self.early else levels.level1
        return found if self.keeps is None or found in self.keeps else self.level1


DecisionTable: TypeAlias = Mapping[str, tuple[Rule, ...]]
"""The rows of a device, by op."""


@dataclass(frozen=True)
class Cost:
    """The seconds of an executor by HCCL's table."""

    executor: str
    engine: str
    seconds: float


@dataclass(frozen=True)
class Decision:
    """The rows that were asked, the one that decided, and the reasons of engines that left the call
    to the next; `costs` are those of the executors that HCCL compared.
    """

    rows: tuple[Rule, ...]
    row: Rule
    left: tuple[str, ...] = ()
    costs: tuple[Cost, ...] = ()


class Tables(Mapping[str, DecisionTable]):
    """Tables by device, in this order; each is read when it is first asked for."""

    def __init__(self, readers: Mapping[str, Callable[[], DecisionTable]]) -> None:
        self._readers = {device: cache(reader) for device, reader in readers.items()}

    def __getitem__(self, device: str) -> DecisionTable:
        return self._readers[device]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._readers)

    def __len__(self) -> int:
        return len(self._readers)


@dataclass(frozen=True)
class OperatorFile:
    """A file of HCCL's source; `at` are the first and the last line of a row, like `120-131`.
    `engine` is that of its rows, where it has several.
    """

    path: str
    engine: str = ""

    def take(
        self,
        executor: str,
        at: str,
        *when: Cell,
        level0: str = "",
        level1: str = "",
        keeps: tuple[str, ...] = (),
        early: bool = False,
    ) -> Rule:
        """Return a row that takes an executor, and `level1` for algorithms not in `keeps`."""
        kept = keeps if level1 else None
        source = f"{self.path}:{at}"
        row = Rule(executor, conditions(when), source, kept, level0, level1, early)
        return replace(row, engine=self.engine)

    def leave(self, reason: str, at: str, *when: Cell) -> Rule:
        """Return a row for calls that its engine leaves to the next one."""
        source = f"{self.path}:{at}"
        return Rule(None, conditions(when), source, engine=self.engine, leaves=reason)

    def refuse(
        self, refusal: str, at: str, *when: Cell, result: HcclResult = HcclResult.E_NOT_SUPPORT
    ) -> Rule:
        """Return a row for calls that HCCL does not support."""
        source = f"{self.path}:{at}"
        return Rule(None, conditions(when), source, refusal=refusal, result=result)


def refuse(refusal: str, *when: Cell) -> Rule:
    """Return a row for calls that HCCL does not support, without a line of its source."""
    return Rule(None, conditions(when), refusal=refusal, result=HcclResult.E_NOT_SUPPORT)


def unknown(reason: str) -> Rule:
    """Return a row for calls whose choice by HCCL is not known here."""
    return Rule(None, (), unknown=reason)


def conditions(cells: tuple[Cell, ...]) -> tuple[Condition, ...]:
    """Return the conditions that cells spell."""
    return tuple(Condition(*cell) for cell in cells)


def _format(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
