"""Offsets and sizes in the words of an algorithm: slots of the data, chunks of a slot, parts of a
chunk.

An offset of a memory is `slot * bytes`, plus where a chunk of `bytes` begins, plus where a part of
that chunk begins; `bytes` is what the call's count stands for. A size is a number of slots, or some
chunks in a row. Where all samples agree on such numbers, the code is right for other sizes as well.
Otherwise offsets and sizes are those of the exported call.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from hccl_interop.cpp.export.sampling import ALIGN, Samples, SizedProgram
from hccl_py.program.instruction import Instruction
from hccl_py.values import IntArray, values_of

_LEAST_SAMPLES = 4
"""SizeFields that must agree before others are believed to."""


class DataCut(NamedTuple):
    """Data in so many chunks, each in so many parts; 1 is not cut."""

    chunks: int
    parts: int


class Fields(NamedTuple):
    """How source, destination and size of a step are computed, and their numbers by rank."""

    layouts: tuple[str, ...]
    numbers: dict[str, IntArray]


class SizeFields(Protocol):
    """Gives the fields of data tasks."""

    @property
    def is_fixed(self) -> bool:
        """Whether they are those of one size."""
        ...

    def fields(self, batch: int, number: int) -> Fields:
        """Return the fields of an instruction."""
        ...

    def is_empty(self, batch: int, number: int) -> bool:
        """Whether an instruction moves no bytes, at no rank and at no size."""
        ...


@dataclass(frozen=True)
class FixedSizes:
    """Bytes as they are at the exported size."""

    sample: SizedProgram

    @property
    def is_fixed(self) -> bool:
        """Whether they are those of one size."""
        return True

    def fields(self, batch: int, number: int) -> Fields:
        """Return the fields of an instruction."""
        ranks = len(self.sample.program.batches[batch].ranks)
        one = self.sample.program.batches[batch].instructions[number]
        numbers = {"src": one.src_offset, "dst": one.dst_offset, "size": one.size}
        return Fields(("fixed",), {n: np.full(ranks, values_of(v)) for n, v in numbers.items()})

    def is_empty(self, batch: int, number: int) -> bool:
        """Whether an instruction moves no bytes at any rank."""
        return not self.fields(batch, number).numbers["size"].any()


@dataclass(frozen=True)
class ScaledSizes:
    """Slots, chunks and parts, by layouts that all samples agree on, in the order of preference."""

    samples: tuple[SizedProgram, ...]
    layouts: tuple[DataCut, ...]

    @property
    def is_fixed(self) -> bool:
        """Whether they are those of one size."""
        return False

    def fields(self, batch: int, number: int) -> Fields:
        """Return the fields of an instruction."""
        found = self.found(batch, number, self.layouts)
        assert found is not None, "sizes_of has tried all"
        return found

    def is_empty(self, batch: int, number: int) -> bool:
        """Whether an instruction moves no bytes, at no rank and at no size."""
        return not self._columns(batch, number).size.any()

    def found(self, batch: int, number: int, layouts: Sequence[DataCut]) -> Fields | None:
        """Return the fields by the first layout that fits; None where none does."""
        table = self._columns(batch, number)
        for layout in layouts:
            fields = self._ruler(layout).fields(table)
            if fields is not None:
                return fields
        return None

    def _columns(self, batch: int, number: int) -> _Columns:
        if (batch, number) not in self._known:
            ones = [sample.program.batches[batch].instructions[number] for sample in self.samples]
            ranks = len(self.samples[0].program.batches[batch].ranks)
            names = ("src_offset", "dst_offset", "size")
            self._known[batch, number] = _Columns(*(_column(ones, name, ranks) for name in names))
        return self._known[batch, number]

    @cached_property
    def _known(self) -> dict[tuple[int, int], _Columns]:
        return {}

    def _ruler(self, layout: DataCut) -> _Ruler:
        if layout not in self._rulers:
            self._rulers[layout] = _Ruler(layout, self._bytes)
        return self._rulers[layout]

    @cached_property
    def _rulers(self) -> dict[DataCut, _Ruler]:
        return {}

    @cached_property
    def _bytes(self) -> tuple[int, ...]:
        unit = self.samples[0].program.op.unit
        return tuple(sample.count * unit for sample in self.samples)


class _Columns(NamedTuple):
    """Bytes by sample and rank."""

    src: IntArray
    dst: IntArray
    size: IntArray


def _column(ones: Sequence[Instruction], name: str, ranks: int) -> IntArray:
    return np.stack([np.full(ranks, values_of(getattr(one, name))) for one in ones])


class _Place(NamedTuple):
    """Where something begins, as a sum: slots, where a chunk begins and a part of it, strides as
    long as the first chunk, and bytes.
    """

    slot: int = 0
    chunk: int = 0
    part: int = 0
    stride: int = 0
    base: int = 0


class _Ruler:
    """Measures bytes, one number per sample, in slots, chunks and parts."""

    def __init__(self, layout: DataCut, sizes: Sequence[int]) -> None:
        self._layout = layout
        self._name = f"{layout.chunks}/{layout.parts}"
        self._bytes = np.array(sizes, np.int64)
        marks = np.array([_begins(size, layout) for size in sizes], np.int64)
        self._marks = marks  # [samples, chunks, parts]
        self._places: dict[bytes, tuple[int, int]] = {}
        for chunk in range(layout.chunks):
            for part in range(layout.parts):
                key = np.ascontiguousarray(marks[:, chunk, part]).tobytes()
                self._places.setdefault(key, (chunk, part))
        self._stride = marks[:, 1, 0] if layout.chunks > 1 else self._bytes
        self._seen: dict[bytes, _Place | None] = {}

    def fields(self, table: _Columns) -> Fields | None:
        """Return the fields of a data task; None where they are no such numbers."""
        src, dst = self._offsets(table.src), self._offsets(table.dst)
        if src is None or dst is None:
            return None
        size = self._whole(table.size)
        for name, at in (("src", src), ("dst", dst)):
            size = size or self._run(table.size, at, name)
        size = size or self._own(table.size)
        if size is None:
            return None
        numbers = {
            f"{side}_{n}": v for side, at in (("src", src), ("dst", dst)) for n, v in at.items()
        }
        return Fields((self._name, size.layouts[0]), numbers | size.numbers)

    def _offsets(self, values: IntArray) -> dict[str, IntArray] | None:
        found = [self._offset(np.ascontiguousarray(column)) for column in values.T]
        if any(place is None for place in found):
            return None
        rows = np.array(found, np.int64)
        return dict(zip(_Place._fields, rows.T, strict=True))

    def _offset(self, values: IntArray) -> _Place | None:
        key = values.tobytes()
        if key not in self._seen:
            self._seen[key] = self._measured(values)
        return self._seen[key]

    def _measured(self, values: IntArray) -> _Place | None:
        """Return a place in slots and chunks; else in strides, or one that is always the same."""
        most = int((values // self._bytes).min())
        for slot in (most, most - 1):
            place = self._places.get((values - slot * self._bytes).tobytes()) if slot >= 0 else None
            if place is not None:
                return _Place(slot, *place)
        strides = int(values[0] // self._stride[0])
        if (values == strides * self._stride).all():
            return _Place(stride=strides)
        if (values == values[0]).all():
            return _Place(base=int(values[0]))
        return None

    def _whole(self, values: IntArray) -> Fields | None:
        """Return sizes that are a number of slots."""
        count = values[0] // self._bytes[0]
        if (values != count * self._bytes[:, None]).any():
            return None
        return Fields(("slots",), {"size": count})

    def _own(self, values: IntArray) -> Fields | None:
        """Return sizes that are those of one chunk each, wherever they lie."""
        ends = np.concatenate([self._marks[:, 1:, 0], self._bytes[:, None]], axis=1)
        chunks = (ends - self._marks[:, :, 0]).T
        found = [
            next((k for k, chunk in enumerate(chunks) if (chunk == column).all()), None)
            for column in values.T
        ]
        if any(number is None for number in found):
            return None
        number = np.array(found, np.int64)
        return Fields(("own",), {"size_chunk": number, "size": np.ones_like(number)})

    def _run(self, values: IntArray, at: dict[str, IntArray], side: str) -> Fields | None:
        """Return sizes that are some parts or chunks in a row, from where one side begins."""
        ends = self._bytes[:, None] * at["slot"] + self._marks[:, at["chunk"], at["part"]]
        for level in ("chunk", "part"):
            counts = [
                self._count(values[:, r] + ends[:, r], at, r, level) for r in range(len(ends.T))
            ]
            if all(count is not None for count in counts):
                return Fields((f"{level}s of {side}",), {"size": np.array(counts, np.int64)})
        return None

    def _count(self, end: IntArray, at: dict[str, IntArray], rank: int, level: str) -> int | None:
        """Return how many parts or chunks lie between a place and an end."""
        slot, chunk, part = (int(at[name][rank]) for name in ("slot", "chunk", "part"))
        end = end - slot * self._bytes
        marks = self._marks
        if level == "part" and self._layout.parts > 1:
            stops = [*marks[:, chunk, part:].T, self._stop(chunk)]
        elif part == 0:
            stops = [*marks[:, chunk:, 0].T, self._bytes]
        else:
            return None
        return next((k for k, stop in enumerate(stops) if (stop == end).all()), None)

    def _stop(self, chunk: int) -> IntArray:
        last = chunk + 1 == self._layout.chunks
        found: IntArray = self._bytes if last else self._marks[:, chunk + 1, 0]
        return found


def _begins(size: int, layout: DataCut) -> list[list[int]]:
    """Return where the parts of all chunks begin."""
    chunks = _cut(0, size, layout.chunks)
    return [[begin for begin, _ in _cut(start, length, layout.parts)] for start, length in chunks]


def _cut(start: int, size: int, count: int) -> list[tuple[int, int]]:
    each = (size + count - 1) // count
    each = (each + ALIGN - 1) // ALIGN * ALIGN
    begins = [min(k * each, size) for k in range(count)]
    return [(start + begin, min(each, size - begin)) for begin in begins]


def sizes_of(samples: Samples, dimensions: Sequence[int]) -> SizeFields:
    """Return offsets and sizes for all sizes of the samples, or for the exported one where they
    cannot be found; `dimensions` are numbers that data may be cut into.
    """
    if len(samples.every) < _LEAST_SAMPLES:
        return FixedSizes(samples.exported)
    scaled = ScaledSizes(samples.every, ())
    chosen: list[DataCut] = []
    left = [
        (number, k)
        for number, batch in enumerate(samples.exported.program.batches)
        for k, one in enumerate(batch.instructions)
        if one.kind.moves_data
    ]
    while left:
        best, rest = _best(scaled, left, _layouts(dimensions))
        if len(rest) == len(left):
            return FixedSizes(samples.exported)
        chosen.append(best)
        left = rest
    return ScaledSizes(samples.every, tuple(chosen) or (DataCut(1, 1),))


def _layouts(dimensions: Sequence[int]) -> list[DataCut]:
    """Return layouts, the plainest first."""
    numbers = sorted({number for number in dimensions if number > 1})
    return [
        DataCut(1, 1),
        *(DataCut(n, 1) for n in numbers),
        *(DataCut(a, b) for a in numbers for b in numbers),
    ]


def _best(
    scaled: ScaledSizes, wanted: Sequence[tuple[int, int]], layouts: Sequence[DataCut]
) -> tuple[DataCut, list[tuple[int, int]]]:
    """Return the layout that fits most, the plainest of them, and what it does not fit."""
    best, least = layouts[0], list(wanted)
    for layout in layouts:
        rest = _missing(scaled, wanted, layout, len(least))
        if rest is not None:
            best, least = layout, rest
        if not least:
            break
    return best, least


def _missing(
    scaled: ScaledSizes, wanted: Sequence[tuple[int, int]], layout: DataCut, limit: int
) -> list[tuple[int, int]] | None:
    """Return what a layout does not fit; None where that is not less than the limit."""
    found = []
    for at in wanted:
        if scaled.found(*at, (layout,)) is None:
            found.append(at)
            if len(found) >= limit:
                return None
    return found
