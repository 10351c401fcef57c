"""NHR_V1: rings along the rows and along the columns of a grid of about √p × √p members.

HCCL's older variant of NHR. With s = ⌊√p⌋, the grid is the rectangle of p members next to a square,
if its sides differ by less than 5. Otherwise it is s × s, one row more if s members are left, and
what is left then are one member more in the first rows, which a column of their own is too short
for: the extra member of row v ends the ring of column v.

    p = 8 is 2 × 4          p = 14 is  0  1  2  3        column rings {0, 4, 8, 11, 3},
                                       4  5  6  7        {1, 5, 9, 12, 7}, {2, 6, 10, 13}
                                       8  9 10
                                      11 12 13

    all-gather       a ring in every row, then the rows' blocks along every column
    reduce-scatter   blocks along the columns, then along the rows without extra members; what is
                     theirs goes to the last one of the row with its own, and from there to them
    all-reduce       the buffer in as many parts as columns: reduce-scatter along the rows,
                     all-reduce along the columns, all-gather along the rows; extra members have no
                     part
    broadcast        scatter along the root's row, broadcast down the columns, all-gather

Cost on a grid of h rows and w columns without extra members, a barrier for every ring: all-gather
(w+h)α + (p-1)/p·nβ, reduce-scatter (w+h)α + (p-1)/p·n(β+γ), all-reduce (2w+2h-1)α +
(p-1)/p·n(2β+γ). Source: nonuniform_hierarchical_ring_v1_base.cc and *_nhr_v1.cc of cann-hcomm
(b5f3e5b).
"""

from __future__ import annotations

from functools import lru_cache
from math import isqrt
from typing import NamedTuple, cast

import numpy as np

from hccl_executors.templates.ring import (
    ring_all_gather,
    ring_all_reduce,
    ring_broadcast,
    ring_reduce_scatter,
    ring_scatter,
)
from hccl_executors.templates.signals import barrier, data_received
from hccl_py.orchestration import Chunks, Plane, Region, Stream
from hccl_py.orchestration.exchange import rx_data, tx_data
from hccl_py.orchestration.subplane import Subplane
from hccl_py.values import IntArray, PerBool, PerRank, RankInt, values_of

NEAR = 5
"""By less than this the sides of a rectangle may differ."""


class RankGrid(NamedTuple):
    """The lengths of the rows, and the columns that all of them have."""

    lengths: tuple[int, ...]
    width: int

    @staticmethod
    @lru_cache(maxsize=64)
    def of(members: int) -> RankGrid:
        """Lay members out."""
        side = isqrt(members)
        rows, columns = side, side
        while rows and columns < members and rows * columns != members:
            if rows * columns < members:
                columns += 1
            else:
                rows -= 1
        if columns - rows < NEAR:
            return RankGrid((columns,) * rows, columns)
        left = members - side * side
        height = side + (left >= side)
        extra = left - side if left >= side else left
        return RankGrid((side + 1,) * extra + (side,) * (height - extra), side)

    @property
    def starts(self) -> list[int]:
        """The first member of every row."""
        return [sum(self.lengths[:row]) for row in range(len(self.lengths))]

    def rows(self) -> list[range]:
        """Return the members of every row."""
        return [range(a, a + n) for a, n in zip(self.starts, self.lengths, strict=True)]

    def columns(self, *, extra: bool) -> list[list[int]]:
        """Return the members of every column, with the extra member of the same number or not."""
        found = [[start + h for start in self.starts] for h in range(self.width)]
        for v, row in enumerate(self.rows()):
            if extra and len(row) > self.width:
                found[v].append(row[-1])
        return found

    def places(self) -> tuple[IntArray, IntArray]:
        """Return every member's row and its place there."""
        row = np.repeat(np.arange(len(self.lengths)), self.lengths)
        return row, np.arange(len(row)) - np.array(self.starts)[row]


def nhr_v1_peers(index: int, size: int) -> list[int]:
    """Return a member's neighbours in all rings that it may be in: a link pattern."""
    grid = RankGrid.of(size)
    row, place = (int(column[index]) for column in grid.places())
    mine = grid.rows()[row]
    found = {mine[(place + way) % len(mine)] for way in (1, -1)}
    column = [r[place] for r in grid.rows() if place < len(r)]
    found |= {column[(row + way) % len(column)] for way in (1, -1)}
    if grid.lengths[0] > grid.width:
        if place in (0, grid.width - 1):
            found.add(mine[grid.width - 1 - place])
        for ring in grid.columns(extra=True):
            if index in ring:
                at = ring.index(index)
                found |= {ring[at - 1], ring[(at + 1) % len(ring)]}
    return sorted(found - {index})


def nhr_v1_all_gather(stream: Stream, plane: Plane, chunks: Chunks) -> None:
    """Leave in every rank all chunks; member i starts with chunk i."""
    if plane.size == 1:
        return
    at = _At(plane)
    single = np.ones(int(plane.size), np.int64)
    ring_all_gather(stream, at.row, _blocks(chunks, single, at.start))
    ring_all_gather(stream, at.column(extra=True), _blocks(chunks, at.grid.lengths))


def nhr_v1_reduce_scatter(stream: Stream, plane: Plane, chunks: Chunks) -> None:
    """Leave in chunk i of member i the reduction of all chunks i; other chunks hold partial
    results.
    """
    if plane.size == 1:
        return
    at, grid = _At(plane), RankGrid.of(int(plane.size))
    ring_reduce_scatter(stream, at.column(extra=True), _blocks(chunks, grid.lengths))
    inner = Subplane(plane, [row[: grid.width] for row in grid.rows()])
    parts = [1] * (grid.width - 1)
    lengths = [n for row in grid.lengths for n in (*parts, 1 + row - grid.width)]
    ring_reduce_scatter(stream, inner, _blocks(chunks, lengths, at.number * grid.width))
    if at.is_beside_extra():
        _pass_on(stream, plane, chunks, to_extra=bool(at.place < grid.width))


def _pass_on(stream: Stream, plane: Plane, chunks: Chunks, *, to_extra: bool) -> None:
    """Bring its chunk to an extra member from the one before it; both answer each other twice."""
    link = plane[plane.id + 1 if to_extra else plane.id - 1]
    with stream.phase("pass on"):
        link.tx_ack(stream)
        link.rx_ack(stream)
        if to_extra:
            tx_data(stream, link, chunks[plane.id + 1])
            link.rx_data_signal(stream)
        else:
            link.tx_data_signal(stream)
            rx_data(stream, link, chunks[plane.id])
        data_received(stream, link)
        barrier(stream, link, link)


def nhr_v1_all_reduce(stream: Stream, plane: Plane, work: Region) -> None:
    """Leave the reduction of all ranks' `work` in it."""
    if plane.size == 1:
        return
    at = _At(plane)
    parts = _parts_of_columns(work, at.grid)
    ring_reduce_scatter(stream, at.row, parts)
    ring_all_reduce(stream, at.column(extra=False), parts[at.place])
    ring_all_gather(stream, at.row, parts)


def nhr_v1_broadcast(stream: Stream, plane: Plane, work: Region, root: int) -> None:
    """Leave in `work` of every rank what the root has there."""
    if plane.size == 1:
        return
    at = _At(plane)
    row, place = (int(column[root]) for column in at.grid.places())
    parts = _parts_of_columns(work, at.grid)
    ring_scatter(stream, Subplane(plane, [at.grid.rows()[row]]), parts, place)
    ring_broadcast(stream, at.column(extra=False), parts[at.place], row)
    ring_all_gather(stream, at.row, parts)


class _At:
    """The position of a rank in the grid, and its rings."""

    def __init__(self, plane: Plane) -> None:
        self.plane = plane
        self.grid = RankGrid.of(int(plane.size))
        me, (row, place) = values_of(plane.id), self.grid.places()
        self.number, self.place = PerRank.of(row[me]), PerRank.of(place[me])
        self.start = PerRank.of(np.array(self.grid.starts)[row[me]])
        self.row = Subplane(plane, self.grid.rows())

    def column(self, *, extra: bool) -> Subplane:
        """Return the ring of this rank's column."""
        return Subplane(self.plane, self.grid.columns(extra=extra))

    def is_beside_extra(self) -> bool:
        """True for an extra member and for the one before it."""
        has_extra = np.array(self.grid.lengths)[values_of(self.number)] > self.grid.width
        return bool(PerBool.of(has_extra & (values_of(self.place) >= self.grid.width - 1)))


class _UnevenBlocks:
    """Neighbouring chunks taken several at once, with as many in block k as `lengths[k]` says, from
    a block on that may differ by rank. What comes after the last one is empty.
    """

    def __init__(self, chunks: Chunks, lengths: IntArray, first: RankInt) -> None:
        self._chunks, self._lengths, self._base = chunks, np.append(lengths, 0), first
        self._starts = np.append(np.cumsum(lengths) - lengths, 0)
        self._merged = _merged(chunks, self._starts, self._lengths)

    def __getitem__(self, index: RankInt) -> Region | list[Region]:
        """Return a block: one region where its chunks lie side by side."""
        at = index + self._base
        if self._merged is not None:
            return self._merged[at]
        number = values_of(at)
        count = int(PerRank.of(self._lengths[number]))
        return self._chunks.series(PerRank.of(self._starts[number]), 1, count)


def _blocks(chunks: Chunks, lengths: object, first: RankInt = 0) -> Chunks:
    return cast(Chunks, _UnevenBlocks(chunks, np.asarray(lengths), first))  # rings only index them


def _merged(chunks: Chunks, starts: IntArray, lengths: IntArray) -> Chunks | None:
    """Return blocks of chunks that lie side by side, each as one chunk."""
    if not isinstance(chunks, Chunks) or chunks.order is not None:
        return None
    ends = chunks.offsets + chunks.sizes
    if (chunks.offsets[:, 1:] != ends[:, :-1]).any():
        return None
    sizes = np.where(lengths, ends[:, starts + np.maximum(lengths, 1) - 1], 0)
    offsets = np.where(lengths, chunks.offsets[:, starts], 0)
    return Chunks(chunks.buffer, offsets, sizes - offsets, chunks.row, chunks.link)


def _parts_of_columns(work: Region, grid: RankGrid) -> Chunks:
    """Return a part for every column, and an empty one for extra members."""
    parts = work.split(grid.width)
    none = np.zeros((len(parts.offsets), 1), np.int64)
    offsets, sizes = (np.hstack([table, none]) for table in (parts.offsets, parts.sizes))
    return Chunks(parts.buffer, offsets, sizes, parts.row, parts.link)
