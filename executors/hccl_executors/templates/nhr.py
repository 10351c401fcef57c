"""NHR, nonuniform hierarchical ring: all ranks in L = ceil(log2 p) steps, for any p, and every
chunk is moved p - 1 times in all.

    reduce-scatter, step s, w = 2^s:        to r - w, from r + w; send chunks r - w, r - 3w, ..,
                                            receive and reduce chunks r, r - 2w, ..
    all-gather,     step s, w = 2^(L-1-s):  to r + w, from r - w; send chunks r, r - 2w, ..,
                                            receive chunks r - w, r - 3w, ..
    scatter,        step s, w = 2^s:        the w ranks up to the root send to r - w the chunks of
                                            ranks r - w, r - 3w, .. as far as there are any
    gather:                                 scatter backwards

The first two move (p - 1 + w) div 2w chunks in a step, one after the other; they lie 2w apart.
Where the owners of chunks do not matter (all-reduce, broadcast, reduce), chunks get other places,
such that chunks that travel together lie side by side and are one task: 3 instead of 7 tasks for 8
ranks, 5 instead of 31 for 32, 4 instead of 11 for 12.

On A3, and in some executors of A2, neighbours also meet after every step of a reduction over RDMA
(`meeting`): a barrier, one α more for each.

Cost for p ranks and n bytes: reduce-scatter Lα + (p-1)/p·n(β+γ); all-gather, scatter and gather
Lα + (p-1)/p·nβ; all-reduce and the others the sum of their two halves. Small data goes over trees
instead (tree.py). Source: HCCL's public documents and code (NHR); gather and reduce are ours, by
symmetry.
"""

from functools import lru_cache

import numpy as np

from hccl_executors.templates.signals import acknowledged_barrier
from hccl_executors.templates.tree import tree_broadcast, tree_reduce
from hccl_py.orchestration import Chunks, Plane, Region, Stream, exchange
from hccl_py.values import RankInt

ONE_SHOT_ALL_REDUCE = 256 << 10
"""Bytes up to which HCCL reduces and broadcasts whole buffers over trees."""

ONE_SHOT_BROADCAST = 2 << 20
"""Bytes up to which HCCL broadcasts the whole buffer over a tree."""


def nhr_reduce_scatter(
    stream: Stream, plane: Plane, chunks: Chunks, *, meeting: bool = False
) -> None:
    """Leave in chunk r of rank r the reduction of all ranks' chunk r; other chunks hold partial
    results. `meeting`, neighbours meet after every step over RDMA.
    """
    p = int(plane.size)
    for step in stream.steps("reduce-scatter", (p - 1).bit_length()):
        width = 1 << step
        count = (p - 1 + width) // (2 * width)
        to, frm = plane[(plane.id - width) % p], plane[(plane.id + width) % p]
        exchange(
            stream,
            to,
            frm,
            send=chunks.series(plane.id - width, -2 * width, count),
            recv=chunks.series(plane.id, -2 * width, count),
            reduce=True,
        )
        if meeting:
            acknowledged_barrier(stream, frm if frm.rdma else None, to if to.rdma else None)


def nhr_all_gather(stream: Stream, plane: Plane, chunks: Chunks) -> None:
    """Leave in every rank all chunks; rank r starts with chunk r."""
    p = int(plane.size)
    steps = (p - 1).bit_length()
    for step in stream.steps("all-gather", steps):
        width = 1 << (steps - 1 - step)
        count = (p - 1 + width) // (2 * width)
        exchange(
            stream,
            plane[(plane.id + width) % p],
            plane[(plane.id - width) % p],
            send=chunks.series(plane.id, -2 * width, count),
            recv=chunks.series(plane.id - width, -2 * width, count),
        )


def nhr_all_reduce(stream: Stream, plane: Plane, work: Region, *, meeting: bool = False) -> None:
    """Leave in `work` of every rank the reduction of all ranks' `work`, in parts."""
    nhr_all_reduce_chunks(stream, plane, work.split(int(plane.size)), meeting=meeting)


def nhr_all_reduce_chunks(
    stream: Stream, plane: Plane, chunks: Chunks, *, meeting: bool = False
) -> None:
    """The same for data that is cut, where the owners of chunks do not matter."""
    chunks = chunks.renumbered(nhr_order(int(plane.size)))
    nhr_reduce_scatter(stream, plane, chunks, meeting=meeting)
    nhr_all_gather(stream, plane, chunks)


def nhr_all_reduce_one_shot(
    stream: Stream, plane: Plane, work: Region, *, meeting: bool = False
) -> None:
    """Leave in `work` of every rank the reduction of all ranks' `work`, over trees to rank 0 and
    back.
    """
    tree_reduce(stream, plane, work, root=0, meeting=meeting)
    tree_broadcast(stream, plane, work, root=0)


def nhr_broadcast(
    stream: Stream, plane: Plane, work: Region, root: int, one_shot: int = ONE_SHOT_BROADCAST
) -> None:
    """Leave in `work` of every rank what the root has there: up to `one_shot` bytes over a tree,
    more in parts.
    """
    whole = bool(work.size <= one_shot)
    (tree_broadcast if whole else nhr_broadcast_in_parts)(stream, plane, work, root)


def nhr_broadcast_in_parts(stream: Stream, plane: Plane, work: Region, root: int) -> None:
    """Leave in `work` of every rank what the root has there: scatter, then all-gather."""
    chunks = _renumbered(work, int(plane.size))
    nhr_scatter(stream, plane, chunks, root)
    nhr_all_gather(stream, plane, chunks)


def nhr_reduce(stream: Stream, plane: Plane, work: Region, root: int) -> None:
    """Leave in `work` of the root the reduction of all ranks' `work`: reduce-scatter, then gather;
    others hold partial results.
    """
    chunks = _renumbered(work, int(plane.size))
    nhr_reduce_scatter(stream, plane, chunks)
    nhr_gather(stream, plane, chunks, root)


def nhr_scatter(stream: Stream, plane: Plane, chunks: Chunks, root: int) -> None:
    """Leave chunk r of the root in chunk r of rank r; ranks on the way hold those of ranks behind
    them, too.

    Of 7, 11, 13 and some more ranks HCCL's code also sends chunks that the sender does not have;
    they are left out.
    """
    p = int(plane.size)
    distance = (root - plane.id) % p
    for step in stream.steps("scatter", (p - 1).bit_length()):
        width = 1 << step
        if distance < width and distance + width < p:
            behind = _behind(plane, chunks, distance, plane.id - width, width)
            exchange(stream, to=plane[(plane.id - width) % p], send=behind)
        elif distance // width == 1:
            behind = _behind(plane, chunks, distance - width, plane.id, width)
            exchange(stream, frm=plane[(plane.id + width) % p], recv=behind)


def nhr_gather(stream: Stream, plane: Plane, chunks: Chunks, root: int) -> None:
    """Leave chunk r of rank r in chunk r of the root; ranks on the way hold those of ranks behind
    them, too.
    """
    p = int(plane.size)
    distance = (root - plane.id) % p
    steps = (p - 1).bit_length()
    for step in stream.steps("gather", steps):
        width = 1 << (steps - 1 - step)
        if distance < width and distance + width < p:
            behind = _behind(plane, chunks, distance, plane.id - width, width)
            exchange(stream, frm=plane[(plane.id - width) % p], recv=behind)
        elif distance // width == 1:
            behind = _behind(plane, chunks, distance - width, plane.id, width)
            exchange(stream, to=plane[(plane.id + width) % p], send=behind)


def _behind(
    plane: Plane, chunks: Chunks, distance: RankInt, first: RankInt, width: int
) -> list[Region]:
    """Return the chunks that the rank at this distance hands over in a step: `first` and every
    2·width-th farther off, as far as the ranks go.
    """
    count = int((plane.size - 1 - distance + width) // (2 * width))
    return chunks.series(first, -2 * width, count)


def _renumbered(work: Region, p: int) -> Chunks:
    return work.split(p).renumbered(nhr_order(p))


@lru_cache(maxsize=64)
def nhr_order(p: int) -> tuple[int, ...]:
    """Return the place of every chunk such that chunks that travel together are neighbours.

    As long as several chunks travel together: in every block, chunks at even places move to its
    first half, the others to its second. For powers of two that reverses bits.
    """
    chunk = np.arange(p)
    length, width = p, 1
    while (p - 1 + width) // (2 * width) > 1:
        blocks = chunk.reshape(-1, length)
        chunk = np.concatenate([blocks[:, ::2], blocks[:, 1::2]], axis=1).reshape(-1)
        if length % 2:
            break
        length, width = length // 2, 2 * width
    return tuple(np.argsort(chunk).tolist())
