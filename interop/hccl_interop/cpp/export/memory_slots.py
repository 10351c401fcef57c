"""Places of data in a memory: slots one after the other, and in a slot a part of the data.

    place = base + many * stride + begin of a part

A stride is the bytes of the call, or a length: of a part of the data, perhaps one element more,
perhaps rounded up to 128 bytes, or the larger one of two lengths. A base is where slots of another
stride end. Both are found from the offsets themselves, in the order in which slots lie.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple, TypeAlias

import numpy as np

from hccl_interop.cpp.export.data_cuts import Indices, Path, Pieces
from hccl_interop.cpp.export.sampling import ALIGN
from hccl_py.values import IntArray

_MOST_SLOTS = 1 << 12


class Length(NamedTuple):
    """Bytes: the largest part of a path, one element more, rounded up; or the larger one of it and
    of the sum of `others`, and `more`.
    """

    path: Path
    has_more: bool = False
    is_aligned: bool = False
    others: tuple[Length, ...] = ()
    more: int = 0


Base: TypeAlias = tuple[tuple[int, Length], ...]
"""Slots before a place: how many of which length."""


class SlotRow(NamedTuple):
    """Slots of one stride behind a base; no stride: one slot."""

    base: Base = ()
    stride: Length | None = None


class PlaceInSlots(NamedTuple):
    """A place: how many strides behind the base, and the part of the data."""

    many: int
    indices: Indices


DATA = Length(())
"""The bytes of the data."""


class DataParts:
    """Parts and lengths of data of several sizes, each of them made once."""

    def __init__(self, sizes: Sequence[int], unit: int) -> None:
        self.sizes, self.unit = np.array(sizes, np.int64), unit
        self._pieces: dict[Path, Pieces] = {}
        self._lengths: dict[Length, IntArray] = {}

    def pieces(self, path: Path) -> Pieces:
        """Return the parts of a path."""
        if path not in self._pieces:
            self._pieces[path] = Pieces(path, self.sizes.tolist(), self.unit)
        return self._pieces[path]

    def bytes_of(self, length: Length) -> IntArray:
        """Return the bytes of a length."""
        if length not in self._lengths:
            each = self.pieces(length.path).size.reshape(len(self.sizes), -1)
            value = each[:, 0] + length.has_more * self.unit
            if length.others:
                others = sum(self.bytes_of(one) for one in length.others)
                value = np.maximum(value, others + length.more)
            self._lengths[length] = aligned(value) if length.is_aligned else value
        return self._lengths[length]


class Lengths:
    """All lengths that strides may have, and their bytes at all samples."""

    def __init__(self, pieces: Sequence[Pieces], unit: int) -> None:
        self._bytes: dict[Length, IntArray] = {}
        self.rivals: dict[Length, tuple[Length, ...]] = {}  # as right at all samples, by the chosen
        seen: set[bytes] = set()
        for is_aligned, more, one in _kinds(pieces):
            value = one.size.reshape(len(one.size), -1)[:, 0] + more * unit
            value = aligned(value) if is_aligned else value
            if value.tobytes() not in seen and value[-1] > 0:
                seen.add(value.tobytes())
                self._bytes[Length(one.path, bool(more), is_aligned)] = value

    def of(self, length: Length) -> IntArray:
        """Return the bytes of a length."""
        return self._bytes[length]

    def stride(self, distance: IntArray) -> Length | None:
        """Return the length of which a distance is a multiple, the plainest of several."""
        for length, value in self._bytes.items():
            many = int(distance[-1] // value[-1])
            if 0 < many <= _MOST_SLOTS and (many * value == distance).all():
                return length
        return self._larger(distance)

    def _larger(self, distance: IntArray) -> Length | None:
        """Return the larger one of a length and of two others, rounded up, that is a distance."""
        plain = {k: v for k, v in self._bytes.items() if not k.is_aligned}
        values = np.stack(list(plain.values()))
        names = list(plain)
        wanted = distance
        right = [
            names[k]._replace(is_aligned=True, others=(names[j], names[j + int(at)]), more=more)
            for k, own in enumerate(values)
            if aligned(own[-1]) == wanted[-1] and (aligned(own) <= wanted).all()
            for more in (0, ALIGN - 1)
            for j, one in enumerate(values)
            for at in np.flatnonzero(
                (aligned(np.maximum(own, one + values[j:] + more)) == wanted).all(axis=1)
            )
        ]
        if not right:
            return None
        found, *rivals = right
        self._bytes[found], self.rivals[found] = wanted, tuple(rivals)
        return found


def aligned(value: IntArray) -> IntArray:
    """Return bytes rounded up to those of a line."""
    return -(-value // ALIGN) * ALIGN


def _kinds(pieces: Sequence[Pieces]) -> Iterator[tuple[bool, int, Pieces]]:
    plain = ((is_aligned, 0, one) for one in pieces for is_aligned in (False, True))
    more = ((is_aligned, 1, one) for one in pieces for is_aligned in (False, True))
    return chain(plain, more)


class SlottedMemory:
    """The slots of one memory, found from the offsets that tasks use there."""

    def __init__(self, pieces: Sequence[Pieces], lengths: Lengths) -> None:
        self._pieces, self._lengths = pieces, lengths
        self.slots: list[SlotRow] = [SlotRow(), SlotRow((), DATA)]
        self.has_fixed = False  # offsets that are the same at all sizes

    @property
    def usual(self) -> SlotRow:
        """The first slots from the begin on; those of the data's length where none were learned."""
        return next(one for one in (*self.slots[2:], self.slots[1]) if not one.base)

    def learn(self, offsets: Sequence[IntArray]) -> None:
        """Find the slots of all offsets, the nearest ones first."""
        bases: dict[Base, IntArray] = {(): np.zeros_like(self._lengths.of(DATA))}
        for offset in sorted(offsets, key=lambda one: (int(one[-1]), one.tobytes())):
            base = self._base_of(offset)
            if base is None:
                base = self._added(offset, bases)
                self.has_fixed |= base is None and bool((offset == offset[0]).all())
            if base is not None:
                bases.setdefault(base, offset)

    def _base_of(self, offset: IntArray) -> Base | None:
        """Return the slots before an offset that is known, () for one inside a slot; None for an
        unknown one.
        """
        for slots in self.slots:
            for one in self._pieces:
                for origin in range(one.origins):
                    found = self.found(slots, one, origin, offset)
                    if found is not None:
                        return self._before(slots, found) if not any(found.indices) else ()
        return None

    def _before(self, slots: SlotRow, found: PlaceInSlots) -> Base:
        if not found.many or slots.stride is None:
            return slots.base
        return (*slots.base, (found.many, slots.stride))

    def _added(self, offset: IntArray, bases: dict[Base, IntArray]) -> Base | None:
        """Add slots whose first or second one is at an offset; return the slots before it."""
        for base, start in sorted(bases.items(), key=lambda pair: -int(pair[1][-1])):
            distance = offset - start
            if (distance < 0).any() or not distance.any():
                continue
            stride = self._lengths.stride(distance)
            if stride is not None:
                slots = SlotRow(base, stride)
                self.slots.append(slots)
                many = int(distance[-1] // self._lengths.of(stride)[-1])
                return (*base, (many, stride))
        return None

    def found(
        self, slots: SlotRow, pieces: Pieces, origin: int, offset: IntArray
    ) -> PlaceInSlots | None:
        """Return an offset as a place in slots; None where it is none."""
        inside = offset - self._before_slots(slots)
        known = pieces.at(origin)
        if slots.stride is None:
            indices = known.get(np.ascontiguousarray(inside).tobytes())
            return None if indices is None else PlaceInSlots(0, indices)
        stride = self._lengths.of(slots.stride)
        most = int((inside[stride > 0] // stride[stride > 0]).min())
        for many in (most, most - 1):
            if 0 <= many <= _MOST_SLOTS:
                key = np.ascontiguousarray(inside - many * stride).tobytes()
                if key in known:
                    return PlaceInSlots(many, known[key])
        return None

    def many(self, slots: SlotRow, offsets: IntArray) -> IntArray | None:
        """Return the strides from the base to the offsets of ranks, [samples, ranks]; None where
        they are no whole number.
        """
        inside = offsets - np.reshape(self._before_slots(slots), (-1, 1))
        if slots.stride is None:
            return None if inside.any() else np.zeros(inside.shape[1], np.int64)
        stride = self._lengths.of(slots.stride)
        many: IntArray = inside[-1] // stride[-1]
        return many if (many >= 0).all() and (inside == many * stride[:, None]).all() else None

    def _before_slots(self, slots: SlotRow) -> IntArray | int:
        return sum(many * self._lengths.of(length) for many, length in slots.base)
