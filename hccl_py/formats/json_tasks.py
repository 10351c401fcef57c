"""From the task lists of a JSON file to columns: all tasks of one name are read at a time, one
member after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any

import numpy as np

from hccl_py.call.op_param import OpParam
from hccl_py.documents.checks import defect, format_value
from hccl_py.errors import did_you_mean
from hccl_py.formats.checks import Where, whole
from hccl_py.formats.json_rows import CODES, NAMES, SHAPES, Rows
from hccl_py.formats.links import Ends
from hccl_py.formats.memory import BufferTable
from hccl_py.formats.op import reduce_op
from hccl_py.program.builder.columns import TaskColumns
from hccl_py.program.limits import MAX_NUMBER
from hccl_py.values import IntArray


def columns_from(rows: Rows, ends: Ends, memory: BufferTable, op: OpParam) -> TaskColumns:
    """Return the columns of all tasks, without the objects at their ends. Links are not numbered
    yet: `end` has the keys of `Ends`.
    """
    codes = np.fromiter(map(CODES.get, rows.names, repeat(-1)), np.int8, len(rows))
    for row in np.flatnonzero(codes < 0)[:1].tolist():
        name = rows.names[row]
        hint = did_you_mean(name[:40], NAMES)
        raise defect(rows.path(row, 0), "the name of a task", format_value(name), hint)
    columns = TaskColumns(rows.rank, rows.stream)
    for code in np.unique(codes).tolist():
        _TaskReader(NAMES[code], np.flatnonzero(codes == code), rows, columns, ends, memory).read()
    moves = columns.src_buffer >= 0
    columns.dtype[moves] = op.dtype.number
    return columns


class _TaskReader:
    """Reads all tasks of one name."""

    def __init__(
        self,
        name: str,
        at: IntArray,
        rows: Rows,
        columns: TaskColumns,
        ends: Ends,
        memory: BufferTable,
    ) -> None:
        self.name, self.shape = name, SHAPES[name]
        self.at, self.rows, self.columns = at, rows, columns
        self.ends, self.memory = ends, memory
        self.rank = rows.rank[at]

    def read(self) -> None:
        """Fill the columns, member by member."""
        self._check_length()
        self.columns.kind[self.at] = self.shape.kind
        if self.name == "local_wait":
            self.columns.owner[self.at] = self.rows.stream[self.at]
        tasks = self.rows.picked(self.at)
        readers: dict[str, Callable[[list[Any], int], None]] = {
            "peer": self._peer,
            "op": self._op,
            "src": self._src,
            "dst": self._dst,
            "stream": self._stream,
            "index": self._index,
            "us": self._microseconds,
        }
        for position, member in enumerate(self.shape.members, 1):
            readers[member]([task[position] for task in tasks], position)

    def _where(self, *keys: int) -> Where:
        return self.rows.where(self.at, *keys)

    def _check_length(self) -> None:
        wrong = self.rows.fields[self.at] != len(self.shape.members)
        for row in self.at[wrong][:1].tolist():
            expected = self.shape.usage(self.name)
            found = f"{self.rows.fields[row]} members behind the name"
            hint = "Slices are [buffer, offset, length] in bytes; an object may follow."
            raise defect(self.rows.path(row), expected, found, hint)

    def _peer(self, values: list[Any], position: int) -> None:
        self.columns.end[self.at] = self.ends.keys(self.rank, values, self._where(position))

    def _op(self, values: list[Any], position: int) -> None:
        known: dict[Any, int] = {}
        numbers = []
        for k, value in enumerate(values):
            if type(value) is not str or value not in known:
                found = reduce_op(self.rows.path(int(self.at[k]), position), value)
                known[value] = int(found)
            numbers.append(known[value])
        self.columns.reduce[self.at] = numbers

    def _src(self, values: list[Any], position: int) -> None:
        columns = self.columns
        found = self._slices(values, position, self._owner("src"))
        columns.src_buffer[self.at], columns.src_offset[self.at], columns.src_size[self.at] = found

    def _dst(self, values: list[Any], position: int) -> None:
        columns = self.columns
        found = self._slices(values, position, self._owner("dst"))
        columns.dst_buffer[self.at], columns.dst_offset[self.at], columns.dst_size[self.at] = found

    def _stream(self, values: list[Any], position: int) -> None:
        where = self._where(position)
        self.columns.owner[self.at] = whole(values, where, "a stream", 0, MAX_NUMBER - 1)

    def _index(self, values: list[Any], position: int) -> None:
        where = self._where(position)
        self.columns.notify[self.at] = whole(values, where, "a notify's index", 0, MAX_NUMBER - 1)

    def _microseconds(self, values: list[Any], position: int) -> None:
        if not all(map(_is_duration, values)):
            k = next(k for k, value in enumerate(values) if not _is_duration(value))
            hint = "A kernel takes 0 microseconds or more, and ends."
            where = self.rows.path(int(self.at[k]), position)
            raise defect(where, "microseconds from 0 to 1e12", format_value(values[k]), hint)
        self.columns.microseconds[self.at] = values

    def _owner(self, side: str) -> IntArray:
        """Return the ranks in whose memory a side lies."""
        if side != self.shape.remote:
            return self.rank
        return self.ends.peers(self.columns.end[self.at])

    def _slices(
        self, values: list[Any], position: int, owner: IntArray
    ) -> tuple[IntArray, IntArray, IntArray]:
        """Return buffers, offsets and lengths of a column of [buffer, offset, length]."""
        for k, value in enumerate(values):
            if type(value) is not list or len(value) != 3:
                path = self.rows.path(int(self.at[k]), position)
                hint = 'Such as ["IN", 0, 64], in bytes.'
                raise defect(path, "[buffer, offset, length]", format_value(value), hint)
        buffers = self._buffers([value[0] for value in values], position, owner)
        offsets = whole([v[1] for v in values], self._where(position, 1), "an offset in bytes")
        sizes = whole([v[2] for v in values], self._where(position, 2), "a length in bytes")
        return buffers, offsets, sizes

    def _buffers(self, names: Sequence[Any], position: int, owner: IntArray) -> IntArray:
        known: dict[Any, int] = {}
        numbers = np.empty(len(names), np.int64)
        for k, name in enumerate(names):
            if type(name) is not str or name not in known:
                path = self.rows.path(int(self.at[k]), position, 0)
                known[name] = self.memory.number(name, path)
            numbers[k] = known[name]
        for k in np.flatnonzero(~self.memory.known[owner, numbers])[:1].tolist():
            path = self.rows.path(int(self.at[k]), position, 0)
            hint = f"Add it to buffers.{owner[k]} with its size."
            raise defect(path, f"a buffer of rank {owner[k]}", format_value(names[k]), hint)
        return numbers


def _is_duration(value: object) -> bool:
    return type(value) in (int, float) and 0 <= value <= 1e12  # type: ignore[operator]
