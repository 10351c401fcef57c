"""The columns that the loop over the moves reads and changes: memory as segments.

Memory is kept as segments. A segment says: the byte at address x holds content c at x + delta.
Content r below the number of ranks is rank r's input, at the address where it lay; the others are
sums of two contents, each with a delta of its own, made by one task. A copy passes segments on, cut
where its source is cut; segments that continue each other become one again. In the end the content
of an output unfolds into the input bytes that it is made of, and the times that each counts.

Functions of the loop name the columns by a letter each: `s` is the `Steps`, which never change, and
`h` the `SegmentLists`, which do.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hccl_py.values import IntArray

Int32s = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]

UNDEFINED, GARBAGE = -1, -2
"""Contents of memory that was never written, and of memory that has a finding already."""

READ, REDUCED_INTO, CLOBBERED, LOST = 0, 1, 2, 3
"""Kinds of notes about moves; those of `Contents`."""

FREE, SUMS, NOTES, FULL, WRITTEN = 0, 1, 2, 3, 4
"""Places in SegmentLists.counters: head of the free segments, number of sums and of notes, 1 where
an array is full, number of segments in the log.
"""


class Sums(NamedTuple):
    """Sum k at x adds left at x + left_delta to right at x + right_delta; `move` made it."""

    left: Int32s
    left_delta: IntArray
    right: Int32s
    right_delta: IntArray
    move: Int32s


class Steps(NamedTuple):
    """The moves in order, and by move: addresses src .. src_stop and dst .. dst_stop, intervals
    src_interval .. src_last - 1 and dst_interval .. dst_last - 1, `reduces`, `garbage` (its result
    means nothing), and `clobberable`: the rank whose input it should read, where IN and OUT share
    memory, else -1. Interval i begins at bounds[i].
    """

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
    """The segments of one side of a move: the offset from the side's beginning, the content, and
    the delta at the destination. One more offset ends the last one.
    """

    offset: IntArray
    content: IntArray
    delta: IntArray


class SegmentLists(NamedTuple):
    """Segments in linked lists by interval: from head[interval] along `following`, in the order of
    their `start`, -1 at the end; each ends where the next one, or its interval, does. `writer` is
    the move that wrote it, -1 for none. Free entries form a list, too.

    `read`, `there` and `added` are the segments that the current move reads, those at its
    destination, and their sums. `is_used` marks moves of which a byte was read. `notes` are rows of
    (kind, move, start, stop, other move), `written` the log: (start, stop, content, delta, move).
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
