"""Reduce-scatter over a mesh, in place, in two ways.

As data arrives: all peers' chunk r comes at once and is added to the own one atomically, in an open
order, so that sums of floats may differ in the last bit from run to run. Needs inline reduce.
Streams meet between the Acks and the transfers: HCCL's ReduceScatterMeshAtomic.

    one step, α + n/p·(β + γ)

In turn: every chunk is cut into p - 1 parts. In round k, stream j takes part j from the peer
((j + k) mod (p - 1)) + 1 ahead, so all links are busy, no two streams add to the same part, and
every part is reduced in an order of its own that is always the same. Needs no inline reduce: what
arrives lands beside, each part at its own place.

    p = 4, rank 0, from whom:   round 0   round 1   round 2
        part 0 (stream 0)          1         2         3
        part 1 (stream 1)          2         3         1
        part 2 (main)              3         1         2

    p - 1 steps, (p-1)α + n/p·(β + γ)

Rounds are joined: the next one uses every link from another stream. Streams reduce side by side;
HCCL's own formula counts (p-1)/p·nγ, one after the other. Sources: HCCL's public
documents of mesh; the second is HCCL's ReduceScatterMesh, for all products but Atlas A2, and there
where sums must not depend on timing.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from hccl_executors.templates.mesh_in_place import mesh_streams
from hccl_py.orchestration import Chunks, Link, Plane, Stream, exchange
from hccl_py.plugins.executor import AnyRank


def mesh_reduce_scatter_atomic(rank: AnyRank, plane: Plane, chunks: Chunks) -> None:
    """Leave in chunk r of rank r the reduction of all ranks' chunk r, added as they arrive; other
    chunks keep what they had. Links are SDMA.
    """
    mine = chunks[plane.id]
    with rank.main.phase("reduce-scatter"):
        with _mesh_ahead(rank, plane) as links:
            for stream, link in links:
                link.tx_ack(stream)
                link.rx_ack(stream)
        with _mesh_ahead(rank, plane) as links:
            for stream, link in links:
                stream.reduce(mine, link.remote(mine))
                link.tx_data_signal(stream)
                link.rx_data_signal(stream)


@contextmanager
def _mesh_ahead(rank: AnyRank, plane: Plane) -> Iterator[list[tuple[Stream, Link]]]:
    """Wake a stream for every peer, main for the next one above if it serves one at all."""
    with mesh_streams(rank, plane) as streams:
        if streams and streams[-1] is rank.main:
            streams = [rank.main, *streams[:-1]]
        peers = [plane[(plane.id + k) % plane.size] for k in range(1, int(plane.size))]
        yield list(zip(streams, peers, strict=True))


def mesh_reduce_scatter_in_turn(rank: AnyRank, plane: Plane, chunks: Chunks) -> None:
    """Leave in chunk r of rank r the reduction of all ranks' chunk r, in a fixed order; other
    chunks keep what they had.
    """
    subs = int(plane.size) - 1
    parts = chunks.parts(subs) if subs else []
    for turn in rank.main.steps("reduce-scatter", subs):
        with mesh_streams(rank, plane) as streams:
            for sub, stream in enumerate(streams):
                ahead = (sub + turn) % subs + 1
                peer = (plane.id + ahead) % plane.size
                their_sub = (subs - ahead - turn) % subs  # from the peer, I am subs + 1 - ahead
                exchange(
                    stream,
                    plane[peer],
                    plane[peer],
                    send=parts[their_sub][peer],
                    recv=parts[sub][plane.id],
                    reduce=True,
                )
