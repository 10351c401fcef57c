"""Mesh: every rank has a link to every other one, and all links work at the same time, one sub
stream each.

    reduce-scatter: put my own chunk into the landing place,
                    then everyone adds its chunk d to rank d's landing place
    all-gather:     everyone reads every peer's landing place

Cost for p ranks and n bytes: reduce-scatter α + nβ/p + (p-1)/p·nγ, all-gather α + nβ/p; β is per
link, links are parallel. Both are written for SDMA links, inside one server. Streams meet between
the Acks and the transfers: HCCL's mesh templates of op-base mode on Atlas A2.
"""

from collections.abc import Sequence

from hccl_py.orchestration import Chunks, Plane, Region
from hccl_py.plugins.executor import AnyRank
from hccl_py.values import RankInt


def mesh_reduce_scatter(rank: AnyRank, plane: Plane, chunks: Chunks, land: Region) -> None:
    """Leave in `land` (exported, the same place at every rank) the reduction of all ranks' chunk r.

    With inline reduce the peers' chunks are added as they arrive: atomically, in an open order, so
    that float sums may differ in the last bit from run to run. Without it they arrive side by side
    in CCL_In, one slot per rank, and main reduces them in order of distance.
    """
    mine = land.head(chunks[plane.id].size)
    above = [(plane.id + k) % plane.size for k in range(1, int(plane.size))]
    with rank.main.phase("reduce-scatter"):
        rank.main.copy(mine, chunks[plane.id])
        slots = None if rank.inline_reduce else _slots(rank.ccl_in, land.size, int(plane.size))
        _meet(rank, plane, above)
        with rank.fork(len(above)) as subs:
            for sub, peer in zip(subs, above, strict=True):
                link, theirs = plane[peer], chunks[peer]
                if slots is None:
                    sub.reduce(link.remote(land.head(theirs.size)), theirs)
                else:
                    sub.copy(link.remote(slots[plane.id].head(theirs.size)), theirs)
                link.tx_data_signal(sub)  # yours has got my chunk
                link.rx_data_signal(sub)
        if slots is not None:
            for peer, _ in plane.others():
                rank.main.reduce(mine, slots[peer].head(mine.size))


def _meet(rank: AnyRank, plane: Plane, peers: Sequence[RankInt]) -> None:
    """Wait on a stream for each until all peers are ready."""
    with rank.fork(len(peers)) as subs:
        for sub, peer in zip(subs, peers, strict=True):
            plane[peer].tx_ack(sub)
            plane[peer].rx_ack(sub)


def _slots(memory: Region, size: RankInt, n: int) -> Chunks:
    """Return n slots of `size` bytes, side by side."""
    return memory.head(size * n).split(n, align=1)


def mesh_all_gather(rank: AnyRank, plane: Plane, chunks: Chunks, land: Region) -> None:
    """Leave in `chunks` what every rank has in its `land`, an exported place, the same for all."""
    with rank.main.phase("all-gather"):
        _meet(rank, plane, [peer for peer, _ in plane.others()])
        with plane.fork() as subs:
            rank.main.copy(chunks[plane.id], land.head(chunks[plane.id].size))
            for sub, peer, link in subs:
                sub.copy(chunks[peer], link.remote(land.head(chunks[peer].size)))
                link.tx_data_signal(sub)  # I have read yours
                link.rx_data_signal(sub)  # you have read mine
