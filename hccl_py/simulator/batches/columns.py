"""Columns of batch instructions in the form that compiled loops read: formulas over pooled arrays.

An integer column is `table[(base + add) % mod]`, evaluated lane by lane; nothing of the size of
ranks × instructions is ever stored. A duration column looks up a pooled table of microseconds with
an integer column as index: where sizes are a formula, durations are the same formula over a
converted table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from hccl_py.clocks.durations import CostColumns, TaskDurations, identity
from hccl_py.values import Floats, IntArray, PerRank, RankInt, values_of


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
    floats: Floats


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
        self._floats: list[Floats] = []
        self._float_count = 0
        self._constants: dict[float, int] = {}
        self._by_lane: dict[int, PerRank] = {}
        self._looked_up: dict[object, list[tuple[bool, int]]] = {}
        self._alive: list[object] = []  # formulas are known by the ids of their arrays

    def integer(self, value: RankInt) -> int:
        """Return the number of a column."""
        key = identity(value)
        if key not in self._known:
            self._known[key] = len(self._rows)
            self._rows.append(self._row(value))
            self._highest.append(self._top(value))
            self._alive.append(value)
        return self._known[key]

    def duration(self, us: Floats) -> tuple[int, int]:
        """Return (index column, place in floats) of microseconds by lane, or one number."""
        return self._indexed(self._lanes(us.size), *self._placed(us))

    def durations(
        self, columns: CostColumns, lanes: int, times: Callable[[CostColumns], TaskDurations]
    ) -> tuple[int, int, int, int]:
        """Return (index column, place) of the time on the stream, and of the time after it."""
        size = columns.size
        others = columns._replace(size=0)
        index: RankInt = 0
        if any(isinstance(column, (PerRank, np.ndarray)) for column in others):
            index = self._lanes(lanes)
        elif isinstance(size, PerRank) and size.table is not None:
            index = PerRank(size.base, size.add, size.mod, None, (size.low, size.high))
            size = size.table
        elif isinstance(size, PerRank):
            index = self._lanes(lanes)
        known = tuple(map(identity, (*others, size)))
        if known not in self._looked_up:
            plain = CostColumns(*map(values_of, columns._replace(size=size)))
            found = times(plain)
            self._looked_up[known] = [self._placed(us) for us in (found.stream_us, found.after_us)]
            self._alive.append((columns, size))
        stream, after = self._looked_up[known]
        return *self._indexed(index, *stream), *self._indexed(index, *after)

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

    def _lanes(self, lanes: int) -> PerRank:
        """Return the column of lane numbers."""
        if lanes not in self._by_lane:
            self._by_lane[lanes] = PerRank(np.arange(lanes))
        return self._by_lane[lanes]

    def _indexed(self, index: RankInt, differ: bool, place: int) -> tuple[int, int]:
        return self.integer(index if differ else 0), place

    def _placed(self, us: Floats) -> tuple[bool, int]:
        """Return True if lanes differ, and the place of their microseconds in floats."""
        if us.ndim and (us == us[0]).all():
            us = us[0]
        if not us.ndim and float(us) in self._constants:
            return False, self._constants[float(us)]
        place = self._float_count
        self._floats.append(np.atleast_1d(us))
        self._float_count += us.size
        if not us.ndim:
            self._constants[float(us)] = place
        return us.ndim > 0, place

    def _place(self, array: IntArray) -> int:
        if id(array) not in self._arrays:
            self._arrays[id(array)] = self._int_count
            self._ints.append(array)
            self._int_count += len(array)
            self._alive.append(array)
        return self._arrays[id(array)]
