"""Ring: every rank talks to its two neighbours only.

In every step a rank sends one chunk to its right neighbour and takes another one from its left
neighbour, so no two ranks touch the same chunk at once.

    reduce-scatter, step s: send chunk r - 1 - s, receive and reduce chunk r - 2 - s
    all-gather,     step s: send chunk r - s,     receive chunk r - 1 - s

Rank r ends the first with chunk r, and begins the second with it.

With a root, data goes right from it, or towards it; d is a rank's distance to the right of the
root:

    broadcast: p chunks, one after the other; a rank sends on chunk c while it receives chunk c + 1
    scatter:   the root sends the chunk of the rank farthest off first, rank d passes on p - d - 1
    gather:    every rank sends its own chunk first, then the d - 1 that come from the left
    reduce:    the whole buffer goes from d = 1 to the root, every rank adds its own

Cost for p ranks and n bytes: reduce-scatter (p-1)α + (p-1)/p·n(β+γ), all-gather, scatter and gather
(p-1)α + (p-1)/p·nβ, all-reduce the sum of the first two, broadcast (2p-2)(α+nβ/p), reduce
(p-1)(α+nβ+nγ). In scatter and gather every rank has another number of steps, so every rank is a
batch of its own. Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters
of workstations", 2009.
"""

from hccl_py.orchestration import Chunks, Plane, Region, Stream, exchange

__all__ = [
    "ring_all_gather",
    "ring_all_reduce",
    "ring_broadcast",
    "ring_gather",
    "ring_reduce",
    "ring_reduce_scatter",
    "ring_scatter",
]


def ring_reduce_scatter(stream: Stream, plane: Plane, chunks: Chunks) -> None:
    """Leave in chunk r of rank r the reduction of all ranks' chunk r; other chunks hold partial
    results.
    """
    for step in stream.steps("reduce-scatter", plane.size - 1):
        exchange(
            stream,
            plane.right,
            plane.left,
            send=chunks[(plane.id - 1 - step) % plane.size],
            recv=chunks[(plane.id - 2 - step) % plane.size],
            reduce=True,
        )


def ring_all_gather(stream: Stream, plane: Plane, chunks: Chunks) -> None:
    """Leave in every rank all chunks; rank r starts with chunk r."""
    for step in stream.steps("all-gather", plane.size - 1):
        exchange(
            stream,
            plane.right,
            plane.left,
            send=chunks[(plane.id - step) % plane.size],
            recv=chunks[(plane.id - 1 - step) % plane.size],
        )


def ring_all_reduce(stream: Stream, plane: Plane, work: Region) -> None:
    """Leave in `work` of every rank the reduction of all ranks' `work`."""
    chunks = work.split(plane.size)
    ring_reduce_scatter(stream, plane, chunks)
    ring_all_gather(stream, plane, chunks)


def ring_broadcast(stream: Stream, plane: Plane, work: Region, root: int) -> None:
    """Leave in `work` of every rank what the root has there.

    Every rank but the root receives p chunks, however small `work` is, and every rank but the last
    one sends p.
    """
    p = int(plane.size)
    chunks = work.split(p)
    lag = int(plane.id != root)  # only the root has chunk c before step c
    is_last = bool((plane.id + 1) % p == root)
    for step in stream.steps("broadcast", p if is_last else p + lag):
        to = plane.right if step >= lag and not is_last else None
        frm = plane.left if lag and step < p else None
        exchange(stream, to, frm, send=chunks[(step - lag) % p], recv=chunks[step % p])


def ring_scatter(stream: Stream, plane: Plane, chunks: Chunks, root: int) -> None:
    """Leave chunk r of the root in chunk r of rank r; ranks on the way hold those of ranks behind
    them, too.
    """
    p = int(plane.size)
    distance = int((plane.id - root) % p)
    for step in stream.steps("scatter", p - distance if p > 1 else 0):
        to = plane.right if step else None
        frm = plane.left if distance else None
        send, recv = chunks[(root - step) % p], chunks[(root - 1 - step) % p]
        exchange(stream, to, frm, send, recv)


def ring_gather(stream: Stream, plane: Plane, chunks: Chunks, root: int) -> None:
    """Leave chunk r of rank r in chunk r of the root; ranks on the way hold those of ranks behind
    them, too.
    """
    p = int(plane.size)
    distance = int((plane.id - root - 1) % p) + 1  # the root is at the end
    for step in stream.steps("gather", distance if distance < p else p - 1):
        to = plane.right if distance < p else None
        frm = plane.left if step < distance - 1 else None
        send, recv = chunks[(plane.id - step) % p], chunks[(plane.id - 1 - step) % p]
        exchange(stream, to, frm, send, recv)


def ring_reduce(stream: Stream, plane: Plane, work: Region, root: int) -> None:
    """Leave in `work` of the root the reduction of all ranks' `work`; others hold partial
    results.
    """
    p = int(plane.size)
    if p == 1:
        return
    with stream.phase("reduce"):
        if (plane.id - 1) % p != root:
            exchange(stream, frm=plane.left, recv=work, reduce=True)
        if plane.id != root:
            exchange(stream, to=plane.right, send=work, reduce=True)
