"""The memory of a program on one line of addresses, cut into intervals.

Each buffer of each rank is a range of addresses; in place, IN and OUT share theirs. An address
where any access begins or ends is a cut, and what lies between two cuts is an interval: every
access touches whole intervals, so that conflicts are found interval by interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hccl_py.errors import NotSupportedError
from hccl_py.program.program import Program
from hccl_py.values import IntArray
from hccl_py.verifier.analysis.moves import MoveColumns, SideColumns
from hccl_py.verifier.finding import MemoryRange
from hccl_py.verifier.subject import Subject

MOST_BYTES = 1 << 61

_GAP = 64


@dataclass(frozen=True, eq=False)
class Spaces:
    """The addresses of buffers' first bytes, and their sizes in bytes, [ranks, buffers]."""

    base: IntArray
    size: IntArray


@dataclass(frozen=True, eq=False)
class Transfers:
    """The data tasks of a program that move at least a byte, as columns.

    `garbage` marks tasks whose result means nothing: a side is out of bounds, the sides differ in
    length or overlap. Bytes outside of buffers are cut off.
    """

    row: IntArray
    src: IntArray
    src_size: IntArray
    dst: IntArray
    dst_size: IntArray
    garbage: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.row)


@dataclass(frozen=True, eq=False)
class Intervals:
    """Interval k holds bytes start[k] .. start[k + 1] - 1; ranges by move, half open."""

    start: IntArray
    src: IntArray
    src_stop: IntArray
    dst: IntArray
    dst_stop: IntArray

    def __len__(self) -> int:
        return len(self.start) - 1

    def at(self, addresses: IntArray) -> IntArray:
        """Return the intervals that begin at the addresses, which are cuts."""
        return np.searchsorted(self.start, addresses)


@dataclass(frozen=True, eq=False)
class MemoryIntervals:
    """Spaces, moves and intervals of a program; `is_shared` where IN and OUT are one memory."""

    program: Program
    spaces: Spaces
    transfers: Transfers
    intervals: Intervals
    is_shared: bool

    def owned(self, buffer: str) -> tuple[IntArray, IntArray]:
        """Return the intervals of a user buffer: first and last + 1, by rank."""
        if buffer not in self.program.buffers:
            none = np.zeros(self.program.ranks, np.int64)
            return none, none
        number = self.program.buffers.index(buffer)
        begin = self.spaces.base[:, number]
        return self.intervals.at(begin), self.intervals.at(begin + self.spaces.size[:, number])

    def range_of(self, rank: int, buffer: int, start: int, stop: int) -> MemoryRange:
        """Return addresses start .. stop as a range of a buffer."""
        base = int(self.spaces.base[rank, buffer])
        return MemoryRange(rank, self.program.buffers[buffer], start - base, stop - base)


def memory_of(
    subject: Subject, shared: IntArray | None = None, *, copied: IntArray | None = None
) -> MemoryIntervals:
    """Lay out and cut the memory of a program.

    `shared` has by rank the offset of OUT in IN, for a call in place; `copied` the same, where OUT
    is memory of its own that begins as a copy of IN.

    Raises NotSupportedError where addresses do not fit 64 bits.
    """
    program = subject.program
    spaces = _spaces(program, shared)
    moves = _transfers(subject, spaces)
    ends = (moves.src, moves.src + moves.src_size, moves.dst, moves.dst + moves.dst_size)
    cuts = [np.zeros(1, np.int64), _user_cuts(program, spaces)]
    if copied is not None:
        cuts += copied_range(program, spaces, copied)
    start = _distinct([*cuts, *ends])
    intervals = Intervals(start, *(np.searchsorted(start, end) for end in ends))
    return MemoryIntervals(program, spaces, moves, intervals, shared is not None)


def copied_range(program: Program, spaces: Spaces, copied: IntArray) -> tuple[IntArray, IntArray]:
    """Return the addresses of each rank's OUT that begin as a copy of IN: first, last + 1."""
    into, out = program.buffers.index("IN"), program.buffers.index("OUT")
    room = spaces.size[:, out]
    first, stop = np.maximum(-copied, 0), spaces.size[:, into] - copied
    base = spaces.base[:, out]
    return base + np.minimum(first, room), base + np.clip(stop, np.minimum(first, room), room)


def _spaces(program: Program, shared: IntArray | None) -> Spaces:
    size = program.buffer_sizes.astype(np.int64)
    if float(size.astype(np.float64).sum()) >= MOST_BYTES:
        raise NotSupportedError(
            f"The buffers of {program.executor or program.op.name} add up to more than 2^61 bytes.",
            "Verify a smaller count: defects do not depend on it.",
        )
    room = size + _GAP
    base = (np.cumsum(room) - room.reshape(-1)).reshape(room.shape)
    if shared is not None and {"IN", "OUT"} <= set(program.buffers):
        into, out = program.buffers.index("IN"), program.buffers.index("OUT")
        end = int(room.sum())
        span = size[:, into] + size[:, out] + np.abs(shared) + _GAP
        origin = end + np.cumsum(span) - span
        base[:, into] = origin + np.maximum(-shared, 0)
        base[:, out] = base[:, into] + shared
    return Spaces(base, size)


def _transfers(subject: Subject, spaces: Spaces) -> Transfers:
    tasks, table = subject.tasks, subject.tasks.table
    rows = np.flatnonzero(table.moves_data[tasks.instruction]).astype(np.int64)
    moves = MoveColumns(subject, rows[tasks.size[rows] + tasks.dst_size[rows] > 0])
    src, src_size, src_cut = _clipped(spaces, moves.src)
    dst, dst_size, dst_cut = _clipped(spaces, moves.dst)
    sizes = moves.src.size, moves.dst.size
    overlaps = (np.abs(src - dst) < np.minimum(*sizes)) & ((src != dst) | moves.reduces)
    garbage = src_cut | dst_cut | (sizes[0] != sizes[1]) | overlaps
    return Transfers(moves.rows, src, src_size, dst, dst_size, garbage)


def _clipped(spaces: Spaces, side: SideColumns) -> tuple[IntArray, IntArray, npt.NDArray[np.bool_]]:
    """Return addresses and sizes inside of the buffers, and a mask of sides that were cut."""
    room = spaces.size[side.owner, side.buffer]
    start, stop = np.minimum(side.start, room), np.minimum(side.start + side.size, room)
    return spaces.base[side.owner, side.buffer] + start, stop - start, stop - start < side.size


def _user_cuts(program: Program, spaces: Spaces) -> IntArray:
    numbers = [program.buffers.index(name) for name in ("IN", "OUT") if name in program.buffers]
    begin = spaces.base[:, numbers]
    return np.concatenate([begin, begin + spaces.size[:, numbers]]).reshape(-1)


def _distinct(columns: Sequence[IntArray]) -> IntArray:
    """Return the distinct values, sorted (np.unique hashes large columns, which is slower)."""
    values = np.concatenate(columns)
    values.sort()
    is_first = np.ones(len(values), bool)
    is_first[1:] = values[1:] != values[:-1]
    return values[is_first]
