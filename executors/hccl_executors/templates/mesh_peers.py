"""Peers in a mesh inside one server: the streams that serve them, and the Acks before data.

    fork    round k: Acks with the member k ahead, or behind, on sub stream k
    join
    fork    round k: data, and DataSignals, on the same stream
    join

So no data goes before all peers are ready. Sub streams serve p - 1 rounds, or main the last one.
Where main only posts and waits, HCCL puts a copy of no bytes between, which has an effect in its
task graphs only; it is recorded (`empty_copy`), as a task that takes no time.
"""

from typing import NamedTuple

from hccl_py.orchestration import Link, Plane, Region, Stream
from hccl_py.plugins.executor import AnyRank
from hccl_py.values import RankInt


class PeerAssignment(NamedTuple):
    """A peer, the stream that serves it, and the link to it."""

    stream: Stream
    peer: RankInt
    link: Link


def peer_assignments(
    rank: AnyRank, plane: Plane, *, ahead: bool = True, by_main: bool = False
) -> list[PeerAssignment]:
    """Return all peers in the order of the rounds: 1, 2, .. ahead in the plane, or behind. With
    `by_main`, main serves the last one, otherwise every peer has a sub stream.
    """
    p, turn = int(plane.size), 1 if ahead else -1
    streams = [*rank.subs[: p - 1 - by_main], *([rank.main] if by_main and p > 1 else [])]
    peers = [(plane.id + turn * k) % p for k in range(1, p)]
    return [
        PeerAssignment(stream, peer, plane[peer])
        for stream, peer in zip(streams, peers, strict=True)
    ]


def exchange_acks(members: list[PeerAssignment]) -> None:
    """Exchange Acks with all peers, each on its stream."""
    for stream, _, link in members:
        link.tx_ack(stream)
        link.rx_ack(stream)


def empty_copy(rank: AnyRank, memory: Region) -> None:
    """Copy no bytes on main, as HCCL does."""
    rank.main.copy(memory.head(0), memory.head(0))
