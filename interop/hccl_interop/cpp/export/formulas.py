"""Formulas of C++: numbers, variables, operators, and tables where no formula was found.

A formula is a tree of values; `text_of` writes it once the names of tables and counters are known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from hccl_py.values import IntArray

_LEVELS = {
    "*": 9,
    "/": 9,
    "%": 9,
    "+": 8,
    "-": 8,
    "<<": 7,
    ">>": 7,
    "<": 6,
    ">=": 6,
    "==": 5,
    "^": 3,
}
"""The precedence of operators in C++."""

_CLEAR = {"+", "-", "*", "/", "%"}
"""Operators that need no brackets among each other; others have them always."""

_COMPARES = {"<", ">=", "=="}

_WORD, _CHOICE = 12, 1

BOUND, SUMMAND, FACTOR = _LEVELS["<<"], _LEVELS["+"], _WORD
"""Least precedences: of what a counter is less than, of a summand, and of one word."""


@dataclass(frozen=True)
class Number:
    """A number."""

    value: int


@dataclass(frozen=True)
class Variable:
    """`rank`, `server`, `device`, their numbers (`ranks`, ...), or the counter of the k-th loop,
    counted from the outermost: `loop0`.
    """

    name: str


@dataclass(frozen=True)
class Binary:
    """Two formulas and an operator of C++."""

    operator: str
    left: Formula
    right: Formula


@dataclass(frozen=True)
class Either:
    """One of two formulas."""

    condition: Formula
    yes: Formula
    no: Formula


@dataclass(frozen=True)
class Table:
    """Numbers by one index or more, the last one first to change; `shape` has its lengths."""

    values: tuple[int, ...]
    shape: tuple[int, ...]
    indices: tuple[Formula, ...]


Formula: TypeAlias = Number | Variable | Binary | Either | Table

RANK, SERVER, DEVICE = Variable("rank"), Variable("server"), Variable("device")
RANKS, SERVERS, DEVICES = Variable("ranks"), Variable("servers"), Variable("devices")


@dataclass(frozen=True)
class Spelling:
    """The names of variables and tables, the text of numbers, and formulas that have a name."""

    variables: Mapping[str, str]
    table: Callable[[Table], str]
    number: Callable[[int], str] = str
    named: Mapping[Formula, str] = field(default_factory=dict)


def plus(left: Formula, right: Formula) -> Formula:
    """Return the sum; a number below zero is subtracted."""
    if right == Number(0):
        return left
    if isinstance(left, Number) and isinstance(right, Number):
        return Number(left.value + right.value)
    if isinstance(right, Number) and isinstance(left, Binary) and isinstance(left.right, Number):
        before = {"+": left.right.value, "-": -left.right.value}.get(left.operator)
        if before is not None:
            return plus(left.left, Number(before + right.value))
    if isinstance(right, Number) and right.value < 0:
        return Binary("-", left, Number(-right.value))
    if isinstance(right, Binary) and right.operator in ("+", "-"):  # one after the other
        return Binary(right.operator, plus(left, right.left), right.right)
    return right if left == Number(0) else Binary("+", left, right)


def minus(left: Formula, right: Formula) -> Formula:
    """Return the difference."""
    return (
        plus(left, Number(-right.value)) if isinstance(right, Number) else Binary("-", left, right)
    )


def times(left: Formula, factor: Formula) -> Formula:
    """Return the product."""
    if left == Number(0) or factor == Number(1):
        return left
    if isinstance(left, Number) and isinstance(factor, Number):
        return Number(left.value * factor.value)
    return factor if left == Number(1) else Binary("*", left, factor)


def _inside(formula: Formula) -> tuple[Formula, ...]:
    if isinstance(formula, Binary):
        return (formula.left, formula.right)
    if isinstance(formula, Either):
        return (formula.condition, formula.yes, formula.no)
    return formula.indices if isinstance(formula, Table) else ()


def parts(formula: Formula) -> Iterator[Formula]:
    """Yield a formula and all formulas inside."""
    yield formula
    for part in _inside(formula):
        yield from parts(part)


def entries(formula: Formula) -> int:
    """Return the count of numbers in a formula's tables."""
    return sum(len(part.values) for part in parts(formula) if isinstance(part, Table))


def variables(formula: Formula) -> set[str]:
    """Return the names of its variables."""
    return {part.name for part in parts(formula) if isinstance(part, Variable)}


def evaluated(formula: Formula, known: Mapping[str, IntArray]) -> IntArray:
    """Return the values at all points; -1 where an operand is negative, since C++ calculates
    unsigned.
    """
    if isinstance(formula, Number):
        return np.array(formula.value)
    if isinstance(formula, Variable):
        return known[formula.name]
    inner = [evaluated(part, known) for part in _inside(formula)]
    if isinstance(formula, Either):
        return np.where(inner[0], inner[1], inner[2])
    if isinstance(formula, Table):
        table = np.array(formula.values).reshape(formula.shape)
        found: IntArray = table[tuple(np.asarray(index) for index in inner)]
        return found
    result: IntArray = np.asarray(_OPERATIONS[formula.operator](*inner), np.int64)
    return np.where((inner[0] < 0) | (inner[1] < 0), -1, result)


_OPERATIONS: dict[str, Callable[[IntArray, IntArray], IntArray]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.floor_divide,
    "%": np.remainder,
    "<<": np.left_shift,
    ">>": np.right_shift,
    "^": np.bitwise_xor,
    "<": np.less,
    ">=": np.greater_equal,
    "==": np.equal,
}


def text_of(formula: Formula, spelling: Spelling, least: int = 0) -> str:
    """Return the formula in C++, in brackets where its last operator binds less tightly than
    `least`: `BOUND`, `SUMMAND` or `FACTOR`.
    """
    text, level = _text(formula, spelling)
    return text if level >= least else f"({text})"


def _text(formula: Formula, spelling: Spelling) -> tuple[str, int]:
    """Return the text and the precedence of its last operator."""
    if formula in spelling.named:
        return spelling.named[formula], _WORD
    if isinstance(formula, Number):
        return spelling.number(formula.value), _WORD
    if isinstance(formula, Variable):
        return spelling.variables[formula.name], _WORD
    if isinstance(formula, Table):
        indices = "".join(f"[{text_of(index, spelling)}]" for index in formula.indices)
        return spelling.table(formula) + indices, _WORD
    if isinstance(formula, Either):
        inner = [_text(part, spelling)[0] for part in _inside(formula)]
        return f"{inner[0]} ? {inner[1]} : {inner[2]}", _CHOICE
    level = _LEVELS[formula.operator]
    left = _operand(formula.left, formula.operator, level, spelling)
    right = _operand(formula.right, formula.operator, level + 1, spelling)
    return f"{left} {formula.operator} {right}", level


def _operand(formula: Formula, operator: str, level: int, spelling: Spelling) -> str:
    text, own = _text(formula, spelling)
    is_clear = isinstance(formula, Binary) and {operator, formula.operator} <= _CLEAR
    is_clear = is_clear or own == _WORD or (operator in _COMPARES and own > _LEVELS["<<"])
    return text if own >= level and is_clear else f"({text})"
