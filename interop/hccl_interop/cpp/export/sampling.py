"""Samples: the same call at other sizes, as long as only offsets and sizes differ.

An executor's program changes in offsets and sizes, and becomes another one where a threshold is
passed or data no longer fits the buffers. From the exported size on, larger and smaller counts are
recorded until the program is another one, and then some more between the two ends.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from hccl_interop.cpp.export.memory import USER
from hccl_py.errors import HcclError
from hccl_py.program.instruction import Instruction
from hccl_py.program.program import Program
from hccl_py.values import PerRank, values_of

_MOST_COUNT = 1 << 34
ALIGN = 128
"""Bytes to which chunks are rounded up."""

_STEP = 16
"""The factor from one count to the next on the way to an end."""

_TELLING = 24
"""Counts to tell chunks from each other."""

_WITHIN = 8
"""Counts recorded from one end to the other."""

_MOST_SMALL = 5000
"""Elements up to which counts are small."""

_HELD_OUT, _MIXED = 12, 4
"""Counts with all sorts of rests, small ones and large ones: those that test formulas, and more of
them that formulas are made from.
"""

_GOLDEN = (5**0.5 - 1) / 2
"""Multiples of it, without their whole part, lie spread between 0 and 1."""

_SMALL = 24
"""Counts from the least one on, which tell parts of whole elements from each other."""


@dataclass(frozen=True)
class Samples:
    """Programs that differ in offsets and sizes only, the exported one first; `least` and `most`
    are the elements between which that holds. Formulas are made from `every`, and tested on
    `others`.
    """

    every: tuple[Program, ...]
    least: int
    most: int
    others: tuple[Program, ...] = ()

    @property
    def exported(self) -> Program:
        """The program of the exported size."""
        return self.every[0]


def sample_sizes(
    record: Callable[[int], Program], count: int, room: int, chunks: Sequence[int] = ()
) -> Samples:
    """Record one call at several sizes of at most `room` elements. `chunks` are numbers of chunks
    that the data may be cut into.
    """
    search = _Search(record, count, min(room, _MOST_COUNT))
    least, most = search.end(-1), search.end(1)
    while True:
        counts = {*search.between(least, most), *search.telling(least, most, chunks)} - {count}
        tests = {*held_out(least, most)} - counts - {count}
        inside, others = search.samples(counts), search.samples(tests)
        unlike = [n for n, sample in (inside | others).items() if sample is None]
        if not unlike:
            programs = [[s for s in part.values() if s is not None] for part in (inside, others)]
            return Samples((search.first, *programs[0]), least, most, tuple(programs[1]))
        # Another program between the two ends: the nearest one is an end.
        below, above = ([n for n in unlike if (n > count) is side] for side in (False, True))
        least = search.last_before(max(below)) if below else least
        most = search.last_before(min(above)) if above else most


class _Search:
    """The recorded counts, and their comparison with the exported one."""

    def __init__(self, record: Callable[[int], Program], count: int, room: int) -> None:
        self._record, self._count, self._room = record, count, room
        self.first = record(count)
        self._outline = [*_outline(self.first)]
        self._seen: dict[int, Program | None] = {}
        self._rounds: dict[int, int] = {}  # the elements of the first of several rounds

    def sample(self, count: int) -> Program | None:
        """Return the program of a count; None where the program is another one."""
        if count not in self._seen:
            self._seen[count] = self._recorded(count)
        return self._seen[count]

    def samples(self, counts: Iterable[int]) -> dict[int, Program | None]:
        """Return the programs of some counts, in their order."""
        return {count: self.sample(count) for count in sorted(counts)}

    def _recorded(self, count: int) -> Program | None:
        if not 1 <= count <= self._room:
            return None
        try:
            program = self._record(count)
        except HcclError:
            return None
        if program.rounds > 1:
            self._rounds[count] = _first_round(program)
        pairs = zip_longest(_outline(program), self._outline)
        return program if all(one == other for one, other in pairs) else None

    def end(self, direction: int) -> int:
        """Return the last count in a direction up to which programs are the same."""
        inside = self._count
        while True:
            further = inside * _STEP if direction > 0 else inside // _STEP
            further = min(max(further, 1), self._room)
            if further == inside:
                return inside
            if self.sample(further) is None:
                return self.last_before(further, inside)
            inside = further

    def last_before(self, outside: int, inside: int = 0) -> int:
        """Return the last count of the same program, by bisection: `outside` has another one, and
        `inside` the same, by default the exported count.
        """
        inside = inside or self._count
        guess = self._rounds.get(outside, 0)
        tried = [n for n in (guess, guess + 1) if inside < n < outside]
        while abs(outside - inside) > 1:
            middle = tried.pop(0) if tried else (inside + outside) // 2
            if self.sample(middle) is None:
                outside = middle
            else:
                inside = middle
        return inside

    def telling(self, least: int, most: int, chunks: Sequence[int]) -> list[int]:
        """Return small counts that tell chunks from each other: each has another last chunk that is
        not empty, in one cut or in two.
        """
        unit = self.first.op.unit
        lines = {n * k for n in (1, *chunks) for k in range(1, max(chunks, default=0) + 1)}
        counts = {line * ALIGN // unit - 1 for line in lines}
        return _thinned(sorted(number for number in counts if least <= number <= most))

    def between(self, least: int, most: int) -> list[int]:
        """Return counts from one end to the other, odd ones among them."""
        steps = np.geomspace(least, most, _WITHIN)
        counts = {int(number) | (k & 1) for k, number in enumerate(steps.tolist())}
        near = {self._count + 1, self._count * 2 - 1, self._count * 3 // 2, most - 1, most}
        small = {*range(least, least + _SMALL)} | spread(least, most, _HELD_OUT, _MIXED)
        return sorted(number for number in counts | near | small if least <= number <= most)


def held_out(least: int, most: int) -> list[int]:
    """Return counts between two ends that formulas are not made from, to test them."""
    return sorted(spread(least, most, 0, _HELD_OUT) | {most, max(most - 1, least)})


def spread(least: int, most: int, before: int, number: int) -> set[int]:
    """Return twice a number of counts between two ends, small ones and large ones, with all sorts
    of rests; `before` is the number of those that another call has.
    """
    ends = most - least, min(most - least, _MOST_SMALL)
    turns = range(before + 1, before + number + 1)
    return {int(least + length * (k * _GOLDEN % 1)) for length in ends for k in turns}


def _thinned(counts: list[int]) -> list[int]:
    """Return at most `_TELLING` of the counts, the smallest among them."""
    few = _TELLING // 2
    step = -(-(len(counts) - few) // few) if len(counts) > _TELLING else 1
    return counts[:few] + counts[few::step]


def _first_round(program: Program) -> int:
    """Return the elements of the first of several rounds: so far ahead in the user's memory is the
    data of the second one. It is a guess where rounds differ in more.
    """
    user = [k for k, name in enumerate(program.buffers) if name in USER]
    nearest: dict[tuple[int, int], int] = {}
    for one in (one for batch in program.batches for one in batch.instructions):
        if one.kind.moves_data and one.round < 2:
            sides = (one.src_buffer, one.src_offset), (one.dst_buffer, one.dst_offset)
            for buffer, offset in sides:
                if buffer in user:
                    key, low = (buffer, one.round), int(np.min(values_of(offset)))
                    nearest[key] = min(low, nearest.get(key, low))
    ahead = [nearest[k, 1] - nearest[k, 0] for k in user if {(k, 0), (k, 1)} <= nearest.keys()]
    return min(ahead, default=0) // program.op.unit


def _outline(program: Program) -> Iterator[Hashable]:
    """Yield all but offsets and sizes, part by part."""
    transports = program.transports
    yield program.buffers, program.rounds
    for array in (transports.rank, transports.peer, transports.plane, transports.notifies):
        yield array.tobytes()
    for batch in program.batches:
        yield batch.ranks.tobytes()
        yield from map(outline_of, batch.instructions)


def outline_of(one: Instruction) -> Hashable:
    """Return all of an instruction but offsets and size."""
    shared = (one.kind, one.stream, one.src_buffer, one.dst_buffer, one.reduce, one.dtype)
    columns = one.cell, one.end, one.peer
    return *shared, *(c.values().tobytes() if isinstance(c, PerRank) else c for c in columns)
