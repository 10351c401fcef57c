"""Offsets and sizes in the words of an algorithm: slots of the data, chunks of a slot, parts of a
chunk.

An offset in a memory is `slot * bytes`, plus the begin of a chunk of `bytes`, plus the begin of a
part of that chunk; `bytes` are those of the call's count. A size is a number of slots, or some
chunks in a row. Where all samples agree on such numbers, the code is right for other sizes as well.
Otherwise offsets and sizes are those of the exported call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from hccl_interop.cpp.export.sampling import ALIGN, Samples
from hccl_py.program.program import Program
from hccl_py.values import IntArray, RankInt, values_of

_LEAST_SAMPLES = 4
"""Samples that must agree before numbers are taken to hold for all sizes."""


class DataCut(NamedTuple):
    """The number of chunks of the data, and of parts of a chunk; 1 is not cut."""

    chunks: int
    parts: int


class Fields(NamedTuple):
    """The layouts of source, destination and size of a step, and their numbers by rank."""

    layouts: tuple[str, ...]
    numbers: dict[str, IntArray]


@dataclass(frozen=True)
class SizeFields:
    """Offsets and sizes of data tasks: slots, chunks and parts by the first of `layouts` that fits,
    the same for all samples; without layouts the bytes of the one sample.
    """

    samples: tuple[Program, ...]
    layouts: tuple[DataCut, ...]

    @property
    def is_fixed(self) -> bool:
        """True if they are right for the exported size alone."""
        return not self.layouts

    def fields(self, batch: int, number: int) -> Fields:
        """Return the fields of an instruction."""
        if self.is_fixed:
            columns = self._columns(batch, number)
            return Fields(("fixed",), {name: column[0] for name, column in columns.items()})
        found = self.found(batch, number, self.layouts)
        assert found is not None, "sizes_of has tried all"
        return found

    def is_empty(self, batch: int, number: int) -> bool:
        """True for an instruction that moves no bytes, at any rank and any size."""
        return not self._columns(batch, number)["size"].any()

    def found(self, batch: int, number: int, layouts: Sequence[DataCut]) -> Fields | None:
        """Return the fields by the first layout that fits; None where none does."""
        columns = self._columns(batch, number)
        for layout in layouts:
            fields = self._ruler(layout).fields(columns)
            if fields is not None:
                return fields
        return None

    def _columns(self, batch: int, number: int) -> dict[str, IntArray]:
        """Return source and destination offset and size in bytes, [samples, ranks] each."""
        if (batch, number) not in self._known:
            ones = [sample.batches[batch].instructions[number] for sample in self.samples]
            ranks = len(self.samples[0].batches[batch].ranks)
            self._known[batch, number] = {
                "src": _column([one.src_offset for one in ones], ranks),
                "dst": _column([one.dst_offset for one in ones], ranks),
                "size": _column([one.size for one in ones], ranks),
            }
        return self._known[batch, number]

    @cached_property
    def _known(self) -> dict[tuple[int, int], dict[str, IntArray]]:
        return {}

    def _ruler(self, layout: DataCut) -> _Ruler:
        if layout not in self._rulers:
            sizes = [sample.op.count * sample.op.unit for sample in self.samples]
            self._rulers[layout] = _Ruler(layout, sizes)
        return self._rulers[layout]

    @cached_property
    def _rulers(self) -> dict[DataCut, _Ruler]:
        return {}


def _column(values: Sequence[RankInt], ranks: int) -> IntArray:
    return np.stack([np.full(ranks, values_of(value)) for value in values])


class _OffsetSum(NamedTuple):
    """An offset as a sum: slots, the begins of a chunk and of a part of it, strides as long as the
    first chunk, and bytes.
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
        self._seen: dict[bytes, _OffsetSum | None] = {}

    def fields(self, columns: Mapping[str, IntArray]) -> Fields | None:
        """Return the fields of a data task; None where the layout does not fit."""
        src, dst = self._offsets(columns["src"]), self._offsets(columns["dst"])
        if src is None or dst is None:
            return None
        size = self._whole(columns["size"])
        for name, at in (("src", src), ("dst", dst)):
            size = size or self._run(columns["size"], at, name)
        size = size or self._own(columns["size"])
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
        return dict(zip(_OffsetSum._fields, rows.T, strict=True))

    def _offset(self, values: IntArray) -> _OffsetSum | None:
        key = values.tobytes()
        if key not in self._seen:
            self._seen[key] = self._measured(values)
        return self._seen[key]

    def _measured(self, values: IntArray) -> _OffsetSum | None:
        """Return an offset in slots and chunks; else in strides, or one that is constant."""
        most = int((values // self._bytes).min())
        for slot in (most, most - 1):
            place = self._places.get((values - slot * self._bytes).tobytes()) if slot >= 0 else None
            if place is not None:
                return _OffsetSum(slot, *place)
        strides = int(values[0] // self._stride[0])
        if (values == strides * self._stride).all():
            return _OffsetSum(stride=strides)
        if (values == values[0]).all():
            return _OffsetSum(base=int(values[0]))
        return None

    def _whole(self, values: IntArray) -> Fields | None:
        """Return sizes that are a number of slots."""
        count = values[0] // self._bytes[0]
        if (values != count * self._bytes[:, None]).any():
            return None
        return Fields(("slots",), {"size": count})

    def _own(self, values: IntArray) -> Fields | None:
        """Return sizes that are each the size of one chunk, at any offset."""
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
        """Return the number of parts or chunks between an offset and an end."""
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
    """Return the begins of the parts of all chunks."""
    chunks = _cut(0, size, layout.chunks)
    return [[begin for begin, _ in _cut(start, length, layout.parts)] for start, length in chunks]


def _cut(start: int, size: int, count: int) -> list[tuple[int, int]]:
    each = (size + count - 1) // count
    each = (each + ALIGN - 1) // ALIGN * ALIGN
    begins = [min(k * each, size) for k in range(count)]
    return [(start + begin, min(each, size - begin)) for begin in begins]


def sizes_of(samples: Samples, dimensions: Sequence[int]) -> SizeFields:
    """Return offsets and sizes that hold for all samples, or else for the exported size;
    `dimensions` are numbers of chunks and parts to try.
    """
    fixed = SizeFields((samples.exported,), ())
    if len(samples.every) < _LEAST_SAMPLES:
        return fixed
    scaled = SizeFields(samples.every, ())
    chosen: list[DataCut] = []
    left = [
        (number, k)
        for number, batch in enumerate(samples.exported.batches)
        for k, one in enumerate(batch.instructions)
        if one.kind.moves_data
    ]
    while left:
        best, rest = _best(scaled, left, _layouts(dimensions))
        if len(rest) == len(left):
            return fixed
        chosen.append(best)
        left = rest
    return SizeFields(samples.every, tuple(chosen) or (DataCut(1, 1),))


def _layouts(dimensions: Sequence[int]) -> list[DataCut]:
    """Return layouts, the plainest first."""
    numbers = sorted({number for number in dimensions if number > 1})
    return [
        DataCut(1, 1),
        *(DataCut(n, 1) for n in numbers),
        *(DataCut(a, b) for a in numbers for b in numbers),
    ]


def _best(
    scaled: SizeFields, wanted: Sequence[tuple[int, int]], layouts: Sequence[DataCut]
) -> tuple[DataCut, list[tuple[int, int]]]:
    """Return the layout that fits most instructions, the plainest of several, and the others."""
    best, least = layouts[0], list(wanted)
    for layout in layouts:
        rest = _missing(scaled, wanted, layout, len(least))
        if rest is not None:
            best, least = layout, rest
        if not least:
            break
    return best, least


def _missing(
    scaled: SizeFields, wanted: Sequence[tuple[int, int]], layout: DataCut, limit: int
) -> list[tuple[int, int]] | None:
    """Return the instructions that a layout does not fit; None where they reach the limit."""
    found = []
    for at in wanted:
        if scaled.found(*at, (layout,)) is None:
            found.append(at)
            if len(found) >= limit:
                return None
    return found
