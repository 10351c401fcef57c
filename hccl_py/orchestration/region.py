"""Memory as executors see it: a `Region` is one contiguous range, `Chunks` a sequence of regions.

Offsets and sizes are bytes. A region knows its buffer and, where it lies in a peer's memory, the
link it is reached by. One data task moves one region; chunks copied to chunks are one task per
piece.

`Chunks` keeps tables `offsets[row, i]` and `sizes[row, i]`. Ranks whose chunks lie alike share a
row, so that indexing with a per-rank value stays a formula (hccl_py/values.py) and costs no
array.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise, repeat
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hccl_py.enums import Buffer
from hccl_py.orchestration.runs import order_table, runs_of
from hccl_py.values import IntArray, OutOfBoundsError, PerRank, RankInt, bounds_of, values_of

if TYPE_CHECKING:
    from hccl_py.orchestration.transport import TransportEnd

Mask = Callable[[IntArray], npt.NDArray[np.bool_]]
"""Marks chunks, given their sizes [rows, n]."""

SLICE_ALIGN = 128
"""HCCL_MIN_SLICE_ALIGN: bytes to which slices are rounded up when data is split."""


class Region:
    """A contiguous range of one buffer, of this rank or, with `link`, of a peer.

    `offset` and `size` are bytes, each a number or a per-rank value. Methods return other ranges of
    the same buffer and raise OutOfBoundsError (an IndexError) for one that leaves the region, with
    the first rank's numbers that does, and TypeError for numbers that are not whole.
    """

    __slots__ = ("buffer", "link", "offset", "size")

    def __init__(
        self, buffer: int, offset: RankInt, size: RankInt, link: TransportEnd | None = None
    ) -> None:
        self.buffer = buffer
        self.offset = offset
        self.size = size
        self.link = link

    def head(self, size: RankInt) -> Region:
        """Return the first `size` bytes."""
        if size is not self.size:
            _, size = _inside(0, size, self)
        return Region(self.buffer, self.offset, size, self.link)

    def __getitem__(self, part: slice) -> Region:
        """Return bytes `part.start` to `part.stop`, from the region's beginning; no step."""
        if not isinstance(part, slice):
            raise TypeError(f"a region is cut in bytes, region[start:stop], not taken by {part!r}")
        if part.step is not None:
            raise ValueError("a region is contiguous: slice it without a step")
        start = 0 if part.start is None else part.start
        stop = self.size if part.stop is None else part.stop
        start, stop = _inside(start, stop, self)
        return Region(self.buffer, self.offset + start, stop - start, self.link)

    def split(
        self, n: RankInt, align: int = SLICE_ALIGN, *, even: bool = False, unit: int = 0
    ) -> Chunks:
        """Cut into n chunks of ceil(size / n) bytes rounded up to `align`; the last ones may be
        shorter or empty.

        With `even`, sizes differ by one element of `unit` bytes at most, and the first ones are
        larger: 10 elements make 4, 3 and 3. ValueError for n or `align` below 1, for `even` without
        `unit` and the other way round, and for a region of no whole elements.
        """
        n = int(n)
        if n < 1 or align < 1:
            raise ValueError(f"a region cannot be split into {n} chunks aligned to {align} bytes")
        offset, size, row = _rows(self.offset, self.size)
        if even or unit:
            sizes = _even_sizes(size, n, unit if even else -1)
            starts = np.cumsum(sizes, axis=1) - sizes
            return Chunks(self.buffer, offset[:, None] + starts, sizes, row, self.link)
        each = _split_size(size, n, align)
        start = np.minimum(np.arange(n) * each[:, None], size[:, None])
        sizes = np.minimum(each[:, None], size[:, None] - start)
        return Chunks(self.buffer, offset[:, None] + start, sizes, row, self.link)

    def __repr__(self) -> str:
        return f"Region(buffer={self.buffer}, offset={self.offset!r}, size={self.size!r})"


class Chunks:
    """A sequence of regions of one buffer, indexed with an int or a per-rank value.

    `offsets` and `sizes` are bytes, of shape [rows, n]; `row` is each rank's row. An index or a
    count outside of 0 .. n - 1 raises OutOfBoundsError (an IndexError).
    """

    __slots__ = (
        "_formulas",
        "_only",
        "buffer",
        "link",
        "offsets",
        "order",
        "row",
        "same_size",
        "sizes",
    )

    def __init__(
        self,
        buffer: int,
        offsets: npt.NDArray[np.int64],
        sizes: npt.NDArray[np.int64],
        row: RankInt = 0,
        link: TransportEnd | None = None,
        order: tuple[int, ...] | None = None,
    ) -> None:
        if isinstance(row, int):
            offsets, sizes, row = offsets[row : row + 1], sizes[row : row + 1], 0
        self.buffer = buffer
        self.offsets: IntArray = np.ascontiguousarray(offsets, np.int64)
        self.sizes: IntArray = np.ascontiguousarray(sizes, np.int64)
        self.row = row
        self.link = link
        self.order = order
        # Where all ranks share a row: one array each, by which formulas over them are known.
        self._only = (self.offsets[0], self.sizes[0]) if isinstance(row, int) else None
        self._formulas: _RowFormulas | None = None
        low, high = bounds_of(self.sizes.reshape(-1)) if self.sizes.size else (0, 1)
        self.same_size = low if low == high else None

    def __len__(self) -> int:
        return int(self.offsets.shape[1])

    def __iter__(self) -> Iterator[Region]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: RankInt) -> Region:
        """Return one chunk; a negative index counts from the end."""
        at = self._physical(self._index(index))
        offset, size = self._at(at)
        return Region(self.buffer, offset, size, self.link)

    @property
    def largest(self) -> int:
        """Bytes of the largest chunk."""
        return int(self.sizes.max(initial=0))

    def parts(self, n: int, align: int = SLICE_ALIGN, *, whole: Mask | None = None) -> list[Chunks]:
        """Cut every chunk into n; element k of the result has the k-th part of every chunk. The
        last element has those chunks whole that `whole` marks by their sizes.
        """
        each = _split_size(self.sizes, n, align)
        starts = [np.minimum(k * each, self.sizes) for k in range(n + 1)]
        if whole is not None:
            starts[1:n] = [np.where(whole(self.sizes), 0, start) for start in starts[1:n]]
        return [
            Chunks(
                self.buffer,
                self.offsets + a,
                np.minimum(b, self.sizes) - a,
                self.row,
                self.link,
                self.order,
            )
            for a, b in pairwise(starts)
        ]

    def joined(self, n: int) -> Chunks:
        """Return every n neighbours as one chunk; they must lie side by side, in order.

        From one slot per rank to one block per server, for example.
        """
        n = int(n)
        gaps = self.offsets[:, 1:] != self.offsets[:, :-1] + self.sizes[:, :-1]
        gaps[:, n - 1 :: max(n, 1)] = False
        if n < 1 or len(self) % n or gaps.any() or self.order is not None:
            raise OutOfBoundsError(f"{len(self)} chunks joined {n} by {n} with gaps between them")
        rows = len(self.offsets)
        sizes = self.sizes.reshape(rows, -1, n).sum(2)
        return Chunks(self.buffer, self.offsets[:, ::n], sizes, self.row, self.link)

    def taken(self, first: RankInt, n: int) -> Chunks:
        """Return chunks first to first + n - 1; `first` may differ by rank.

        The slots of a rank's own server, for example.
        """
        n, index = int(n), values_of(self._index(first))
        if np.any(index + n > len(self)) or n < 1:
            raise OutOfBoundsError(f"{n} chunks from chunk {int(np.max(index))} of {len(self)}")
        pairs = np.stack(np.broadcast_arrays(np.atleast_1d(index), values_of(self.row)))
        kinds, at = np.unique(pairs, axis=1, return_inverse=True)
        places = kinds[0][:, None] + np.arange(n)
        if self.order is not None:
            places = order_table(self.order)[places]
        rows, at = kinds[1][:, None], at.reshape(-1).astype(np.int64)
        offsets, sizes = self.offsets[rows, places], self.sizes[rows, places]
        return Chunks(self.buffer, offsets, sizes, PerRank.of(at), self.link)

    def renumbered(self, order: tuple[int, ...]) -> Chunks:
        """Return the same memory with logical chunk i at place order[i]."""
        return Chunks(self.buffer, self.offsets, self.sizes, self.row, self.link, order)

    def series(self, first: RankInt, stride: int, k: int) -> list[Region]:
        """Return chunks first, first + stride, ... (k of them, modulo n), adjacent ones merged into
        one region. Where any are merged, and for renumbered chunks, regions come in the order of
        their places.
        """
        n = len(self)
        if not 0 <= k <= n:
            raise OutOfBoundsError(f"a series of {k} chunks of {n}")
        runs = runs_of(n, stride % n, k, self.order, self._is_gapless())
        if not runs.are_kept:
            return [self[(first + stride * i) % n] for i in range(runs.covered)]
        at, row = values_of(self._index(first % n)), values_of(self.row)
        count = int(PerRank.of(runs.first[at + 1] - runs.first[at]))
        regions = []
        for j in range(count):
            low, high = runs.low[runs.first[at] + j], runs.high[runs.first[at] + j]
            start = self.offsets[row, low]
            size = self.offsets[row, high] + self.sizes[row, high] - start
            regions.append(Region(self.buffer, PerRank.of(start), PerRank.of(size), self.link))
        return regions

    def _is_gapless(self) -> bool:
        return bool((self.offsets[:, 1:] == self.offsets[:, :-1] + self.sizes[:, :-1]).all())

    def _index(self, index: RankInt) -> RankInt:
        if not isinstance(index, (int, PerRank, np.integer)):
            raise TypeError(
                f"chunks are taken one by one, not by {index!r}: use series(first, 1, k)"
            )
        if isinstance(index, PerRank):
            return index.wrapped(len(self), "chunk")
        if not -len(self) <= index < len(self):
            raise OutOfBoundsError(f"chunk {index} of {len(self)}")
        return index % len(self)

    def _physical(self, index: RankInt) -> RankInt:
        if self.order is None:
            return index
        if isinstance(index, PerRank):
            return index.looked_up(order_table(self.order))
        return self.order[index]

    def _at(self, index: RankInt) -> tuple[RankInt, RankInt]:
        """Return offset and size of a chunk by its place."""
        if self.same_size is None:
            return self._looked_up(0, index), self._looked_up(1, index)
        return self._looked_up(0, index), self.same_size

    def _looked_up(self, which: int, index: RankInt) -> RankInt:
        if self._only is None:
            if isinstance(index, PerRank) and index.table is None and index.mod == len(self):
                self._formulas = self._formulas or _RowFormulas(self)
                return self._formulas.looked_up(which, index)
            table = (self.offsets, self.sizes)[which]
            return PerRank.of(table[values_of(self.row), values_of(index)])
        only = self._only[which]
        return index.looked_up(only) if isinstance(index, PerRank) else int(only[index])

    def __repr__(self) -> str:
        return f"Chunks(buffer={self.buffer}, n={len(self)}, offsets={self.offsets.tolist()})"


class _RowFormulas:
    """Look-ups in chunks with several rows, as formulas: the rows follow each other in one table,
    each twice, so that a place modulo n is a sum: row·2n + place, plus the step.
    """

    def __init__(self, chunks: Chunks) -> None:
        self._n = len(chunks)
        self._start = values_of(chunks.row) * (2 * self._n)
        self._tables = [np.hstack([t, t]).reshape(-1) for t in (chunks.offsets, chunks.sizes)]
        self._bases: dict[int, tuple[PerRank, PerRank]] = {}

    def looked_up(self, which: int, index: PerRank) -> PerRank:
        """Return the offset (0) or size (1) of the chunk that each rank takes."""
        if id(index.base) not in self._bases:  # the index is kept, so that its id stays its own
            start = PerRank(self._start + index.base % self._n)
            self._bases[id(index.base)] = index, start
        _, start = self._bases[id(index.base)]
        table, bounds = self._tables[which], (start.low, start.high)
        return PerRank(start.base, index.add % self._n, len(table), table, bounds)


def pieces(memory: Region | Chunks | Sequence[Region]) -> list[Region]:
    """Return the regions of anything that a copy takes."""
    if isinstance(memory, Region):
        return [memory]
    found = list(memory) if isinstance(memory, Iterable) else [None]
    for piece in found:
        if not isinstance(piece, Region):
            raise TypeError(f"memory is a Region, Chunks or a list of Regions, not {memory!r}")
    return found


def _rows(offset: RankInt, size: RankInt) -> tuple[IntArray, IntArray, RankInt]:
    """Return the distinct (offset, size) pairs and each rank's row among them."""
    both = offset, size
    if not any(isinstance(one, PerRank) for one in both):
        return np.array([offset]), np.array([size]), 0
    columns = (x.values().tolist() if isinstance(x, PerRank) else repeat(x) for x in both)
    pairs: dict[tuple[int, int], int] = {}
    row = [pairs.setdefault(pair, len(pairs)) for pair in zip(*columns, strict=False)]
    return *np.array([*pairs], np.int64).T, PerRank.of(np.array(row))


def _split_size(size: IntArray, n: int, align: int) -> IntArray:
    """Return ceil(size / n), rounded up to `align`."""
    each = (size + n - 1) // n
    return (each + align - 1) // align * align


def _even_sizes(size: IntArray, n: int, unit: int) -> IntArray:
    """Return sizes [rows, n] that differ by one element of `unit` bytes at most."""
    if unit < 1:
        raise ValueError("even chunks take both: region.split(n, even=True, unit=op.unit)")
    if (size % unit).any():
        raise ValueError(
            f"{int(size[np.argmax(size % unit)])} bytes are no whole elements of {unit} bytes"
        )
    elements = size[:, None] // unit
    return unit * (elements // n + (np.arange(n) < elements % n))


def _inside(start: RankInt, stop: RankInt, region: Region) -> tuple[RankInt, RankInt]:
    """Return a range of a region in plain numbers; refuse one that leaves it, with the first
    rank's numbers that do.
    """
    size = region.size
    if type(start) is type(stop) is type(size) is int and 0 <= start <= stop <= size:
        return start, stop
    low, high, limit = _bytes(start), _bytes(stop), values_of(size)
    outside = (low < 0) | (low > high) | (high > limit)
    if np.any(outside):
        numbers = np.broadcast_arrays(np.atleast_1d(outside), low, high, limit)
        lane = int(np.argmax(numbers[0]))
        a, b, n = (int(column[lane]) for column in numbers[1:])
        names = {int(buffer): buffer.spelling for buffer in Buffer}
        place = getattr(region.buffer, "spelling", names.get(region.buffer, "memory"))
        raise OutOfBoundsError(f"bytes {a} to {b} of a region of {n} in {place}")
    return _plain(start), _plain(stop)


def _plain(number: RankInt) -> RankInt:
    """Return numpy's integers as Python's: instructions hold no others."""
    return number if isinstance(number, PerRank) else int(number)


def _bytes(number: RankInt) -> Any:
    if not isinstance(number, (int, PerRank, np.integer)):
        raise TypeError(f"offsets and sizes are whole bytes, not {number!r}: use // to divide")
    return values_of(number)
