"""Sets of chunks: a member of a plane moves at once all that it collected on the planes before.

With slots numbered superpod by superpod, server by server, device by device, an all-gather between
superpods leaves rank (p, s, d) with the slots (*, s, d). On the plane between servers it then hands
on that whole set, and gets (*, s', d) from server s'. `Bundles` are those sets, in the place of
`Chunks`: templates index them, and one step moves as many pieces as a set has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from hccl_py.orchestration.region import Chunks, Mask, Region, pieces
from hccl_py.values import IntArray, OutOfBoundsError, PerRank, RankInt


class Bundles:
    """Bundle i, of n, holds the chunks first + i·stride + offset for every offset; `first` may
    differ by rank. With `order`, bundle i is bundle order[i] of this numbering.
    """

    def __init__(
        self,
        chunks: Chunks,
        first: RankInt,
        stride: int,
        n: int,
        offsets: Sequence[int] = (0,),
        order: Sequence[int] | None = None,
    ) -> None:
        self._chunks = chunks
        self._first = first
        self._stride = stride
        self._size = int(n)
        self._offsets = tuple(offsets)
        self._order = None if order is None else np.array(order, np.int64)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Region | Chunks]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: RankInt) -> Region | Chunks:
        """Return one bundle: a region where it holds one chunk. A negative index counts from the
        end.
        """
        begin = self._first + self._place(index) * self._stride
        if len(self._offsets) == 1:
            return self._chunks[begin + self._offsets[0]]
        offsets, sizes = self._tables
        row = self._chunks.row * len(self._chunks) + begin
        return Chunks(self._chunks.buffer, offsets, sizes, row, self._chunks.link)

    def pieces(self) -> list[Region]:
        """Return the chunks of all bundles."""
        return [piece for bundle in self for piece in pieces(bundle)]

    def series(self, first: RankInt, stride: int, k: int) -> list[Region]:
        """Return the chunks of bundles first, first + stride, ... (k of them, modulo n)."""
        n = len(self)
        return [piece for i in range(k) for piece in pieces(self[(first + stride * i) % n])]

    def parts(self, n: int, *, whole: Mask | None = None) -> list[Bundles]:
        """Cut every chunk into n; element k of the result has the k-th part of every chunk. `whole`
        is that of `Chunks.parts`.
        """
        order = None if self._order is None else self._order.tolist()
        return [
            Bundles(part, self._first, self._stride, len(self), self._offsets, order)
            for part in self._chunks.parts(n, whole=whole)
        ]

    def renumbered(self, order: Sequence[int]) -> Bundles:
        """Return the same bundles with logical bundle i at place order[i]."""
        return Bundles(self._chunks, self._first, self._stride, len(self), self._offsets, order)

    def _place(self, index: RankInt) -> RankInt:
        n = len(self)
        if isinstance(index, PerRank):
            index = index.wrapped(n, "bundle")
        elif not -n <= index < n:
            raise OutOfBoundsError(f"bundle {index} of {n}")
        else:
            index %= n
        if self._order is None:
            return index
        if isinstance(index, PerRank):
            return index.looked_up(self._order)
        return int(self._order[index])

    @cached_property
    def _tables(self) -> tuple[IntArray, IntArray]:
        """Offsets and sizes of the bundle that begins at a chunk, for every chunk of every row."""
        n, chunks = len(self._chunks), self._chunks
        places = (np.arange(n)[:, None] + np.array(self._offsets)) % n
        if chunks.order is not None:
            places = np.array(chunks.order)[places]
        shape = (-1, len(self._offsets))
        return chunks.offsets[:, places].reshape(shape), chunks.sizes[:, places].reshape(shape)
