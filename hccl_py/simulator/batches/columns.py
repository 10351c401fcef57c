"""Columns of batch instructions in the form that compiled loops read: formulas over pooled arrays.

An integer column is `table[(base + add) % mod]`, evaluated lane by lane; nothing of the size of
ranks × instructions is ever stored. A duration column looks up a pooled table of microseconds with
an integer column as index: where sizes are a formula, durations are the same formula over a
converted table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hccl_py.values import IntArray, PerRank, RankInt

Convert = Callable[[npt.NDArray[Any]], npt.NDArray[np.float64]]


class PooledColumns(NamedTuple):
    """Arrays behind all columns of a program.

    Row c of `formulas` is (base, step, add, mod, table). The value of lane l is
    v = ints[base + l·step] + add; v -= mod where mod > 0 and v >= mod; v = ints[table + v] where
    table >= 0. A duration is floats[place + v] of its index column. No value of column c is above
    `highest[c]`.
    """

    formulas: IntArray
    highest: IntArray
    ints: IntArray
    floats: npt.NDArray[np.float64]


class ColumnPool:
    """Collects columns, each distinct formula once."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, int, int, int, int]] = []
        self._highest: list[int] = []
        self._tops: dict[int, int] = {}
        self._known: dict[object, int] = {}
        self._arrays: dict[int, int] = {}
        self._ints: list[IntArray] = [np.zeros(1, np.int64)]
        self._int_count = 1
        self._floats: list[npt.NDArray[np.float64]] = []
        self._float_count = 0
        self._float_known: dict[object, tuple[int, int]] = {}
        self._alive: list[object] = []  # formulas are known by the ids of their arrays

    def integer(self, value: RankInt) -> int:
        """Return the number of a column."""
        key = value.key() if isinstance(value, PerRank) else value
        if key not in self._known:
            self._known[key] = len(self._rows)
            self._rows.append(self._row(value))
            self._highest.append(self._top(value))
            self._alive.append(value)
        return self._known[key]

    def duration(
        self,
        size: RankInt,
        key: object,
        convert: Convert,
    ) -> tuple[int, int]:
        """Return (index column, place in floats) of microseconds by size; `key` names the
        conversion.
        """
        known = (key, size.key() if isinstance(size, PerRank) else size)
        if known not in self._float_known:
            self._float_known[known] = self._duration(size, key, convert)
            self._alive.append(size)
        return self._float_known[known]

    def pooled(self) -> PooledColumns:
        """Return the arrays."""
        rows = np.array(self._rows, np.int64).reshape(-1, 5)
        floats = np.concatenate(self._floats) if self._floats else np.zeros(0)
        highest = np.array(self._highest, np.int64)
        return PooledColumns(rows, highest, np.concatenate(self._ints), floats)

    def _top(self, value: RankInt) -> int:
        if not isinstance(value, PerRank):
            return value
        if value.table is None:
            return value.mod - 1 if value.mod else value.high + value.add
        if id(value.table) not in self._tops:
            self._tops[id(value.table)] = int(value.table.max())
        return self._tops[id(value.table)]

    def _row(self, value: RankInt) -> tuple[int, int, int, int, int]:
        if not isinstance(value, PerRank):
            return 0, 0, value, 0, -1
        table_at = -1 if value.table is None else self._place(value.table)
        mod, add = value.mod or 0, value.add
        if mod:
            # The base spans less than mod: base + add lies in 0 .. 2·mod - 1 after this shift.
            add = (value.low + add) % mod - value.low
        return self._place(value.base), 1, add, mod, table_at

    def _duration(
        self,
        size: RankInt,
        key: object,
        convert: Convert,
    ) -> tuple[int, int]:
        if not isinstance(size, PerRank):
            return self.integer(0), self._place_floats(convert(np.array([size])))
        if size.table is None:
            lanes = np.arange(len(size.base))
            return self.integer(PerRank(lanes)), self._place_floats(convert(size.values()))
        index = PerRank(size.base, size.add, size.mod, None, (size.low, size.high))
        table_key = (key, id(size.table))
        if table_key not in self._float_known:
            self._float_known[table_key] = (0, self._place_floats(convert(size.table)))
            self._alive.append(size.table)
        return self.integer(index), self._float_known[table_key][1]

    def _place(self, array: IntArray) -> int:
        if id(array) not in self._arrays:
            self._arrays[id(array)] = self._int_count
            self._ints.append(array)
            self._int_count += len(array)
            self._alive.append(array)
        return self._arrays[id(array)]

    def _place_floats(self, values: npt.NDArray[np.float64]) -> int:
        place = self._float_count
        self._floats.append(values)
        self._float_count += len(values)
        return place
