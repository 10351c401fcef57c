"""Following the contents of memory through a program, to the outputs at its end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hccl_py.enums import TaskKind
from hccl_py.program.kernels import kernel, reading
from hccl_py.values import IntArray, count_up
from hccl_py.verifier.analysis.contents.arrays import (
    CLOBBERED,
    FREE,
    FULL,
    LOST,
    NOTES,
    READ,
    REDUCED_INTO,
    SUMS,
    WRITTEN,
    Bools,
    Int32s,
    SegmentLists,
    SideContents,
    Steps,
    Sums,
)
from hccl_py.verifier.analysis.contents.loop import run_moves
from hccl_py.verifier.analysis.contents.sums import SumOrigin, are_sums, unfolded
from hccl_py.verifier.analysis.memory import MemoryIntervals, copied_range


@dataclass(frozen=True, eq=False)
class Segments:
    """Segments of memory: bytes start .. stop hold a content, shifted by delta; `writer` is the
    move that wrote them last (-1: none).
    """

    start: IntArray
    stop: IntArray
    content: IntArray
    delta: IntArray
    writer: IntArray


@dataclass(frozen=True, eq=False)
class Contents:
    """The contents of the outputs in a layout of memory, and the notes made on the way.

    `segments` are those of the outputs, in the order of their addresses.
    `undefined` has rows (move, first address, last + 1) of reads of memory that was never written,
    `into_undefined` of reductions into such memory, `clobbered` of reads of an input that the op
    itself has overwritten. `lost` has rows (move, start, stop, earlier move) of writes over data of
    an earlier move that no task has read. `is_used` marks the moves of which a byte was read or is
    output. `written` has all segments in the order in which they were written, where it was asked
    for.
    """

    memory: MemoryIntervals
    segments: Segments
    undefined: IntArray
    into_undefined: IntArray
    clobbered: IntArray
    lost: IntArray
    is_used: Bools
    sums: Sums
    written: Segments

    def are_sums(
        self,
        roots: IntArray,
        shift: IntArray,
        base: IntArray,
        right_moves: Bools,
        *,
        again: bool = False,
    ) -> Bools:
        """Tell for each k whether content roots[k] is the reduction of all ranks' inputs, each once
        and at base[rank] + shift[k]; with `again`, more than once is as good (max, min).

        `right_moves` marks the moves that reduce as the call demands.
        """
        is_right = right_moves[self.sums.move]
        run = are_sums.sized(len(roots) * (2 * len(base) + 1))
        return run(reading(roots), reading(shift), reading(base), self.sums, is_right, again)

    def origin_of(self, content: int, delta: int) -> SumOrigin:
        """Unfold a content at the address `delta`, as far as a message needs it."""
        return unfolded(self.sums, self.memory.program.ranks, content, delta)


def contents_of(
    memory: MemoryIntervals,
    order: Int32s,
    copied: IntArray | None = None,
    *,
    keep_written: bool = False,
) -> Contents:
    """Follow the contents of memory through one copy of a program; `order` has its task rows.

    `copied[rank]` is the offset of OUT in IN where OUT, in memory of its own, begins as a copy of
    IN. `keep_written` keeps a log of all writes.
    """
    steps = _steps(memory, order)
    accesses = int(
        (steps.src_last - steps.src_interval + steps.dst_last - steps.dst_interval).sum()
    )
    room = 4 * len(memory.intervals) + accesses + 256
    while True:
        lists = _segment_lists(memory, steps, room, copied, room if keep_written else 0)
        run_moves.sized(accesses + len(steps.sequence))(steps, lists)
        if not lists.counters[FULL]:
            break
        room *= 4
    notes = lists.notes[: lists.counters[NOTES]]
    segments = _outputs(memory, lists)
    lists.is_used[segments.writer[segments.writer >= 0]] = True
    found = [notes[notes[:, 0] == what][:, 1:] for what in (READ, REDUCED_INTO, CLOBBERED, LOST)]
    made = int(lists.counters[SUMS])
    left, left_delta, right, right_delta, move = lists.sums
    written = lists.written[: lists.counters[WRITTEN]].T
    return Contents(
        memory,
        segments,
        found[READ][:, :3],
        found[REDUCED_INTO][:, :3],
        found[CLOBBERED][:, :3],
        found[LOST],
        lists.is_used,
        Sums(left[:made], left_delta[:made], right[:made], right_delta[:made], move[:made]),
        Segments(*written),
    )


def _steps(memory: MemoryIntervals, order: Int32s) -> Steps:
    transfers, intervals, program = memory.transfers, memory.intervals, memory.program
    move_of_row = np.full(len(program.tasks), -1, np.int32)
    move_of_row[transfers.row] = np.arange(len(transfers))
    sequence = move_of_row[order]
    kind = program.tasks.kind[transfers.row]
    clobberable = np.full(len(transfers), -1, np.int32)
    if memory.is_shared and "IN" in program.buffers:
        number = program.buffers.index("IN")
        at = program.tasks.instruction[transfers.row]
        reads = np.flatnonzero(program.tasks.table.src_buffer[at] == number)
        base = memory.spaces.base[:, number]
        clobberable[reads] = np.searchsorted(base, transfers.src[reads], side="right") - 1
    return Steps(
        sequence=sequence[sequence >= 0],
        src=transfers.src,
        src_stop=transfers.src + transfers.src_size,
        dst=transfers.dst,
        dst_stop=transfers.dst + transfers.dst_size,
        src_interval=intervals.src,
        src_last=intervals.src_stop,
        dst_interval=intervals.dst,
        dst_last=intervals.dst_stop,
        reduces=np.isin(kind, [k for k in TaskKind if k.reduces]),
        garbage=transfers.garbage,
        clobberable=clobberable,
        bounds=intervals.start,
        ranks=program.ranks,
    )


def _segment_lists(
    memory: MemoryIntervals, steps: Steps, room: int, copied: IntArray | None, written: int
) -> SegmentLists:
    intervals = max(len(memory.intervals), 1)
    following = np.arange(1, room + 1, dtype=np.int32)
    following[-1] = -1
    contents = [np.empty(room, np.int32) for _ in range(3)]
    deltas = [np.empty(room, np.int64) for _ in range(2)]
    lists = SegmentLists(
        head=np.full(intervals, -1, np.int32),
        start=np.empty(room, np.int64),
        content=np.empty(room, np.int32),
        delta=np.empty(room, np.int64),
        writer=np.empty(room, np.int32),
        following=following,
        read=_side(room + intervals + 2),
        there=_side(room + intervals + 2),
        added=_side(room + intervals + 2),
        sums=Sums(contents[0], deltas[0], contents[1], deltas[1], contents[2]),
        notes=np.empty((room, 5), np.int64),
        is_used=np.zeros(len(memory.transfers), bool),
        counters=np.zeros(5, np.int64),
        written=np.empty((written, 5), np.int64),
    )
    first, stop = memory.owned("IN")
    _hold_inputs(memory, lists, first, stop, np.zeros(len(first), np.int64))
    if copied is not None:
        ends = copied_range(memory.program, memory.spaces, copied)
        names = memory.program.buffers
        into, out = (memory.spaces.base[:, names.index(name)] for name in ("IN", "OUT"))
        first, stop = map(memory.intervals.at, ends)
        _hold_inputs(memory, lists, first, stop, into + copied - out)
    return lists


def _side(room: int) -> SideContents:
    return SideContents(*(np.empty(room, np.int64) for _ in SideContents._fields))


def _hold_inputs(
    memory: MemoryIntervals, lists: SegmentLists, first: IntArray, stop: IntArray, delta: IntArray
) -> None:
    """Let intervals first .. stop - 1 of each rank hold its input, moved by `delta`."""
    count = stop - first
    rank = np.repeat(np.arange(len(first)), count)
    intervals = first[rank] + count_up(count)
    free = int(lists.counters[FREE])
    entries = slice(free, free + len(intervals))
    lists.head[intervals] = np.arange(entries.start, entries.stop)
    lists.start[entries] = memory.intervals.start[intervals]
    lists.content[entries], lists.delta[entries] = rank, delta[rank]
    lists.writer[entries] = lists.following[entries] = -1
    lists.counters[FREE] = entries.stop


def _outputs(memory: MemoryIntervals, lists: SegmentLists) -> Segments:
    """Return the segments of all outputs; memory that was never written is a segment, too."""
    first, stop = memory.owned("OUT")
    steps = int((stop - first).sum())
    count, columns = _list_segments.sized(steps)(first, stop, memory.intervals.start, lists)
    return Segments(*(column[:count] for column in columns))


@kernel
def _list_segments(
    first: IntArray, stop: IntArray, bounds: IntArray, lists: SegmentLists
) -> tuple[int, Any]:
    """List the segments of intervals first[r] .. stop[r] - 1 for every r, in order; return their
    number n and columns [5, n]: those of `Segments`.

    Segments are cut at the bounds of intervals; here those of one range that continue each other
    become one again. Costs the intervals and segments of the ranges.
    """
    room = len(lists.start) + len(lists.head)
    columns = np.empty((5, room), np.int64)
    n = 0
    for r in range(len(first)):
        begin = n  # segments of two ranges, which are two buffers, stay apart
        for interval in range(first[r], stop[r]):
            entry = lists.head[interval]
            if entry < 0:  # never written: content UNDEFINED, no writer
                columns[0, n], columns[1, n] = bounds[interval], bounds[interval + 1]
                columns[2, n], columns[3, n], columns[4, n] = -1, 0, -1
                n += 1
            while entry >= 0:
                # A list has no ends: a segment reaches to the next one, or to the interval's end.
                behind = lists.following[entry]
                end = lists.start[behind] if behind >= 0 else bounds[interval + 1]
                same = n > begin and columns[2, n - 1] == lists.content[entry]
                if (
                    same
                    and columns[3, n - 1] == lists.delta[entry]
                    and columns[4, n - 1] == lists.writer[entry]
                ):
                    columns[1, n - 1] = end
                else:
                    columns[0, n], columns[1, n] = lists.start[entry], end
                    columns[2, n], columns[3, n] = lists.content[entry], lists.delta[entry]
                    columns[4, n] = lists.writer[entry]
                    n += 1
                entry = behind
    return n, columns
