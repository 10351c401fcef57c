"""The outputs as columns: the contents that they hold beside those that they should."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hccl_py.enums import ReduceOp
from hccl_py.values import IntArray, count_up
from hccl_py.verifier.analysis.contents import UNDEFINED, Contents, Segments
from hccl_py.verifier.analysis.meaning import EVERYONE, Expected
from hccl_py.verifier.analysis.memory import MemoryIntervals

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Outputs:
    """Runs of output bytes, each inside of one segment of memory and one expected range.

    Bytes start .. stop (addresses) of `rank` belong to expected range `row`, and begin `place`
    bytes into all ranges together. They should hold the input of `source` from `offset` on. They
    hold `content`, which lies at address x + `shift` for offset x. `writer` is the move that wrote
    them last (-1: none). Runs made from garbage are not wrong: they have a finding of their own.
    """

    row: IntArray
    place: IntArray
    rank: IntArray
    source: IntArray
    offset: IntArray
    start: IntArray
    stop: IntArray
    content: IntArray
    shift: IntArray
    writer: IntArray
    is_wrong: Mask

    def overlaps(self, chosen: IntArray, other: Outputs) -> Mask:
        """Mark the chosen runs that share a byte with a wrong one in other outputs of the op."""
        wrong = np.flatnonzero(other.is_wrong)
        first, stop = other.place[wrong], (other.place + other.stop - other.start)[wrong]
        size = (self.stop - self.start)[chosen]
        before = np.searchsorted(stop, self.place[chosen], "right")
        until = np.searchsorted(first, self.place[chosen] + size, "left")
        shared: Mask = before < until
        return shared


def outputs_of(contents: Contents, expected: Expected) -> Outputs:
    """Compare the contents of the outputs with the expected ones."""
    program, spaces = contents.memory.program, contents.memory.spaces
    base, room = np.zeros((2, program.ranks), np.int64)
    if "OUT" in program.buffers:
        out = program.buffers.index("OUT")
        base, room = spaces.base[:, out], spaces.size[:, out]
    begin = base[expected.rank] + np.minimum(expected.start, room[expected.rank])
    end = base[expected.rank] + np.minimum(expected.stop, room[expected.rank])
    row, start, stop, segment = _overlaid(begin, end, contents.segments)
    before = np.cumsum(end - begin) - (end - begin)
    content = contents.segments.content[segment]
    offset = expected.offset[row] + start - begin[row]
    shift = np.where(content == UNDEFINED, 0, start + contents.segments.delta[segment] - offset)
    rank, source = expected.rank[row], expected.source[row]
    wrong = ~_is_right(contents, content, source, shift)
    wrong &= (content >= 0) | (content == UNDEFINED)
    if program.op.name == "broadcast":  # in HCCL it has one buffer
        wrong &= (rank != source) | (content != UNDEFINED)
    return Outputs(
        row=row,
        place=before[row] + start - begin[row],
        rank=rank,
        source=source,
        offset=offset,
        start=start,
        stop=stop,
        content=content,
        shift=shift,
        writer=contents.segments.writer[segment],
        is_wrong=wrong,
    )


def right_moves(memory: MemoryIntervals) -> Mask:
    """Mark the transfers that reduce with the call's op."""
    tasks, op = memory.program.tasks, memory.program.op
    reduce = tasks.table.reduce[tasks.instruction[memory.transfers.row]]
    right: Mask = np.equal(reduce, -1 if op.reduce is None else int(op.reduce))
    return right


def input_bases(memory: MemoryIntervals) -> IntArray:
    """Return the address at which each rank's input begins."""
    names = memory.program.buffers
    if "IN" not in names:
        return np.zeros(memory.program.ranks, np.int64)
    base: IntArray = memory.spaces.base[:, names.index("IN")]
    return base


def _is_right(contents: Contents, content: IntArray, source: IntArray, shift: IntArray) -> Mask:
    base, op = input_bases(contents.memory), contents.memory.program.op
    of_one = source != EVERYONE
    right = of_one & (content == source) & (shift == base[np.maximum(source, 0)])
    sums = np.flatnonzero(~of_one & (content >= 0))
    if len(sums):
        keys = np.stack([content[sums], -shift[sums]])
        roots, which = np.unique(keys, axis=1, return_inverse=True)
        is_sum = contents.are_sums(
            roots[0],
            roots[1],
            base,
            right_moves(contents.memory),
            again=op.reduce in (ReduceOp.MAX, ReduceOp.MIN),
        )
        right[sums] = is_sum[which.reshape(-1)]
    found: Mask = right
    return found


def _overlaid(
    begin: IntArray, end: IntArray, segments: Segments
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Cut ranges by the segments that cover them; return the range, start, stop and segment of
    every run.
    """
    if not len(segments.start) or not len(begin):
        none = np.zeros(0, np.int64)
        return none, none, none, none
    low = np.searchsorted(segments.start, begin, side="right") - 1
    count = np.maximum(np.searchsorted(segments.start, end, side="left") - low, 0) * (end > begin)
    row = np.repeat(np.arange(len(begin)), count)
    segment = low[row] + count_up(count)
    start = np.maximum(begin[row], segments.start[segment])
    stop = np.minimum(end[row], segments.stop[segment])
    return row, start, stop, segment
