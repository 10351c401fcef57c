"""The data tasks of a program as columns and as steps.

A *slot* is a buffer of a rank: slot = rank · buffers + buffer. A *move* copies or reduces a range
of bytes of one slot into another. `Moves` has one row per move, for planning; a *step* is a move as
a tuple, for running it with numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cache, cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from hccl_py.enums import DataType, ReduceOp, TaskKind
from hccl_py.errors import NotSupportedError, OrchestrationError
from hccl_py.program.describe import format_task
from hccl_py.program.instruction import ONE_SUM
from hccl_py.program.program import Program
from hccl_py.program.tasks import Tasks
from hccl_py.values import IntArray

Bytes: TypeAlias = npt.NDArray[np.uint8]

Ufunc: TypeAlias = Callable[..., object]

COPY = -1
"""The op of a move that does not reduce."""

Sources: TypeAlias = tuple[tuple[int, int, int], ...]
"""Slot, start and stop in bytes of each."""

Step: TypeAlias = tuple[int, int, int, int, int, int, Ufunc | None, np.dtype[Any] | None, Sources]
"""Destination slot, start and stop in bytes; the same of the source; ufunc and dtype, None for a
copy; the sources that are added before, all of them in fp32.
"""

UFUNCS: dict[ReduceOp, Ufunc] = {
    ReduceOp.SUM: np.add,
    ReduceOp.PROD: np.multiply,
    ReduceOp.MAX: np.maximum,
    ReduceOp.MIN: np.minimum,
}
_READS = np.array([kind.reads_remote for kind in TaskKind])
_WRITES = np.array([kind.writes_remote for kind in TaskKind])
_REDUCES = np.array([kind.reduces for kind in TaskKind])
_IS_ATOMIC = np.array([kind.is_atomic for kind in TaskKind])


@dataclass(frozen=True, eq=False)
class Moves:
    """Data tasks that move at least one byte, in the order of the rows asked for.

    `row` is the row in the task view, `op` a ReduceOp or COPY, `dtype` HcclDataType's number, which
    counts for reductions only; `is_atomic` marks reductions that hardware makes atomic,
    `adds_to_sum` those that go on with the sum of the move before in fp32.
    """

    row: IntArray
    op: IntArray
    dtype: IntArray
    dst: IntArray
    dst_offset: IntArray
    src: IntArray
    src_offset: IntArray
    size: IntArray
    is_atomic: npt.NDArray[np.bool_]
    adds_to_sum: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.row)

    def taken(self, which: npt.NDArray[np.bool_]) -> Moves:
        """Return some of the moves."""
        return Moves(*(getattr(self, field.name)[which] for field in fields(self)))

    @property
    def reduce_dtypes(self) -> list[DataType]:
        """The data types that reductions are done in."""
        return [DataType.from_number(n) for n in np.unique(self.dtype[self.op != COPY]).tolist()]

    @cached_property
    def slots(self) -> list[int]:
        """The slots that the moves read or write, ascending."""
        used: list[int] = np.unique(np.concatenate([self.dst, self.src])).tolist()
        return used

    @cached_property
    def written_slots(self) -> frozenset[int]:
        """The slots that the moves write."""
        return frozenset(np.unique(self.dst).tolist())

    @cached_property
    def steps(self) -> list[Step]:
        """The moves as tuples of plain numbers."""
        columns = (
            *(self.dst, self.dst_offset, self.dst_offset + self.size),
            *(self.src, self.src_offset, self.src_offset + self.size),
        )
        ops, dtypes = self.op.tolist(), self.dtype.tolist()
        ufuncs = [None if op == COPY else UFUNCS[ReduceOp(op)] for op in ops]
        types = [
            None if op == COPY else _numpy_type(dtype)
            for op, dtype in zip(ops, dtypes, strict=True)
        ]
        nothing: list[Sources] = [()] * len(self)
        found = list(zip(*(c.tolist() for c in columns), ufuncs, types, nothing, strict=True))
        for at in np.flatnonzero(self.adds_to_sum).tolist():
            dst, start, _, src, low, high, *_, before = found[at - 1]
            found[at] = (*found[at][:-1], (*before, (src, low, high)))
            found[at - 1] = (dst, start, start, src, low, low, None, None, ())  # with the last one
        return found


def address_of(array: Bytes) -> int:
    """Return the address of an array's first byte."""
    address: int = array.__array_interface__["data"][0]
    return address


def moves_of(
    program: Program, rows: IntArray, tasks: Tasks | None = None, *, keeps_sums: bool = False
) -> Moves:
    """Return the moves among these rows of the task view, or of `tasks`, a view of some ranks.

    OrchestrationError if one leaves its buffers, has sides of different lengths, or goes on with no
    sum; NotSupportedError for sums that stay in fp32, unless the platform `keeps_sums`.
    """
    tasks = program.tasks if tasks is None else tasks
    table = tasks.table
    rows = rows[table.moves_data[tasks.instruction[rows]]]
    _check_lengths(program, tasks, rows)
    rows = rows[tasks.size[rows] != 0]
    at = tasks.instruction[rows]
    kind, rank, peer = table.kind[at], tasks.rank[rows], tasks.peer[rows]
    dst_rank = np.where(_WRITES[kind], peer, rank).astype(np.int64)
    src_rank = np.where(_READS[kind], peer, rank).astype(np.int64)
    buffers = len(program.buffers)
    moves = Moves(
        row=rows,
        op=np.where(_REDUCES[kind], table.reduce[at], COPY).astype(np.int64),
        dtype=table.dtype[at].astype(np.int64),
        dst=dst_rank * buffers + table.dst_buffer[at],
        dst_offset=tasks.dst_offset[rows],
        src=src_rank * buffers + table.src_buffer[at],
        src_offset=tasks.src_offset[rows],
        size=tasks.size[rows],
        is_atomic=_IS_ATOMIC[kind],
        adds_to_sum=(table.joined == ONE_SUM)[at],
    )
    _check_sums(program, tasks, moves, keeps_sums)
    _check_bounds(program, tasks, moves)
    _check_units(program, tasks, moves)
    return moves


def run_step(slots: Sequence[Bytes], step: Step) -> None:
    """Execute one move; a source that overlaps its destination is read as it was before."""
    dst, start, stop, src, low, high, ufunc, dtype, before = step
    if ufunc is None or dtype is None:
        slots[dst][start:stop] = slots[src][low:high]
        return
    into = slots[dst][start:stop].view(dtype)
    if not before:
        ufunc(into, slots[src][low:high].view(dtype), out=into)
        return
    total = into.astype(np.float32)
    for slot, begin, end in (*before, (src, low, high)):
        ufunc(total, slots[slot][begin:end].view(dtype).astype(np.float32), out=total)
    into[...] = total.astype(dtype)


@cache
def _numpy_type(number: int) -> np.dtype[Any]:
    return DataType.from_number(number).numpy


def _format(program: Program, tasks: Tasks, row: int) -> str:
    """Describe a task of a view."""
    rank = int(tasks.rank[row])
    return format_task(program, int(program.tasks.first[rank] + row - tasks.first[rank]))


def _check_sums(program: Program, tasks: Tasks, moves: Moves, keeps_sums: bool) -> None:
    later = np.flatnonzero(moves.adds_to_sum)
    if len(later) and not keeps_sums:
        raise NotSupportedError(
            f"{_format(program, tasks, int(moves.row[later[0]]))} adds in fp32 and rounds once, "
            "with the task before: this platform rounds each sum.",
            "Run the program on the emulated platform.",
        )
    wrong = later[(later == 0) | (moves.op[later] != int(ReduceOp.SUM))]
    for column in (moves.op, moves.dtype, moves.dst, moves.dst_offset, moves.size):
        wrong = np.append(wrong, later[column[later] != column[later - 1]])
    if len(wrong):
        raise OrchestrationError(
            f"{_format(program, tasks, int(moves.row[wrong[0]]))} goes on with the sum of the task "
            "before, which is no sum into the same bytes.",
            'Only tasks that add to the same bytes are "joined": "sum".',
        )


def _check_bounds(program: Program, tasks: Tasks, moves: Moves) -> None:
    sizes = program.buffer_sizes.reshape(-1)
    for slot, offset in ((moves.dst, moves.dst_offset), (moves.src, moves.src_offset)):
        bad = (offset < 0) | (moves.size < 0) | (offset + moves.size > sizes[slot])
        if bad.any():
            at = int(np.argmax(bad))
            rank, buffer = divmod(int(slot[at]), len(program.buffers))
            raise OrchestrationError(
                f"Out of bounds: {_format(program, tasks, int(moves.row[at]))}, "
                f"but {program.buffers[buffer]} of rank {rank} has {sizes[slot[at]]} bytes.",
                "Take regions from rank.user_in, rank.ccl_in and so on: they know their sizes.",
                finding="OUT_OF_BOUNDS",
            )


def _check_lengths(program: Program, tasks: Tasks, rows: IntArray) -> None:
    """Refuse tasks whose two sides have different lengths."""
    if not tasks.table.has_dst_size.any():
        return
    for row in rows[tasks.size[rows] != tasks.dst_size[rows]][:1].tolist():
        raise OrchestrationError(
            f"Lengths differ: {_format(program, tasks, row)} has a source of {tasks.size[row]} "
            f"bytes and a destination of {tasks.dst_size[row]}.",
            "Both sides of a task have the same length.",
            finding="SLICE_LEN_MISMATCH",
        )


def _check_units(program: Program, tasks: Tasks, moves: Moves) -> None:
    """Refuse reductions of a fraction of an element."""
    for dtype in moves.reduce_dtypes:
        bad = (
            (moves.op != COPY) & (moves.dtype == dtype.number) & (moves.size % dtype.itemsize != 0)
        )
        if bad.any():
            at = int(np.argmax(bad))
            raise OrchestrationError(
                f"{_format(program, tasks, int(moves.row[at]))}: {moves.size[at]} bytes are no "
                f"whole number of {dtype.value} elements of {dtype.itemsize} bytes.",
                "Slice regions at multiples of the element size.",
                finding="SLICE_LEN_MISMATCH",
            )
