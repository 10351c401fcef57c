"""Ring: every rank talks to its two neighbours only.

In every step a rank sends one chunk to its right neighbour and takes another one from its left
neighbour, so no two ranks touch the same chunk at once.

    reduce-scatter, step s: send chunk r - 1 - s, receive and reduce chunk r - 2 - s; rank r ends
    with chunk r all-gather,     step s: send chunk r - s,     receive chunk r - 1 - s

Cost for p ranks and n bytes: reduce-scatter (p-1)α + (p-1)/p·n(β+γ), all-gather (p-1)α +
(p-1)/p·nβ. Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of
workstations", 2009.
"""

from hccl_py.orchestration import Chunks, Plane, Stream, exchange

__all__ = ["ring_all_gather", "ring_reduce_scatter"]


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
