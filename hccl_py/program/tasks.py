"""The task view: one row per task of the program, as columns.

Rows are ordered by rank, then as recorded; the rows of rank r are first[r] .. first[r + 1] - 1.
What the ranks of a batch share (kind, stream, buffers, data type, label, source line) is kept once
per instruction and looked up.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hccl_py.enums import moves_data
from hccl_py.program.instruction import COLUMNS, ONE_SUM, Batch, Instruction
from hccl_py.values import IntArray, PerRank

if TYPE_CHECKING:
    from hccl_py.program.program import Program

_BLOCK = 64
_SHARED = (
    "kind",
    "stream",
    "src_buffer",
    "dst_buffer",
    "dtype",
    "reduce",
    "label",
    "line",
    "round",
    "duration_us",
    "dst_size",
)


class Tasks:
    """Columns of all tasks; see the fields of Instruction for their meaning and units."""

    def __init__(
        self,
        first: IntArray,
        instruction: npt.NDArray[np.int32],
        columns: IntArray,
        table: InstructionTable,
    ) -> None:
        self.first = first
        self.instruction = instruction
        self.table = table
        self.cell, self.end, self.peer, self.src_offset, self.dst_offset = columns[:-1]
        self.size: IntArray = columns[-1]

    def __len__(self) -> int:
        return len(self.instruction)

    @cached_property
    def rank(self) -> npt.NDArray[np.int32]:
        """The rank of every task."""
        return np.repeat(np.arange(len(self.first) - 1, dtype=np.int32), np.diff(self.first))

    @property
    def kind(self) -> npt.NDArray[np.int8]:
        """TaskKind of every task."""
        return self.table.kind[self.instruction]

    @property
    def stream(self) -> npt.NDArray[np.int16]:
        """Stream of every task; 0 is main."""
        return self.table.stream[self.instruction]

    @cached_property
    def dst_size(self) -> IntArray:
        """Bytes of every task's destination: `size`, unless the instruction states another one."""
        if not self.table.has_dst_size.any():
            return self.size
        stated = self.table.dst_size[self.instruction]
        return np.where(stated < 0, self.size, stated).astype(np.int64)

    @cached_property
    def index(self) -> npt.NDArray[np.int64]:
        """The position of every task on its stream."""
        queue = (
            self.rank.astype(np.int64) * (int(self.table.stream.max(initial=0)) + 1) + self.stream
        )
        order = np.argsort(queue, kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(queue))])
        index = np.empty(len(self), np.int64)
        index[order] = np.arange(len(self)) - starts[queue[order]]
        return index

    @property
    def adds_to_sum(self) -> npt.NDArray[np.bool_]:
        """True for each task that adds in fp32 to the sum of the one before, here and on its
        stream.
        """
        found: npt.NDArray[np.bool_] = self.table.joined == ONE_SUM
        return found[self.instruction]

    def meaning(self) -> dict[str, npt.NDArray[np.generic]]:
        """Return the columns that say what the tasks do: everything but labels and source lines."""
        found: dict[str, npt.NDArray[np.generic]] = {name: getattr(self, name) for name in COLUMNS}
        for name in _SHARED:
            if name not in ("label", "line"):
                found[name] = getattr(self.table, name)[self.instruction]
        if (self.table.joined == ONE_SUM).any():
            found["adds_to_sum"] = self.adds_to_sum
        return found


class InstructionTable:
    """The shared fields of all instructions of a program, batch after batch."""

    def __init__(self, instructions: Sequence[Instruction]) -> None:
        fields = list(zip(*instructions, strict=True)) or [()] * len(Instruction._fields)
        by_name = dict(zip(Instruction._fields, fields, strict=True))
        self.kind = np.frombuffer(bytes(by_name["kind"]), np.int8)  # as an array: 40 times longer
        self.stream = np.array(by_name["stream"], np.int16)
        self.src_buffer = np.array(by_name["src_buffer"], np.int16)
        self.dst_buffer = np.array(by_name["dst_buffer"], np.int16)
        self.dtype = np.array(by_name["dtype"], np.int8)
        self.reduce = np.array(by_name["reduce"], np.int8)
        self.label = np.array(by_name["label"], np.int32)
        self.line = np.array(by_name["line"], np.int32)
        self.round = np.array(by_name["round"], np.int32)
        self.duration_us = np.array(by_name["duration_us"], np.float64)
        self.dst_size = np.array(by_name["dst_size"], np.int64)
        self.joined = np.array(by_name["joined"], np.int8)

    @cached_property
    def moves_data(self) -> npt.NDArray[np.bool_]:
        """True for each instruction that moves data."""
        return moves_data(self.kind)

    @property
    def has_dst_size(self) -> npt.NDArray[np.bool_]:
        """True for each instruction that states the length of its destination beside that of its
        source.
        """
        return self.dst_size >= 0


def expand(program: Program, ranks: Sequence[int] | None = None) -> Tasks:
    """Make the task view: of all ranks, or of some, and then the others have no rows.

    The numbers of columns that differ by rank are computed for the ranks asked for only.
    """
    is_asked = np.ones(program.ranks, bool)
    if ranks is not None:
        is_asked[:] = False
        is_asked[list(ranks)] = True
    parts = [_Part.of(batch, is_asked) for batch in program.batches]
    parts = [part for part in parts if len(part.ranks)]
    counts = np.zeros(program.ranks, np.int64)
    for part in parts:
        counts[part.ranks] = len(part.instructions)
    first = np.concatenate([[0], np.cumsum(counts)])
    instruction = np.empty(first[-1], np.int32)
    columns = np.empty((len(COLUMNS), first[-1]), np.int64)
    found = [i for part in parts for i in part.instructions]
    done = 0
    for part in parts:
        _fill(part, first[part.ranks], instruction, columns, done)
        _part_durations(part, first[part.ranks], instruction, found, done)
        done += len(part.instructions)
    table = InstructionTable(found)
    for array in (first, instruction, columns):
        array.flags.writeable = False
    return Tasks(first, instruction, columns, table)


class _Part(NamedTuple):
    """Some ranks of a batch, and their places in it: None for all of them."""

    ranks: IntArray
    instructions: tuple[Instruction, ...]
    places: IntArray | None

    @staticmethod
    def of(batch: Batch, is_asked: npt.NDArray[np.bool_]) -> _Part:
        asked = is_asked[batch.ranks]
        if asked.all():
            return _Part(batch.ranks, batch.instructions, None)
        places = np.flatnonzero(asked)
        return _Part(batch.ranks[places], batch.instructions, places)


def _fill(
    part: _Part, first: IntArray, instruction: npt.NDArray[np.int32], columns: IntArray, done: int
) -> None:
    """Write the rows of one batch: what its ranks share at once, then the columns that differ by
    rank.
    """
    count = len(part.instructions)
    if not count:
        return
    fields = dict(zip(Instruction._fields, zip(*part.instructions, strict=True), strict=True))
    _write(instruction, first, count, np.arange(done, done + count))
    for column, name in zip(columns, COLUMNS, strict=True):
        values = fields[name]
        varying = [(j, v) for j, v in enumerate(values) if not isinstance(v, int)]
        plain = [v if isinstance(v, int) else 0 for v in values] if varying else values
        _write(column, first, count, np.array(plain))
        _scatter(column, first, varying, part.places)


def _part_durations(
    part: _Part,
    first: IntArray,
    instruction: npt.NDArray[np.int32],
    found: list[Instruction],
    done: int,
) -> None:
    """Give ranks whose kernels differ in duration instructions of their own, at the end of those
    that were found.
    """
    for number, shared in enumerate(part.instructions):
        if isinstance(shared.duration_us, PerRank):
            us, which = np.unique(shared.duration_us.values(part.places), return_inverse=True)
            instruction[first + number] = len(found) + which.reshape(-1)
            plain = [shared._replace(duration_us=value) for value in us.tolist()]
            found[done + number] = plain[0]
            found += plain


def _write(
    column: npt.NDArray[np.integer[Any]], first: IntArray, count: int, shared: IntArray
) -> None:
    """Give every rank of a batch the same values."""
    if first[-1] - first[0] == count * (len(first) - 1) and (np.diff(first) == count).all():
        column[first[0] : first[-1] + count].reshape(len(first), count)[:] = shared
    else:
        for row in first.tolist():
            column[row : row + count] = shared


def _scatter(
    column: IntArray, first: IntArray, values: list[tuple[int, PerRank]], places: IntArray | None
) -> None:
    """Write per-rank columns, several at a time so that writes to one rank's rows are near each
    other.
    """
    known: dict[int, IntArray] = {}
    for start in range(0, len(values), _BLOCK):
        block = values[start : start + _BLOCK]
        found = np.empty((len(first), len(block)), np.int64)
        for k, (_, value) in enumerate(block):
            if value.is_sum and id(value) not in known:
                known[id(value)] = value.values(places)
            found[:, k] = known[id(value)] if value.is_sum else value.values(places)
        column[first[:, None] + np.array([j for j, _ in block])] = found
