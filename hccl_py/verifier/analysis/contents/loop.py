"""The loop over the moves of a program: each reads, adds and writes segments of memory.

It costs the segments that moves read and overwrite, however long they are. All arrays have a fixed
room; where one is full the loop ends, and `contents_of` starts it again with more.
"""

from __future__ import annotations

from hccl_py.program.kernels import kernel_calling
from hccl_py.verifier.analysis.contents.arrays import (
    CLOBBERED,
    FREE,
    FULL,
    GARBAGE,
    LOST,
    NOTES,
    READ,
    REDUCED_INTO,
    SUMS,
    UNDEFINED,
    WRITTEN,
    SegmentLists,
    SideContents,
    Steps,
)


def _note(h: SegmentLists, what: int, move: int, start: int, stop: int, other: int) -> None:
    n = h.counters[NOTES]
    if n == len(h.notes):
        h.counters[FULL] = 1
        return
    h.notes[n, 0], h.notes[n, 1], h.notes[n, 4] = what, move, other
    h.notes[n, 2], h.notes[n, 3] = start, stop
    h.counters[NOTES] = n + 1


def _gather(s: Steps, h: SegmentLists, move: int, into: bool) -> int:
    """List the segments of one side of a move, the destination if `into`; return their number.

    Memory that was never written counts as garbage from here on, so that it is noted once.
    """
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
    """List the sums of the segments read and those at the destination; return their number."""
    _gather(s, h, move, True)
    # Both lists cover the same bytes: i and j are their current segments, and a sum begins at `at`,
    # wherever either list begins a segment.
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
    """Write `n` segments over the destination, cut at the bounds of intervals."""
    begin, i = s.dst[move], 0
    for interval in range(s.dst_interval[move], s.dst_last[move]):
        # Free the old segments; bytes that no move has read are lost.
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
        # Append the new ones that reach into the interval; segments that continue the last are one.
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
    """Append the segments that a move writes to the log."""
    at = h.counters[WRITTEN]
    if at + n > len(h.written):
        h.counters[FULL] = 1
        return
    for k in range(n):
        h.written[at, 0] = s.dst[move] + new.offset[k]
        h.written[at, 1] = s.dst[move] + new.offset[k + 1]
        h.written[at, 2], h.written[at, 3], h.written[at, 4] = new.content[k], new.delta[k], move
        at += 1
    h.counters[WRITTEN] = at


@kernel_calling(lambda: (_note, _gather, _add, _store, _log), allocates=False)
def run_moves(s: Steps, h: SegmentLists) -> None:
    """Run the moves in order, until the end or until an array is full.

    Before each move, the lists hold exactly the contents of memory after the moves before it.
    """
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
