"""Cuts of a round's data: parts of parts, and the begin and size of every part at every sample.

    ()                                    the data
    front 3                               its first third of whole elements
    back 3, even 2, even 8                the rest, in two even parts, each in eight

`aligned` parts are those of `split(n)`: rounded up to 128 bytes, so that the last ones may be
shorter or empty. `even` ones are those of `split(n, even=True)`: the first have one element more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np

from hccl_interop.cpp.export.sampling import ALIGN
from hccl_py.values import IntArray


class DataCut(NamedTuple):
    """One cut: `aligned` or `even` into a number of parts, or `front` or `back` of so many."""

    kind: str
    number: int

    @property
    def has_index(self) -> bool:
        """True for a cut into parts, of which one is taken."""
        return self.kind in ("aligned", "even")


Path: TypeAlias = tuple[DataCut, ...]
"""Cuts, the outermost first."""

Indices: TypeAlias = tuple[int, ...]
"""The part taken at every cut into parts."""


class Pieces:
    """The parts of a path: `begin` and `size` in bytes, [samples, part of the first cut, ...]."""

    def __init__(self, path: Path, sizes: Sequence[int], unit: int) -> None:
        self.path = path
        begin, size = np.zeros(len(sizes), np.int64), np.array(sizes, np.int64)
        self._origins = [begin]
        for cut in path:
            begin, size = _taken(cut, begin, size, unit)
            if cut.has_index:
                self._origins.append(begin)
        self.begin, self.size = begin, size

    @property
    def origins(self) -> int:
        """The number of places that begins are counted from: the data, all parts but the last."""
        return max(len(self._origins) - 1, 1)

    def begins(self, origin: int) -> IntArray:
        """Return the begins behind the data's begin (0), or behind that of the part of a cut."""
        return self._begins[origin]

    def at(self, origin: int) -> dict[bytes, Indices]:
        """Return the parts by their begins at all samples; of equal ones the first."""
        if origin not in self._at:
            self._at[origin] = _by_value(self.begins(origin))
        return self._at[origin]

    @cached_property
    def _begins(self) -> list[IntArray]:
        deep = self.begin.ndim
        outer = (one.reshape(one.shape + (1,) * (deep - one.ndim)) for one in self._origins)
        return [self.begin - one for one in outer]

    @cached_property
    def _at(self) -> dict[int, dict[bytes, Indices]]:
        return {}

    @cached_property
    def sized(self) -> dict[bytes, Indices]:
        """The parts by their sizes at all samples; of equal ones the first."""
        return _by_value(self.size)

    def column(self, values: IntArray, indices: Indices) -> IntArray:
        """Return the numbers of one part, or of the parts of one, at all samples."""
        for index in indices:
            values = values[:, index]
        return values

    def run(self, indices: Indices, size: IntArray) -> int | None:
        """Return the number of parts in a row, from one on, that have a size together."""
        if not indices:
            return 1 if (size == self.size).all() else None
        begin = self.column(self.begin, indices[:-1])
        sizes = self.column(self.size, indices[:-1])
        end = begin[:, indices[-1]] + size
        stops = [*begin[:, indices[-1] :].T, begin[:, -1] + sizes[:, -1]]
        found = (k for k, stop in enumerate(stops) if (stop == end).all())
        return next(found, None)


def _taken(cut: DataCut, begin: IntArray, size: IntArray, unit: int) -> tuple[IntArray, IntArray]:
    """Return begins and sizes of the parts that a cut makes of parts."""
    n = cut.number
    if not cut.has_index:
        front = size // unit // n * unit
        return (begin, front) if cut.kind == "front" else (begin + front, size - front)
    each, place = size[..., None], np.arange(n)
    if cut.kind == "even":
        elements = each // unit
        sizes = unit * (elements // n + (place < elements % n))
        return begin[..., None] + np.cumsum(sizes, axis=-1) - sizes, sizes
    length = ((each + n - 1) // n + ALIGN - 1) // ALIGN * ALIGN
    start = np.minimum(place * length, each)
    return begin[..., None] + start, np.minimum(length, each - start)


def _by_value(values: IntArray) -> dict[bytes, Indices]:
    found: dict[bytes, Indices] = {}
    for indices in np.ndindex(values.shape[1:]):
        key = np.ascontiguousarray(values[(slice(None), *indices)]).tobytes()
        found.setdefault(key, indices)
    return found


def first_paths(numbers: Sequence[int]) -> Iterator[Path]:
    """Yield the data, and paths of one cut into parts, of all of it or of a front or back."""
    fractions = [(), *((DataCut(kind, q),) for q in (2, 3, 4) for kind in ("front", "back"))]
    for fraction in fractions:
        yield fraction
        yield from longer_paths(fraction, numbers)


def longer_paths(path: Path, numbers: Sequence[int]) -> Iterator[Path]:
    """Yield a path's parts cut once more."""
    for kind in ("aligned", "even"):
        yield from ((*path, DataCut(kind, n)) for n in numbers)
