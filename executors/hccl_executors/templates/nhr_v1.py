"""NHR_V1: rings along the rows, then along the columns of a grid of about √p × √p members.

HCCL's older variant of NHR; of it only the grid, the volume and the number of steps are published.
How the grid is closed for every p is ours: the rows, each w = ⌈√p⌉ long, are wound up as a helix,
so that member r has neighbours r ± 1 along its row and r ± w along its column, modulo p. A row is
left at its end into the next one, and no p needs a special case.

    all-gather       w - 1 steps to r + 1: one slot each; then r has slots r, r - 1, ..., r - w + 1
                     h - 1 steps to r + w, h = ⌈p/w⌉: the block that came last, w slots; the last
                     block is cut to the p - (h - 1)w slots that are missing
    reduce-scatter   the same backwards: along the columns, then along the rows
    all-reduce       reduce-scatter, then all-gather, columns first
    broadcast        scatter along the root's row, then down all columns; then all-gather

p - 1 slots sent and received by everyone, w + h - 2 ≈ 2√p - 2 steps. Cost: all-gather (w+h-2)α +
(p-1)/p·nβ, reduce-scatter (w+h-2)α + (p-1)/p·n(β+γ), all-reduce both, broadcast twice an
all-gather.

All-reduce and broadcast may say where a slot lies. They number slots down the columns, so that what
travels along a row is one range of memory; then all-gather goes columns first.
"""

from collections.abc import Iterator
from math import isqrt
from typing import NamedTuple

import numpy as np

from hccl_executors.templates.ring import ring_scatter
from hccl_py.orchestration import Chunks, Plane, Region, Stream, exchange
from hccl_py.orchestration.subplane import Subplane
from hccl_py.values import PerRank, RankInt, values_of

__all__ = [
    "nhr_v1_all_gather",
    "nhr_v1_all_reduce",
    "nhr_v1_broadcast",
    "nhr_v1_peers",
    "nhr_v1_reduce_scatter",
]


def nhr_v1_peers(index: int, size: int) -> list[int]:
    """Return the neighbours along row and column: a link pattern."""
    around = {(index + way * stride) % size for stride in (1, _width(size)) for way in (1, -1)}
    return sorted(around - {index})


def nhr_v1_all_gather(stream: Stream, plane: Plane, chunks: Chunks) -> None:
    """Leave in every rank all chunks; member i starts with chunk i."""
    _gather(stream, plane, chunks, plane.id, _by_rows(int(plane.size)))


def nhr_v1_reduce_scatter(stream: Stream, plane: Plane, chunks: Chunks) -> None:
    """Leave in chunk i of member i the reduction of all chunks i; other chunks hold partial
    results.
    """
    _reduce_scatter(stream, plane, chunks, _by_rows(int(plane.size)))


def nhr_v1_all_reduce(stream: Stream, plane: Plane, work: Region) -> None:
    """Leave the reduction of all ranks' `work` in it."""
    p = int(plane.size)
    chunks = work.split(p).renumbered(_down_columns(p))
    _reduce_scatter(stream, plane, chunks, _by_columns(p))
    _gather(stream, plane, chunks, plane.id, _by_columns(p))


def nhr_v1_broadcast(stream: Stream, plane: Plane, work: Region, root: int) -> None:
    """Leave the root's `work` in everyone's: member root + d gets slot d, then all gather."""
    p = int(plane.size)
    slots = work.split(p)
    _scatter(stream, plane, slots, root)
    chunks = slots.renumbered(_down_columns(p))
    _gather(stream, plane, chunks, (plane.id - root) % p, _by_columns(p))


class _Way(NamedTuple):
    """A gather: `first - 1` steps of stride `inner`, one slot each, then some of stride `outer`,
    of `blocks` slots.
    """

    inner: int
    first: int
    outer: int
    blocks: tuple[int, ...]


def _width(p: int) -> int:
    return isqrt(p - 1) + 1 if p > 1 else 1


def _by_rows(p: int) -> _Way:
    w = _width(p)
    return _way(p, 1, w, w, -(-p // w))


def _by_columns(p: int) -> _Way:
    w = _width(p)
    return _way(p, w, -(-p // w), 1, w)


def _way(p: int, inner: int, first: int, outer: int, second: int) -> _Way:
    """Block k has the slots k·outer + i·inner below p back, i < first."""
    blocks = (min(first, -(-(p - k * outer) // inner)) for k in range(1, second))
    return _Way(inner, first, outer, tuple(blocks))


def _gather(stream: Stream, plane: Plane, chunks: Chunks, me: RankInt, way: _Way) -> None:
    """Gather all chunks; the own one is number `me`, and members behind have those below."""
    p = int(plane.size)
    for step in stream.steps("all-gather, one by one", way.first - 1):
        exchange(
            stream,
            plane[(plane.id + way.inner) % p],
            plane[(plane.id - way.inner) % p],
            send=chunks[(me - step * way.inner) % p],
            recv=chunks[(me - (step + 1) * way.inner) % p],
        )
    for step in stream.steps("all-gather, in blocks", len(way.blocks)):
        exchange(
            stream,
            plane[(plane.id + way.outer) % p],
            plane[(plane.id - way.outer) % p],
            send=chunks.series((me - step * way.outer) % p, -way.inner, way.blocks[step]),
            recv=chunks.series((me - (step + 1) * way.outer) % p, -way.inner, way.blocks[step]),
        )


def _reduce_scatter(stream: Stream, plane: Plane, chunks: Chunks, way: _Way) -> None:
    """Gather backwards: what a step of it would bring goes back and is reduced there."""
    p, me = int(plane.size), plane.id
    for back, size in _backwards(stream, "reduce-scatter, in blocks", way.blocks):
        exchange(
            stream,
            plane[(me - way.outer) % p],
            plane[(me + way.outer) % p],
            send=chunks.series((me - (back + 1) * way.outer) % p, -way.inner, size),
            recv=chunks.series((me - back * way.outer) % p, -way.inner, size),
            reduce=True,
        )
    for back, _ in _backwards(stream, "reduce-scatter, one by one", (1,) * (way.first - 1)):
        exchange(
            stream,
            plane[(me - way.inner) % p],
            plane[(me + way.inner) % p],
            send=chunks[(me - (back + 1) * way.inner) % p],
            recv=chunks[(me - back * way.inner) % p],
            reduce=True,
        )


def _backwards(stream: Stream, name: str, sizes: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """Yield the steps from the last one to the first, with their sizes."""
    for step in stream.steps(name, len(sizes)):
        yield len(sizes) - 1 - step, sizes[-1 - step]


def _down_columns(p: int) -> tuple[int, ...]:
    """Return the place of every member's slot where slots are numbered down the columns."""
    w = _width(p)
    place = np.empty(p, np.int64)
    place[np.concatenate([np.arange(a, p, w) for a in range(w)])] = np.arange(p)
    return tuple(place.tolist())


def _scatter(stream: Stream, plane: Plane, slots: Chunks, root: int) -> None:
    """Bring slot d, counted down the columns, to member root + d: along row 0, then down."""
    p = int(plane.size)
    w = _width(p)
    columns = [range(a, p, w) for a in range(w)]
    heights = np.array([len(column) for column in columns])
    tops = np.cumsum(heights) - heights
    row = Subplane(plane, [[(root + a) % p for a in range(w)]])
    whole = np.add.reduceat(slots.sizes, tops, axis=1)
    ring_scatter(stream, row, Chunks(slots.buffer, slots.offsets[:, tops], whole, slots.row), 0)
    down = Subplane(plane, [[(root + d) % p for d in column] for column in columns])
    mine = slots.taken(PerRank.of(tops[values_of(down.number)]), int(down.size))
    ring_scatter(stream, down, mine, 0)
