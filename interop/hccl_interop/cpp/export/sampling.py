"""Samples: the same call at other sizes, as long as only offsets and sizes differ.

An executor's program changes in offsets and sizes, and becomes another one where a threshold is
passed or data no longer fits the buffers. From the exported size on, larger and smaller counts are
recorded until the program is another one, and then some more between the two ends.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hccl_py.errors import HcclError
from hccl_py.program.instruction import Instruction
from hccl_py.program.program import Program
from hccl_py.values import values_of

_MOST_COUNT = 1 << 34
ALIGN = 128
"""Bytes to which chunks are rounded up."""

_TELLING = 48
"""Counts to tell chunks from each other."""

_WITHIN = 8
"""Counts recorded from one end to the other."""

_SMALL = 24
"""Counts from the least one on, which tell parts of whole elements from each other."""


@dataclass(frozen=True)
class Samples:
    """Programs that differ in offsets and sizes only, the exported one first; `least` and `most`
    are the elements between which that holds.
    """

    every: tuple[Program, ...]
    least: int
    most: int

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
    counts = {*search.between(least, most), *search.telling(least, most, chunks)} - {count}
    found = [search.sample(number) for number in sorted(counts)]
    inside = [sample for sample in found if sample is not None]
    return Samples((search.first, *inside), least, most)


class _Search:
    """The recorded counts, and their comparison with the exported one."""

    def __init__(self, record: Callable[[int], Program], count: int, room: int) -> None:
        self._record, self._count, self._room = record, count, room
        self.first = record(count)
        self._outline = _outline(self.first)
        self._seen: dict[int, Program | None] = {}

    def sample(self, count: int) -> Program | None:
        """Return the program of a count; None where the program is another one."""
        if count not in self._seen:
            self._seen[count] = self._recorded(count)
        return self._seen[count]

    def _recorded(self, count: int) -> Program | None:
        if not 1 <= count <= self._room:
            return None
        try:
            program = self._record(count)
        except HcclError:
            return None
        return program if _outline(program) == self._outline else None

    def end(self, direction: int) -> int:
        """Return the last count in a direction up to which programs are the same."""
        inside, factor = self._count, 2
        outside = None
        while outside is None:
            further = inside * factor if direction > 0 else inside // factor
            further = min(max(further, 1), self._room)
            if further == inside:
                return inside
            if self.sample(further) is None:
                outside = further
            else:
                inside = further
        while abs(outside - inside) > 1:
            middle = (inside + outside) // 2
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
        near = {self._count + 1, self._count * 2 - 1, self._count * 3 // 2}
        small = range(least, least + _SMALL)
        return sorted(number for number in counts | near | {*small} if least <= number <= most)


def _thinned(counts: list[int]) -> list[int]:
    """Return at most `_TELLING` of the counts, the smallest among them."""
    few = _TELLING // 2
    step = -(-(len(counts) - few) // few) if len(counts) > _TELLING else 1
    return counts[:few] + counts[few::step]


def _outline(program: Program) -> str:
    """Return a hash of all but offsets and sizes."""
    found = hashlib.sha256(repr((program.buffers, program.rounds)).encode())
    transports = program.transports
    for array in (transports.rank, transports.peer, transports.plane, transports.notifies):
        found.update(np.ascontiguousarray(array).tobytes())
    for batch in program.batches:
        found.update(batch.ranks.tobytes())
        for i in batch.instructions:
            found.update(outline_of(i))
    return found.hexdigest()


def outline_of(one: Instruction) -> bytes:
    """Return all of an instruction but offsets and size."""
    shared = (int(one.kind), one.stream, one.src_buffer, one.dst_buffer, one.reduce, one.dtype)
    columns = (np.asarray(values_of(column)).tobytes() for column in (one.cell, one.end, one.peer))
    return repr(shared).encode() + b"".join(columns)
