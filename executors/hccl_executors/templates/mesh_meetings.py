"""What HCCL's meshes for single servers share: first everybody meets everybody, stream by stream,
and main waits for all streams; then data goes.

    fork    round k: Acks with the member k ahead, or behind, on sub stream k
    join
    fork    round k: data, and DataSignals, on the same stream
    join

So no data goes before all peers are ready. Sub streams serve p - 1 rounds, or main the last one.
Where main only posts and waits, HCCL puts a copy of no bytes between, which has an effect in its
task graphs only; it is recorded (`nothing`), as a task that costs nothing.
"""

from typing import Any, NamedTuple

from hccl_py.orchestration import Link, Plane, Rank, Region, Stream
from hccl_py.values import RankInt

__all__ = ["Side", "meet", "nothing", "sides"]


class Side(NamedTuple):
    """A member, the stream that serves it, and the link to it."""

    stream: Stream
    peer: RankInt
    link: Link


def sides(
    rank: Rank[Any, Any], plane: Plane, *, ahead: bool = True, by_main: bool = False
) -> list[Side]:
    """Return the members in the order of the rounds: 1, 2, .. ahead in the plane, or behind; by
    main means that it serves the last one.
    """
    p, turn = int(plane.size), 1 if ahead else -1
    streams = [*rank.subs[: p - 1 - by_main], *([rank.main] if by_main and p > 1 else [])]
    peers = [(plane.id + turn * k) % p for k in range(1, p)]
    return [Side(stream, peer, plane[peer]) for stream, peer in zip(streams, peers, strict=True)]


def meet(members: list[Side]) -> None:
    """Exchange Acks with all members, each on its stream."""
    for stream, _, link in members:
        link.tx_ack(stream)
        link.rx_ack(stream)


def nothing(rank: Rank[Any, Any], memory: Region) -> None:
    """Copy no bytes, on main."""
    rank.main.copy(memory.head(0), memory.head(0))
