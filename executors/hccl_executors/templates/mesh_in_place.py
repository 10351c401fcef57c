"""Mesh in place: chunks lie at the same place in every rank's exported memory, and arrive there.

    all-gather:  everyone takes every peer's chunk at once
    scatter:     the root offers every rank its chunk, one after the other, and each takes it at
                 once; main alone
    gather:      the root takes the chunks of all ranks at once

Reduce-scatter has a file of its own, mesh_reduce.py. A broadcast is a scatter and an all-gather, a
reduce is a reduce-scatter and a gather, an all-reduce a reduce-scatter and an all-gather: see
two_levels.py, where another algorithm may come in between.

p - 1 streams: p - 2 subs, and main for the last peer, or for the first in a gather. Over links of
any kind. Cost for p ranks and n bytes: α + nβ/p each; β is per link, links are parallel. Barriers
of all pairs, one after the other on main, cost (2p - 3)α where no rank has to wait otherwise.
Sources: AllGatherMesh, AllGatherMeshAtomic, ScatterMesh and GatherMesh of HCCL (hcomm b5f3e5b,
alg_template).
"""

from collections.abc import Iterator
from contextlib import contextmanager

from hccl_py.orchestration import Chunks, Link, Plane, Stream, exchange
from hccl_py.orchestration.exchange import rx_data, tx_data
from hccl_py.plugins.executor import AnyRank
from hccl_py.values import RankInt


@contextmanager
def mesh_streams(rank: AnyRank, plane: Plane) -> Iterator[list[Stream]]:
    """Wake a stream for every peer; wait for all at the end."""
    peers = int(plane.size) - 1
    with rank.fork(max(peers - 1, 0)) as subs:
        yield [*subs, rank.main][:peers]


@contextmanager
def mesh_subs(rank: AnyRank, plane: Plane) -> Iterator[list[tuple[Stream, RankInt, Link]]]:
    """The same; yield (stream, index, link) of each peer."""
    with mesh_streams(rank, plane) as streams:
        subs = zip(streams, plane.others(), strict=True)
        yield [(stream, index, link) for stream, (index, link) in subs]


def mesh_all_gather_in_place(rank: AnyRank, plane: Plane, chunks: Chunks) -> None:
    """Leave in every rank all chunks; rank r starts with chunk r."""
    with rank.main.phase("all-gather"), mesh_subs(rank, plane) as subs:
        for stream, peer, link in subs:
            link.tx_ack(stream)
            link.rx_ack(stream)
            tx_data(stream, link, chunks[plane.id])
            rx_data(stream, link, chunks[peer])
            _meet(stream, link)


def mesh_all_gather_meeting(rank: AnyRank, plane: Plane, chunks: Chunks) -> None:
    """The same over SDMA links, where streams meet between the Acks and the reads."""
    with rank.main.phase("all-gather"):
        mesh_acks(rank, plane)
        with mesh_subs(rank, plane) as subs:
            for stream, peer, link in subs:
                stream.copy(chunks[peer], link.remote(chunks[peer]))
                link.tx_data_signal(stream)
                link.rx_data_signal(stream)


def mesh_all_gather_by_main(rank: AnyRank, plane: Plane, chunks: Chunks) -> None:
    """The same where main serves the last peer, even if there are sub streams for all; over RDMA
    links, or both kinds, without a meeting.
    """
    count = max(int(plane.size) - 2, 0)
    with rank.main.phase("all-gather"):
        sides = list(zip((*rank.subs[:count], rank.main), plane.others(), strict=False))
        if any(bool(link.rdma) for _, (_, link) in sides):
            with rank.fork(count):
                for stream, (peer, link) in sides:
                    exchange(stream, link, link, send=chunks[plane.id], recv=chunks[peer])
            return
        with rank.fork(count):
            for stream, (_, link) in sides:
                link.tx_ack(stream)
                link.rx_ack(stream)
        with rank.fork(count):
            for stream, (peer, link) in sides:
                stream.copy(chunks[peer], link.remote(chunks[peer]))
                link.tx_data_signal(stream)
                link.rx_data_signal(stream)


def mesh_acks(rank: AnyRank, plane: Plane) -> None:
    """Make every rank wait until all its peers are ready."""
    with mesh_subs(rank, plane) as subs:
        for stream, _, link in subs:
            link.tx_ack(stream)
            link.rx_ack(stream)


def mesh_scatter(rank: AnyRank, plane: Plane, chunks: Chunks, root: int) -> None:
    """Leave chunk r of the root in chunk r of rank r. No signal says that data has been read: the
    next Ack does, or a barrier.
    """
    main = rank.main
    with main.phase("scatter"):
        if plane.id == root:
            for peer in range(int(plane.size)):
                if peer != root:
                    plane[peer].rx_ack(main)
                    tx_data(main, plane[peer], chunks[peer])
        else:
            plane[root].tx_ack(main)
            rx_data(main, plane[root], chunks[plane.id])


def mesh_barrier(rank: AnyRank, plane: Plane) -> None:
    """Wait for every peer, one after the other in order of rank."""
    me = int(plane.id)
    with rank.main.phase("barrier"):
        for peer in range(int(plane.size)):
            if peer != me:
                _meet(rank.main, plane[peer])


def mesh_gather(rank: AnyRank, plane: Plane, chunks: Chunks, root: int) -> None:
    """Leave chunk r of rank r in chunk r of the root, whose main serves the first peer."""
    with rank.main.phase("gather"):
        if plane.id != root:
            plane[root].rx_ack(rank.main)
            tx_data(rank.main, plane[root], chunks[plane.id])
            plane[root].rx_data_signal(rank.main)
            return
        peers = [peer for peer in range(int(plane.size)) if peer != root]
        with mesh_streams(rank, plane) as streams:
            for stream, peer in zip([*streams[-1:], *streams[:-1]], peers, strict=True):
                plane[peer].tx_ack(stream)
                rx_data(stream, plane[peer], chunks[peer])
                plane[peer].tx_data_signal(stream)  # I have it


def _meet(stream: Stream, link: Link) -> None:
    """Signal both ways, twice: HCCL's ExecuteBarrier."""
    link.tx_ack(stream)
    link.rx_ack(stream)
    link.tx_data_signal(stream)
    link.rx_data_signal(stream)
