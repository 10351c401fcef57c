"""What every byte of memory holds after one run of a program, exactly, without looking at bytes.

Memory is kept as segments. A segment says: the byte at address x holds content c at x + delta.
Content r below the number of ranks is rank r's input, at the address where it lay; the others are
sums of two contents, each with a delta of its own, made by one task. A copy passes segments on, cut
where its source is cut; segments that continue each other become one again. In the end the content
of an output unfolds into the input bytes that it is made of, each with how often it counts.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from hccl_py.enums import TaskKind
from hccl_py.program.kernels import kernel, kernel_calling, reading
from hccl_py.values import IntArray, count_up
from hccl_py.verifier.analysis.memory import MemoryIntervals, copied_range

__all__ = ["GARBAGE", "UNDEFINED", "Contents", "Made", "Segments", "contents_of"]

Int32s = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]

UNDEFINED, GARBAGE = -1, -2
"""Contents of memory that nobody wrote, and of what a finding has been made of already."""

READ, REDUCED_INTO, CLOBBERED, LOST = 0, 1, 2, 3

UNFOLDED = 20_000
"""Parts of a content up to which it is unfolded for a message."""


Part: TypeAlias = tuple[int, int]
"""A content and the address at which it is meant; of an input, its rank and the input's address."""


@dataclass(frozen=True)
class Made:
    """What a content is made of: how often each input counts, and the steps that added them up.

    A step has the sum and (the move that made it, what it was added to, what was added), oldest
    first. `is_whole` is false where there are too many parts to unfold them all.
    """

    counts: dict[Part, int]
    steps: tuple[tuple[Part, tuple[int, Part, Part]], ...]
    is_whole: bool

    def doubling(self, rank: int) -> int | None:
        """Return the first move that adds a part with a rank's input to another one with it."""
        has = {part: part[0] == rank for part in self.counts}
        for part, (move, left, right) in self.steps:
            if has[left] and has[right]:
                return move
            has[part] = has[left] or has[right]
        return None


@dataclass(frozen=True, eq=False)
class Written:
    """Segments in the order in which they were written: `move` put a content at bytes start ..
    stop, shifted by delta.
    """

    move: IntArray
    start: IntArray
    stop: IntArray
    content: IntArray
    delta: IntArray


@dataclass(frozen=True, eq=False)
class Segments:
    """Segments of memory in the order of their addresses: bytes start .. stop hold a content,
    shifted by delta; `writer` is the move that wrote them last (-1: none).
    """

    start: IntArray
    stop: IntArray
    content: IntArray
    delta: IntArray
    writer: IntArray


@dataclass(frozen=True, eq=False)
class Contents:
    """What the outputs hold, and what was noted on the way.

    `undefined` has rows (move, first address, last + 1) of reads of memory that nobody wrote,
    `into_undefined` of reductions into such, `clobbered` of reads of an input that the op itself
    has overwritten, `lost` (move, start, stop, earlier move) of writes over what the earlier one
    has put there and nobody has read since. `is_used` says of every move whether anything that it
    wrote was read or is output. `written` has all that was ever written, where it was asked for.
    """

    segments: Segments
    undefined: IntArray
    into_undefined: IntArray
    clobbered: IntArray
    lost: IntArray
    is_used: Bools
    ranks: int
    sums: Sums
    written: Written

    def are_sums(
        self,
        roots: IntArray,
        shift: IntArray,
        base: IntArray,
        right_moves: Bools,
        *,
        again: bool = False,
    ) -> Bools:
        """Whether content roots[k] is the reduction of all ranks' inputs, each once and at
        base[rank] + shift[k]; `again` says that more than once is as good (max, min).

        `right_moves` says whether a move reduces as the call says.
        """
        is_right = right_moves[self.sums.move]
        run = _are_sums.sized(len(roots) * (2 * self.ranks + 1))
        return run(reading(roots), reading(shift), reading(base), self.sums, is_right, again)

    def made_of(self, content: int, delta: int) -> Made:
        """Unfold a content at the address delta, as far as `UNFOLDED` parts."""
        sums, counts = self.sums, Counter({(content, delta): 1})
        order, steps = [(-content, delta)], {}
        while order and len(counts) < UNFOLDED:
            number, at = heappop(order)
            k = -number - self.ranks
            if k >= 0:
                left = int(sums.left[k]), at + int(sums.left_delta[k])
                right = int(sums.right[k]), at + int(sums.right_delta[k])
                steps[-number, at] = int(sums.move[k]), left, right
                for key in (left, right):
                    if key not in counts:
                        heappush(order, (-key[0], key[1]))
                    counts[key] += counts[-number, at]
        inputs = {key: count for key, count in sorted(counts.items()) if key[0] < self.ranks}
        return Made(inputs, tuple(steps.items())[::-1], not order)


class Sums(NamedTuple):
    """Sum k at x adds left at x + left_delta to right at x + right_delta; `move` made it."""

    left: Int32s
    left_delta: IntArray
    right: Int32s
    right_delta: IntArray
    move: Int32s


class Steps(NamedTuple):
    """The moves in order, and by move: addresses and intervals of both sides, and what it does."""

    sequence: Int32s
    src: IntArray
    src_stop: IntArray
    dst: IntArray
    dst_stop: IntArray
    src_interval: IntArray
    src_last: IntArray
    dst_interval: IntArray
    dst_last: IntArray
    reduces: Bools
    garbage: Bools
    clobberable: Int32s
    bounds: IntArray
    ranks: int


class SideContents(NamedTuple):
    """What one side of a move holds, segment by segment: where each begins in the side, its content
    and the delta that it has at the destination. One more offset is where the side ends.
    """

    offset: IntArray
    content: IntArray
    delta: IntArray


class SegmentLists(NamedTuple):
    """Segments in lists by interval; what the move under way reads, what is at its destination, and
    what adding makes of both; sums, notes, and counters.
    """

    head: Int32s
    start: IntArray
    content: Int32s
    delta: IntArray
    writer: Int32s
    following: Int32s
    read: SideContents
    there: SideContents
    added: SideContents
    sums: Sums
    notes: IntArray
    is_used: Bools
    counters: IntArray
    written: IntArray


FREE, SUMS, NOTES, FULL, WRITTEN = 0, 1, 2, 3, 4
"""Places in SegmentLists.counters: head of the free segments, sums, notes, whether room is full,
segments that were written.
"""


def contents_of(
    memory: MemoryIntervals,
    order: Int32s,
    copied: IntArray | None = None,
    *,
    keep_written: bool = False,
) -> Contents:
    """Follow the contents of memory through one copy of a program; `order` has its task rows.

    `copied` says where OUT begins in IN of each rank, where it begins with what IN has there.
    `keep_written` keeps every segment that was ever written.
    """
    steps = _steps(memory, order)
    accesses = int(
        (steps.src_last - steps.src_interval + steps.dst_last - steps.dst_interval).sum()
    )
    room = 4 * len(memory.intervals) + accesses + 256
    while True:
        lists = _segment_lists(memory, steps, room, copied, room if keep_written else 0)
        _follow.sized(accesses + len(steps.sequence))(steps, lists)
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
        segments,
        found[READ][:, :3],
        found[REDUCED_INTO][:, :3],
        found[CLOBBERED][:, :3],
        found[LOST],
        lists.is_used,
        memory.program.ranks,
        Sums(left[:made], left_delta[:made], right[:made], right_delta[:made], move[:made]),
        Written(*written),
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
    empty = [np.empty(room, np.int32) for _ in range(3)]
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
        sums=Sums(empty[0], deltas[0], empty[1], deltas[1], empty[2]),
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
    return SideContents(
        np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int64)
    )


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
    """Return the segments of all outputs; what nobody wrote is a segment without content."""
    first, stop = memory.owned("OUT")
    steps = int((stop - first).sum())
    count, columns = _listed.sized(steps)(first, stop, memory.intervals.start, lists)
    return Segments(*(column[:count] for column in columns))


@kernel
def _listed(
    first: IntArray, stop: IntArray, bounds: IntArray, lists: SegmentLists
) -> tuple[int, Any]:
    """List the segments of ranges of intervals; neighbours that continue each other become one."""
    room = len(lists.start) + len(lists.head)
    columns = np.empty((5, room), np.int64)
    n = 0
    for r in range(len(first)):
        begin = n
        for interval in range(first[r], stop[r]):
            entry = lists.head[interval]
            if entry < 0:
                columns[0, n], columns[1, n] = bounds[interval], bounds[interval + 1]
                columns[2, n], columns[3, n], columns[4, n] = -1, 0, -1
                n += 1
            while entry >= 0:
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


def _note(h: SegmentLists, what: int, move: int, start: int, stop: int, other: int) -> None:
    n = h.counters[NOTES]
    if n == len(h.notes):
        h.counters[FULL] = 1
        return
    h.notes[n, 0], h.notes[n, 1], h.notes[n, 4] = what, move, other
    h.notes[n, 2], h.notes[n, 3] = start, stop
    h.counters[NOTES] = n + 1


def _gather(s: Steps, h: SegmentLists, move: int, into: bool) -> int:
    """List the segments of one side of a move, the destination if `into`; return how many."""
    side = h.there if into else h.read
    begin, end = (s.dst[move], s.dst_stop[move]) if into else (s.src[move], s.src_stop[move])
    low, high = s.src_interval[move], s.src_last[move]
    if into:
        low, high = s.dst_interval[move], s.dst_last[move]
    what = REDUCED_INTO if into else READ
    shift = 0 if into else s.src[move] - s.dst[move]
    n = 0
    for interval in range(low, high):
        entry = h.head[interval]
        if entry < 0:
            _note(h, what, move, s.bounds[interval], s.bounds[interval + 1], -1)
            side.offset[n], side.content[n] = s.bounds[interval] - begin, GARBAGE
            side.delta[n] = 0
            n += 1
        while entry >= 0:
            behind = h.following[entry]
            stop = h.start[behind] if behind >= 0 else s.bounds[interval + 1]
            content = h.content[entry]
            if h.writer[entry] >= 0:
                h.is_used[h.writer[entry]] = True
            if content == UNDEFINED:
                _note(h, what, move, h.start[entry], stop, -1)
                content = GARBAGE
            elif (
                not into
                and s.clobberable[move] >= 0
                and (content != s.clobberable[move] or h.delta[entry] != 0)
            ):
                _note(h, CLOBBERED, move, h.start[entry], stop, -1)
            side.offset[n], side.content[n] = h.start[entry] - begin, content
            side.delta[n] = h.delta[entry] + shift
            n += 1
            entry = behind
    if n + 1 < len(side.offset):
        side.offset[n] = end - begin
    else:
        h.counters[FULL] = 1
    return n


def _add(s: Steps, h: SegmentLists, move: int) -> int:
    """List the sums of what is read and what is at the destination; return how many."""
    _gather(s, h, move, True)
    i, j, n, at = 0, 0, 0, 0
    end = s.dst_stop[move] - s.dst[move]
    while at < end:
        stop = min(h.read.offset[i + 1], h.there.offset[j + 1])
        left, right = h.there.content[j], h.read.content[i]
        content = GARBAGE
        if left >= 0 and right >= 0:
            made = h.counters[SUMS]
            if made == len(h.sums.left) or n + 1 >= len(h.added.offset):
                h.counters[FULL] = 1
                return 0
            h.sums.left[made], h.sums.left_delta[made] = left, h.there.delta[j]
            h.sums.right[made], h.sums.right_delta[made] = right, h.read.delta[i]
            h.sums.move[made] = move
            h.counters[SUMS] = made + 1
            content = s.ranks + made
        h.added.offset[n], h.added.content[n], h.added.delta[n] = at, content, 0
        n += 1
        at = stop
        if at == h.read.offset[i + 1]:
            i += 1
        if at == h.there.offset[j + 1]:
            j += 1
    h.added.offset[n] = end
    return n


def _store(s: Steps, h: SegmentLists, move: int, new: SideContents, n: int) -> None:
    """Write a list of segments over the destination, cut at the bounds of intervals."""
    begin, i = s.dst[move], 0
    for interval in range(s.dst_interval[move], s.dst_last[move]):
        entry = h.head[interval]
        while entry >= 0:
            behind = h.following[entry]
            stop = h.start[behind] if behind >= 0 else s.bounds[interval + 1]
            if h.writer[entry] >= 0 and not h.is_used[h.writer[entry]]:
                _note(h, LOST, move, h.start[entry], stop, h.writer[entry])
            h.following[entry] = h.counters[FREE]
            h.counters[FREE] = entry
            entry = behind
        h.head[interval] = -1
        low, high, last = s.bounds[interval] - begin, s.bounds[interval + 1] - begin, -1
        while i + 1 < n and new.offset[i + 1] <= low:
            i += 1
        k = i
        while k < n and new.offset[k] < high:
            content, delta = new.content[k], new.delta[k]
            if last < 0 or h.content[last] != content or h.delta[last] != delta:
                entry = h.counters[FREE]
                if entry < 0:
                    h.counters[FULL] = 1
                    return
                h.counters[FREE] = h.following[entry]
                h.start[entry] = begin + max(new.offset[k], low)
                h.content[entry], h.delta[entry] = content, delta
                h.writer[entry], h.following[entry] = move, -1
                if last < 0:
                    h.head[interval] = entry
                else:
                    h.following[last] = entry
                last = entry
            k += 1


def _log(s: Steps, h: SegmentLists, move: int, new: SideContents, n: int) -> None:
    """Keep what a move writes."""
    at = h.counters[WRITTEN]
    if at + n > len(h.written):
        h.counters[FULL] = 1
        return
    for k in range(n):
        h.written[at, 0], h.written[at, 3], h.written[at, 4] = move, new.content[k], new.delta[k]
        h.written[at, 1] = s.dst[move] + new.offset[k]
        h.written[at, 2] = s.dst[move] + new.offset[k + 1]
        at += 1
    h.counters[WRITTEN] = at


@kernel_calling(lambda: (_note, _gather, _add, _store, _log), allocates=False)
def _follow(s: Steps, h: SegmentLists) -> None:
    """Run the moves on segments, until the end or until the room is full."""
    for move in s.sequence:
        n = _gather(s, h, move, False)
        new = h.read
        if s.garbage[move]:
            new.offset[0], new.content[0], new.delta[0] = 0, GARBAGE, 0
            new.offset[1] = s.dst_stop[move] - s.dst[move]
            n = 1
        elif s.reduces[move] and h.counters[FULL] == 0:
            n = _add(s, h, move)
            new = h.added
        if h.counters[FULL] == 0:
            _store(s, h, move, new, n)
        if len(h.written):
            _log(s, h, move, new, n)
        if h.counters[FULL] != 0:
            break


@kernel
def _are_sums(
    roots: IntArray, shift: IntArray, base: IntArray, sums: Sums, is_right: Bools, again: bool
) -> Bools:
    """Whether each root adds up every rank's input, each once (with `again`, at least once), at
    base + shift and in right steps only.

    Each root is taken apart twice. First from the root down, breadth first: a sum hands its own
    delta plus that of the side to both of its sides. Whatever is met a second time with another
    delta, and every input with another delta than it should have, makes the root wrong; so whatever
    is below a right root has one delta. Then it is counted how often each part stands in the root:
    in descending order of numbers, because a sum has a higher number than both of its sides, so
    that all sums above a part hand on their counts before its turn comes.

    A root whose sides add up to another number of inputs than there are ranks needs no looking at.
    """
    ranks = len(base)
    total = ranks + len(sums.left)
    inputs = np.ones(total, np.int64)
    for k in range(len(sums.left)):
        both = inputs[sums.left[k]] + inputs[sums.right[k]]
        inputs[ranks + k] = min(both, 1 << 40)
    seen = np.full(total, -1, np.int32)
    delta = np.zeros(total, np.int64)
    counts = np.zeros(total, np.int64)
    below = np.empty(total, np.int64)
    result = np.zeros(len(roots), np.bool_)
    for r in range(len(roots)):
        if inputs[roots[r]] != ranks and not (again and inputs[roots[r]] > ranks):
            continue
        below[0], found, at, good = roots[r], 1, 0, True
        seen[roots[r]] = r
        delta[roots[r]] = 0
        while at < found and good:
            number = below[at]
            at += 1
            k = number - ranks
            if k < 0:
                good = delta[number] == base[number] + shift[r]
                continue
            for side, moved in (
                (sums.left[k], sums.left_delta[k]),
                (sums.right[k], sums.right_delta[k]),
            ):
                if seen[side] != r:
                    seen[side] = r
                    delta[side] = delta[number] + moved
                    below[found] = side
                    found += 1
                elif delta[side] != delta[number] + moved:
                    good = False
        if good:
            numbers = np.sort(below[:found])
            counts[numbers] = 0
            counts[roots[r]] = 1
            ended = 0
            for x in range(found - 1, -1, -1):
                number = numbers[x]
                k = number - ranks
                if k >= 0:
                    counts[sums.left[k]] += counts[number]
                    counts[sums.right[k]] += counts[number]
                    good = good and is_right[k]
                else:
                    ended += 1
                    good = good and (again or counts[number] == 1)
            good = good and ended == ranks
        result[r] = good
    return result
