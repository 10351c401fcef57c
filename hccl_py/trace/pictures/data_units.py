"""The units of a program's data: the largest pieces of its buffers that no task and no output cuts.

A task or an output moves bytes, so a cut in the bytes at one end is a cut at the other end, too:

    IN    │   a   │  b  │        task: IN[0:8] to CCL[4:12]        the output cuts IN at 5,
    CCL       │   a   │  b  │                                      so CCL is cut at 9
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator
from typing import TypeAlias

import numpy as np

from hccl_py.enums import moves_data
from hccl_py.errors import ParameterError
from hccl_py.program.describe import ByteRange, ranges_of
from hccl_py.program.program import Program
from hccl_py.verifier.analysis.meaning import EVERYONE, Expected

MAX_UNITS = 200_000
"""Cuts that all moves together hand from one end to the other."""


class Units:
    """The units of all ranks' buffers, numbered from 0 in each; where inputs are reduced, the units
    of all ranks' IN are the same. ParameterError for a program with too many for a picture.

    `cuts` has the offsets in bytes at which each slot is cut, in order: a unit goes from one to the
    next. A slot is a buffer of a rank, or `shared`, a buffer of every rank.
    """

    def __init__(self, program: Program, meaning: Expected) -> None:
        reduces = bool((meaning.source == EVERYONE).any())
        self._buffers = len(program.buffers)
        self._shared = program.buffers.index("IN") if reduces else None
        self.cuts = _carried(
            {end for move in _moves(program, meaning) for end in self._ends(*move)}
        )

    def slot(self, rank: int, buffer: int) -> int:
        """Return the number of a slot."""
        return buffer if buffer == self._shared else rank * self._buffers + buffer

    def within(self, memory: ByteRange) -> range:
        """Return the numbers of the units in a range that a task or an output has."""
        cuts = self.cuts[self.slot(memory.rank, memory.buffer)]
        return range(bisect_left(cuts, memory.start), bisect_left(cuts, memory.stop))

    def _ends(self, src: ByteRange, dst: ByteRange) -> tuple[_End, _End]:
        size, shift = src.stop - src.start, dst.start - src.start
        slot, other = self.slot(src.rank, src.buffer), self.slot(dst.rank, dst.buffer)
        return (
            (slot, src.start, src.stop, other, shift),
            (other, dst.start, dst.start + size, slot, -shift),
        )


_End: TypeAlias = tuple[int, int, int, int, int]
"""An end of a move: a slot, start and stop in bytes, the slot at the other end, and the distance to
the offsets there.
"""


def _carried(ends: Collection[_End]) -> dict[int, list[int]]:
    """Return the cuts of every slot, in order.

    `todo` holds cuts that are not yet looked at. Each goes through every move that has it inside,
    in both directions, so at the end no move has a cut at one end alone.
    """
    slot, start, stop, other, shift = np.array([*ends], np.int64).T
    todo = {*zip(slot.tolist(), start.tolist(), strict=True)}
    todo |= {*zip(slot.tolist(), stop.tolist(), strict=True)}
    by_slot = {int(s): np.flatnonzero(slot == s) for s in np.unique(slot)}
    cuts: dict[int, set[int]] = {s: set() for s in by_slot}
    crossed = 0
    while todo:
        at, cut = todo.pop()
        cuts[at].add(cut)
        rows = by_slot[at]
        inside = rows[(start[rows] < cut) & (cut < stop[rows])]
        crossed += len(inside)
        if crossed > MAX_UNITS:
            raise ParameterError(
                f"The tasks cut what they move in more than {MAX_UNITS} pieces, too many for a "
                "picture.",
                "Record fewer elements.",
            )
        for to, far in zip(other[inside].tolist(), (cut + shift[inside]).tolist(), strict=True):
            if far not in cuts[to]:
                todo.add((to, far))
    return {s: sorted(places) for s, places in cuts.items()}


def _moves(program: Program, meaning: Expected) -> Iterator[tuple[ByteRange, ByteRange]]:
    """Yield source and destination of all tasks that move data, and of all outputs."""
    tasks = program.tasks
    for row in np.flatnonzero(moves_data(tasks.kind) & (tasks.size > 0)).tolist():
        yield ranges_of(program, row)
    into, out = program.buffers.index("IN"), program.buffers.index("OUT")
    columns = meaning.rank, meaning.start, meaning.stop, meaning.source, meaning.offset
    for rank, start, stop, source, offset in zip(*(c.tolist() for c in columns), strict=True):
        yield (
            ByteRange(source, into, offset, offset + stop - start),
            ByteRange(rank, out, start, stop),
        )
