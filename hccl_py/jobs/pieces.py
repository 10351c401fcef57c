"""Pieces of a job: instructions of some ranks, renumbered, joined and narrowed.

Formulas stay formulas as far as they can: `table[(base + add) % mod]` gets another table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hccl_py.program.instruction import COLUMNS, Instruction
from hccl_py.program.narrowing import Narrower
from hccl_py.values import IntArray, PerRank, RankInt, values_of

SHARED = tuple(name for name in Instruction._fields if name not in COLUMNS)


@dataclass(frozen=True, eq=False)
class Piece:
    """Instructions of some ranks of the job; columns have a value for each of `ranks`."""

    ranks: IntArray
    instructions: tuple[Instruction, ...]


class Mapping:
    """A function of numbers, applied to columns; equal columns give the same object."""

    def __init__(self, of: Callable[[IntArray], IntArray]) -> None:
        self._of = of
        # The columns are kept beside the results: an id is good as long as its array lives.
        self._known: dict[object, tuple[RankInt, RankInt]] = {}
        self._tables: dict[int, tuple[IntArray, IntArray]] = {}

    def __call__(self, value: RankInt) -> RankInt:
        """Return the function of a column."""
        key = value.key() if isinstance(value, PerRank) else value
        if key not in self._known:
            self._known[key] = self._mapped(value), value
        return self._known[key][0]

    def _mapped(self, value: RankInt) -> RankInt:
        if not isinstance(value, PerRank):
            return int(self._of(np.array([value]))[0])
        if value.table is None:
            return PerRank.of(self._of(value.values()))
        bounds = (value.low, value.high)
        return PerRank(value.base, value.add, value.mod, self._table(value.table), bounds)

    def _table(self, table: IntArray) -> IntArray:
        if id(table) not in self._tables:
            self._tables[id(table)] = self._of(table), table
        return self._tables[id(table)][0]


class Shift(Mapping):
    """Adds a number."""

    def __init__(self, by: int) -> None:
        super().__init__(lambda numbers: numbers + by)
        self._by = by

    def _mapped(self, value: RankInt) -> RankInt:
        if not self._by:
            return value
        if isinstance(value, PerRank) and value.is_sum:
            return PerRank(value.base, value.add + self._by, bounds=(value.low, value.high))
        return super()._mapped(value)


def narrowed(narrower: Narrower, piece: Piece, ranks: IntArray) -> tuple[Instruction, ...]:
    """Return the instructions of a piece for some of its ranks, in their order."""
    if np.array_equal(piece.ranks, ranks):
        return piece.instructions
    order = np.argsort(piece.ranks)
    lanes = order[np.searchsorted(piece.ranks, ranks, sorter=order)]
    return narrower(piece.instructions, lanes)


def joined(pieces: Sequence[Piece]) -> list[Piece]:
    """Join pieces that differ in columns only: their ranks issue the same tasks."""
    alike: dict[object, list[Piece]] = {}
    for piece in pieces:
        key = tuple(tuple(getattr(i, name) for name in SHARED) for i in piece.instructions)
        alike.setdefault(key, []).append(piece)
    return [_Joiner(group).piece() if len(group) > 1 else group[0] for group in alike.values()]


def ordered(pieces: Sequence[Piece]) -> list[Piece]:
    """Return pieces with their ranks in order."""
    narrower = Narrower()
    ranks = [np.sort(piece.ranks) for piece in pieces]
    return [Piece(mine, narrowed(narrower, p, mine)) for p, mine in zip(pieces, ranks, strict=True)]


class _Joiner:
    """Pieces that become one, column behind column."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self._pieces = pieces
        self._known: dict[object, RankInt] = {}
        self._bases: dict[tuple[int, ...], IntArray] = {}
        self._contents: dict[int, bytes] = {}

    def piece(self) -> Piece:
        """Return the pieces as one."""
        ranks = np.concatenate([piece.ranks for piece in self._pieces])
        rows = zip(*(piece.instructions for piece in self._pieces), strict=True)
        return Piece(ranks, tuple(map(self._instruction, rows)))

    def _instruction(self, row: tuple[Instruction, ...]) -> Instruction:
        found: dict[str, Any] = {
            name: self._column([getattr(i, name) for i in row]) for name in COLUMNS
        }
        return row[0]._replace(**found)

    def _column(self, values: list[RankInt]) -> RankInt:
        key = tuple(v.key() if isinstance(v, PerRank) else v for v in values)
        if key not in self._known:
            self._known[key] = self._joined(values)
        return self._known[key]

    def _joined(self, values: list[RankInt]) -> RankInt:
        first = values[0]
        if isinstance(first, int) and all(isinstance(v, int) and v == first for v in values):
            return first
        formulas = [v for v in values if isinstance(v, PerRank)]
        if len(formulas) == len(values) and len(set(map(self._formula, formulas))) == 1:
            sample = formulas[0]
            return PerRank(self._base(formulas), sample.add, sample.mod, sample.table)
        columns = [
            np.broadcast_to(values_of(v), len(piece.ranks))
            for v, piece in zip(values, self._pieces, strict=True)
        ]
        return PerRank.of(np.concatenate(columns))

    def _base(self, formulas: list[PerRank]) -> IntArray:
        key = tuple(id(formula.base) for formula in formulas)
        if key not in self._bases:
            self._bases[key] = np.concatenate([formula.base for formula in formulas])
        return self._bases[key]

    def _formula(self, value: PerRank) -> object:
        table = value.table
        if table is not None and id(table) not in self._contents:
            self._contents[id(table)] = table.tobytes()
        return value.add, value.mod, None if table is None else self._contents[id(table)]
