"""Push: every rank writes something to every other one, over as many streams as there are.

Ranks do not read from peers, so sources may be memory that peers cannot reach, such as user memory
in op-base mode, and links may be of any kind. Streams share the peers evenly; each posts all its
Acks before it waits for one, so that no stream waits for one that is busy with another peer.

    collect:  chunk i of every rank goes to rank i, side by side: reduced locally, in any order,
              once all chunks have come

Cost for p ranks, n bytes and s streams: ceil((p-1)/s)α + (p-1)/s·nβ/p; β is per link, links are
parallel. Source: HCCL's public documents of mesh (the direct-write step).
"""

from collections.abc import Sequence

from hccl_py.orchestration import Chunks, Link, Plane, Region, Stream
from hccl_py.orchestration.region import SLICE_ALIGN
from hccl_py.plugins.executor import AnyRank

Part = tuple[Link, Region, Region]


def mesh_push(rank: AnyRank, plane: Plane, what: Sequence[Region], where: Sequence[Region]) -> None:
    """Write what[i] to place where[i] of the member i + 1 below, for all members at once."""
    links = [link for _, link in plane.others()]
    parts = list(zip(links, what, where, strict=True))
    with rank.fork(min(len(rank.subs), len(parts))) as subs:
        streams = subs if len(subs) == len(parts) else (*subs, rank.main)
        for i, stream in enumerate(streams):
            _push(stream, parts[i :: len(streams)])


def collect(rank: AnyRank, plane: Plane, chunks: Chunks, places: Sequence[Region]) -> list[Region]:
    """Bring chunk r of every peer to rank r and return their places: places[i], or its beginning,
    has that of the member i + 1 below. Places are exported.
    """
    mine, peers = chunks[plane.id].size, [peer for peer, _ in plane.others()]
    with rank.main.phase("collect"):
        mesh_push(
            rank,
            plane,
            [chunks[peer] for peer in peers],
            # The member i + 1 below has me p - 1 - i below.
            [places[-1 - i].head(chunks[peer].size) for i, peer in enumerate(peers)],
        )
    return [place.head(mine) for place in places]


def beside(memories: Sequence[Region], size: int, n: int) -> list[Region]:
    """Return n places of `size` bytes, as many in each memory, that begin at multiples of 128."""
    each, stride = -(-n // len(memories)), aligned(size)
    starts = [(memory, i * stride) for memory in memories for i in range(each)]
    return [memory[start : start + size] for memory, start in starts[:n]]


def aligned(size: int) -> int:
    """Return bytes rounded up to a multiple of 128."""
    return -(-size // SLICE_ALIGN) * SLICE_ALIGN


def _push(stream: Stream, parts: Sequence[Part]) -> None:
    for link, _, _ in parts:
        link.tx_ack(stream)  # you may write to mine
    for link, what, where in parts:
        link.rx_ack(stream)
        stream.copy(link.remote(where), what)
        link.tx_data_signal(stream)
    for link, _, _ in parts:
        link.rx_data_signal(stream)
        if link.rdma:
            link.tx_data_ack(stream)
    for link, _, _ in parts:
        if link.rdma:
            link.rx_data_ack(stream)
