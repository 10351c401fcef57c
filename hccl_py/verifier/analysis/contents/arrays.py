"""The columns that the loop over the moves reads and changes: memory as segments.

Memory is kept as segments. A segment says: the byte at address x holds content c at x + delta.
Content r below the number of ranks is rank r's input, at the address where it lay; the others are
sums of two contents, each with a delta of its own, made by one task. A copy passes segments on, cut
where its source is cut; segments that continue each other become one again. In the end the content
of an output unfolds into the input bytes that it is made of, each with how often it counts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hccl_py.values import IntArray

Int32s = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]

UNDEFINED, GARBAGE = -1, -2
"""Contents of memory that nobody wrote, and of what a finding has been made of already."""

READ, REDUCED_INTO, CLOBBERED, LOST = 0, 1, 2, 3
"""What is noted of a move."""

FREE, SUMS, NOTES, FULL, WRITTEN = 0, 1, 2, 3, 4
"""Places in SegmentLists.counters: head of the free segments, sums, notes, whether room is full,
segments that were written.
"""


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
