"""Collect and add, server by server: the chunks of all ranks come to lie beside each other and are
added by halves, while those of the next server come; then the same between servers.

n ranks in each of S servers; rank l of server j has n places for each server, all of one size:

    in the servers   for every server g: chunk (g, r) of rank l goes to place (r + l + shift) of
                     rank r; when all are there, streams of their own add them up, into the place of
                     rank 0's, while main and the other sub streams go on with server g + 1
    between          for every server g, one after the other on main: what this server has of chunk
                     (g, l) goes to a place l of server g, place j + g; then main adds them up

With several servers `shift` is 1, so that no sum lies in a place l, which the second part needs.

Sub streams: n - 2 for the peers in the server but one, which main serves; one that adds, and up to
three that help it. Links of the mesh are SDMA, those between servers of any kind.

Cost for p = S·n ranks and n' bytes: S(α + n'β/p), and ⌈log₂ n⌉ sums of n'/p for the last server, if
adding takes no longer than exchanging; then (S - 1)(α + n'β/p) and ⌈log₂ S⌉ sums.

Source: HCCL's
ReduceScatterPlantLocalReduce and ReduceScatterPlantLocalReduceCombine (hcomm b5f3e5b,
alg_template/temp_reduce_scatter).
"""

from collections.abc import Callable, Sequence
from functools import partial

from hccl_executors.templates.mesh_peers import PeerAssignment, empty_copy, exchange_acks
from hccl_py.orchestration import Chunks, Plane, Region, Stream
from hccl_py.plugins.executor import AnyRank
from hccl_py.values import RankInt

HELPERS = 3
"""Sub streams that help the one that adds."""

MOST = 11
"""Sub streams that HCCL asks for at most."""

Place = Callable[[RankInt, RankInt], Region]
"""Place number i of a server, both counted from 0."""


def streams_needed(n: int, servers: int) -> int:
    """Return the sub streams that HCCL asks for."""
    inside, between = n - 2 + _power(n), _power(servers)
    return min(max(inside, between), MOST)


def _power(n: int) -> int:
    return int(1 << (n.bit_length() - 1))


def collect_inside(
    rank: AnyRank, mesh: Plane, chunks: Sequence[Chunks], place: Place, shift: int
) -> None:
    """Leave in place l + shift of every server g the sum of this server's chunks (g, l); `chunks`
    has those of each server.
    """
    n, adder = int(mesh.size), rank.subs[int(mesh.size) - 2]
    empty_copy(rank, place(0, 0))
    rank.wake(adder)
    for g in rank.main.steps("collect", len(chunks)):
        _exchange(rank, mesh, chunks[g], partial(place, g), shift)
        rank.join(adder)
        empty_copy(rank, place(0, 0))
        rank.wake(adder)
        size = chunks[g][mesh.id].size
        parts = [place(g, (mesh.id + shift + r) % n).head(size) for r in range(n)]
        _add(rank, adder, rank.subs[n - 1 : n - 1 + HELPERS], parts)
    rank.join(adder)
    empty_copy(rank, place(0, 0))


def _exchange(
    rank: AnyRank, mesh: Plane, chunks: Chunks, place: Callable[[RankInt], Region], shift: int
) -> None:
    """Bring chunk r of every rank to rank r, over all links at once; main serves the first peer."""
    n, me = int(mesh.size), int(mesh.id)
    peers = [r for r in range(n) if r != me]
    streams = [rank.main, *rank.subs[: n - 2]]
    sides = [PeerAssignment(s, r, mesh[r]) for s, r in zip(streams, peers, strict=True)]
    rank.main.copy(place((2 * me + shift) % n).head(chunks[me].size), chunks[me])
    with rank.fork(n - 2):
        exchange_acks(sides)
    empty_copy(rank, place(0))
    with rank.fork(n - 2):
        for stream, peer, link in sides:
            there = place((peer + me + shift) % n).head(chunks[peer].size)
            stream.copy(link.remote(there), chunks[peer])
            link.tx_data_signal(stream)
            link.rx_data_signal(stream)


def collect_between(
    rank: AnyRank, ring: Plane, own: RankInt, chunks: Chunks, place: Place, held: RankInt
) -> None:
    """Leave in place `own` of this server the sum of what all servers have in place `held` of it;
    `chunks` says how large what is for each server is.
    """
    servers, me, main = int(ring.size), int(ring.id), rank.main
    empty_copy(rank, place(0, 0))
    with main.phase("collect between"):
        main.copy(place(2 * me % servers, own).head(chunks[me].size), _of(place, me, held, chunks))
        for g in range(servers):
            if g == me:
                continue
            link, what = ring[g], _of(place, g, held, chunks)
            link.tx_ack(main)
            link.rx_ack(main)
            main.copy(link.remote(place((g + me) % servers, own).head(what.size)), what)
            link.tx_data_signal(main)
            link.rx_data_signal(main)
            if link.rdma:
                link.tx_data_ack(main)
                link.rx_data_ack(main)
    empty_copy(rank, place(0, 0))
    size = chunks[me].size
    parts = [place((me + g) % servers, own).head(size) for g in range(servers)]
    _add(rank, main, rank.subs[:HELPERS], parts)


def _of(place: Place, server: int, number: RankInt, chunks: Chunks) -> Region:
    return place(server, number).head(chunks[server].size)


def _add(rank: AnyRank, adder: Stream, helpers: Sequence[Stream], parts: list[Region]) -> None:
    """Leave in the first part the sum of all: the upper half is added to the lower one, again and
    again.
    """
    while len(parts) > 1:
        kept = 1 << ((len(parts) - 1).bit_length() - 1)
        into, added = parts[:kept], parts[kept:]
        awake = helpers[: min(len(added) - 1, HELPERS)]
        with rank.fork(subs=awake, by=adder):
            streams = [adder, *awake]
            for k, part in enumerate(added):
                streams[k % len(streams)].reduce(into[k], part)
        parts = into
