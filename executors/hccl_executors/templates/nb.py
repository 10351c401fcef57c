"""NB, nonuniform Bruck: all ranks in L = ceil(log2 p) steps, for any p, and every chunk is moved
p - 1 times in all.

    reduce-scatter, step s, w = 2^s: to r + w, from r - w; send chunks r + w, r + 3w, .., receive
                                     and reduce chunks r, r + 2w, ..; (p - 1 + w) div 2w of them
    all-gather,     step s, w = 2^s: to r + w, from r - w; send chunks r, r - 1, .., receive chunks
                                     r - w, r - w - 1, ..; w of them, in the last step p - w
    scatter,        step s, w = 2^s: the first w ranks from the root on send to r + w the chunks of
                                     ranks r + w, r + 3w, .. as far as there are any

Chunks of all-gather are neighbours, so a step has one task, or two where they wrap around. Links
are those of NHR; its chunks are ordered the other way round.

Cost for p ranks and n bytes: reduce-scatter Lα + (p-1)/p·n(β+γ); all-gather and scatter
Lα + (p-1)/p·nβ; all-reduce and broadcast the sum of their two halves; broadcast over a tree
L(α+nβ). Source: HCCL's public documents and code (NB).
"""

from hccl_executors.templates.tree import narrow_tree_broadcast
from hccl_py.orchestration import Chunks, Plane, Region, Stream, exchange
from hccl_py.values import RankInt

__all__ = [
    "nb_all_gather",
    "nb_all_reduce",
    "nb_broadcast",
    "nb_broadcast_in_parts",
    "nb_reduce_scatter",
    "nb_scatter",
    "nb_tree_limit",
]

LATENCY_US = 60
"""What HCCL counts for a step when it weighs the tree against parts."""

LINK_GBPS = 20.0
"""GB/s that HCCL counts for the wire of 910B and 910_93."""


def nb_reduce_scatter(stream: Stream, plane: Plane, chunks: Chunks) -> None:
    """Leave in chunk r of rank r the reduction of all ranks' chunk r; other chunks hold partial
    results.
    """
    p = int(plane.size)
    for step in stream.steps("reduce-scatter", (p - 1).bit_length()):
        width = 1 << step
        count = (p - 1 + width) // (2 * width)
        exchange(
            stream,
            plane[(plane.id + width) % p],
            plane[(plane.id - width) % p],
            send=chunks.series(plane.id + width, 2 * width, count),
            recv=chunks.series(plane.id, 2 * width, count),
            reduce=True,
        )


def nb_all_gather(stream: Stream, plane: Plane, chunks: Chunks) -> None:
    """Leave in every rank all chunks; rank r starts with chunk r."""
    _all_gather(stream, plane, _windows(plane, chunks))


def nb_all_reduce(stream: Stream, plane: Plane, work: Region) -> None:
    """Leave in `work` of every rank the reduction of all ranks' `work`."""
    chunks = work.split(plane.size)
    windows = _windows(plane, chunks)  # batches part here: better before much is recorded
    nb_reduce_scatter(stream, plane, chunks)
    _all_gather(stream, plane, windows)


def _windows(plane: Plane, chunks: Chunks) -> list[tuple[list[Region], list[Region]]]:
    """Return what a rank sends and receives in the steps of all-gather."""
    p = int(plane.size)
    widths = [1 << step for step in range((p - 1).bit_length())]
    return [
        (
            chunks.series(plane.id, -1, min(width, p - width)),
            chunks.series(plane.id - width, -1, min(width, p - width)),
        )
        for width in widths
    ]


def _all_gather(
    stream: Stream, plane: Plane, windows: list[tuple[list[Region], list[Region]]]
) -> None:
    for step in stream.steps("all-gather", len(windows)):
        right = plane[(plane.id + (1 << step)) % plane.size]
        left = plane[(plane.id - (1 << step)) % plane.size]
        send, recv = windows[step]
        exchange(stream, right, left, send, recv)


def nb_scatter(stream: Stream, plane: Plane, chunks: Chunks, root: int) -> None:
    """Leave chunk r of the root in chunk r of rank r; ranks on the way hold those of ranks behind
    them, too.
    """
    p = int(plane.size)
    distance = (plane.id - root) % p
    for step in stream.steps("scatter", (p - 1).bit_length()):
        width = 1 << step
        if distance < width and distance + width < p:
            behind = _behind(plane, chunks, distance, plane.id + width, width)
            exchange(stream, to=plane[(plane.id + width) % p], send=behind)
        elif distance // width == 1:
            behind = _behind(plane, chunks, distance - width, plane.id, width)
            exchange(stream, frm=plane[(plane.id - width) % p], recv=behind)


def nb_broadcast(
    stream: Stream,
    plane: Plane,
    work: Region,
    root: int,
    bandwidth: float = LINK_GBPS,
    *,
    share: int = 1,
) -> None:
    """Leave in `work` of every rank what the root has there: small data over a tree, large data in
    parts, as HCCL weighs the `share`-th part of it for links of `bandwidth` GB/s.
    """
    p = int(plane.size)
    whole = p == 2 or bool(work.size < share * nb_tree_limit(p, bandwidth))
    (narrow_tree_broadcast if whole else nb_broadcast_in_parts)(stream, plane, work, root)


def nb_broadcast_in_parts(stream: Stream, plane: Plane, work: Region, root: int) -> None:
    """Leave in `work` of every rank what the root has there: scatter, then all-gather."""
    chunks = work.split(plane.size)
    nb_scatter(stream, plane, chunks, root)
    nb_all_gather(stream, plane, chunks)


def nb_tree_limit(p: int, bandwidth: float) -> int:
    """Return the bytes from which on HCCL broadcasts in parts, for links of `bandwidth` GB/s; of 2
    ranks it never does.
    """
    steps = (p - 1).bit_length()
    weight = p if p <= 4 else (2 * steps - 2) / (steps - 2)
    return round(weight * bandwidth * LATENCY_US * 1000)


def _behind(
    plane: Plane, chunks: Chunks, distance: RankInt, first: RankInt, width: int
) -> list[Region]:
    """Return the chunks that the rank at this distance hands over in a step: `first` and every
    2·width-th farther off, as far as the ranks go.
    """
    count = int((plane.size - 1 - distance + width) // (2 * width))
    return chunks.series(first, 2 * width, count)
