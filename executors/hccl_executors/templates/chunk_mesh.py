"""Chunk mesh: an all-reduce over a mesh whose sums do not depend on timing; for SDMA links.

Every chunk is cut into p - 1 parts. In round k, stream j adds part j of the peer that is
((j + k) mod (p - 1)) + 1 ahead to the own one, so all links are busy, no two streams add to the
same part, and every part is added in an order of its own that is always the same.

    p = 4, rank 0, from whom:   round 0   round 1   round 2
        part 0 (stream 0)          1         2         3
        part 1 (stream 1)          2         3         1
        part 2 (main)              3         1         2

Peers meet before the first round and after the last one; between rounds a rank joins its own
streams only. Then every rank reads every peer's chunk.

Cost for p ranks and n bytes: 2α + 2nβ/p + nγ/p; β is per link, links are parallel. Source: HCCL's
AllReduceChunkMesh (hcomm b5f3e5b, alg_template/temp_all_reduce).
"""

from hccl_executors.templates.mesh_peers import empty_copy, exchange_acks, peer_assignments
from hccl_py.orchestration import Chunks, Plane, Region
from hccl_py.plugins.executor import AnyRank


def chunk_mesh_all_reduce(rank: AnyRank, plane: Plane, work: Region) -> None:
    """Leave in user_out the sum of all ranks' user_in. `work` is exported: a CCL buffer, or
    user_out itself, where peers read user_in.
    """
    chunks, inputs = work.split(plane.size), rank.user_in.split(plane.size)
    is_direct = work.buffer == rank.user_out.buffer
    if not is_direct:
        rank.main.copy(work, rank.user_in)
    elif not rank.is_in_place:
        rank.main.copy(chunks[plane.id], inputs[plane.id])
    _reduce_in_turn(rank, plane, chunks, inputs if is_direct else chunks)
    with rank.main.phase("all-gather"):
        read_all(rank, plane, chunks, rank.user_out.split(plane.size))


def _reduce_in_turn(rank: AnyRank, plane: Plane, chunks: Chunks, theirs: Chunks) -> None:
    """Add to the own chunk what all peers have of it in `theirs`."""
    p, empty = int(plane.size), rank.user_out
    rounds = p - 1
    mine, sources = chunks.parts(rounds), theirs.parts(rounds)
    streams = [*rank.subs[: rounds - 1], rank.main]
    empty_copy(rank, empty)
    with rank.fork():
        exchange_acks(peer_assignments(rank, plane, by_main=True))
        empty_copy(rank, empty)
        empty_copy(rank, empty)
    for turn in rank.main.steps("reduce-scatter", rounds):
        empty_copy(rank, empty)
        with rank.fork():
            empty_copy(rank, empty)
            links = [plane[(plane.id + (j + turn) % rounds + 1) % p] for j in range(rounds)]
            for j, (stream, link) in enumerate(zip(streams, links, strict=True)):
                stream.reduce(mine[j][plane.id], link.remote(sources[j][plane.id]))
            if turn == rounds - 1:
                for stream, link in zip(streams, links, strict=True):
                    link.tx_data_signal(stream)
                    link.rx_data_signal(stream)
            empty_copy(rank, empty)
    empty_copy(rank, empty)


def read_all(rank: AnyRank, plane: Plane, chunks: Chunks, outputs: Chunks) -> None:
    """Leave in `outputs` chunk r of every rank r; main serves the last peer, the last sub stream
    copies the own chunk, unless it lies there already.
    """
    empty = rank.user_out
    members = peer_assignments(rank, plane, ahead=False, by_main=True)
    empty_copy(rank, empty)
    with rank.fork():
        exchange_acks(members)
        empty_copy(rank, empty)
    empty_copy(rank, empty)
    with rank.fork() as subs:
        empty_copy(rank, empty)
        if chunks.buffer != outputs.buffer:
            (subs[-1] if subs else rank.main).copy(outputs[plane.id], chunks[plane.id])
        for stream, peer, link in members:
            stream.copy(outputs[peer], link.remote(chunks[peer]))
            link.tx_data_signal(stream)
            link.rx_data_signal(stream)
        empty_copy(rank, empty)
    empty_copy(rank, empty)
