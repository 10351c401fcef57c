"""RunAlltoAllDirectFullmesh: eight peers at a time over SDMA, one at a time over RDMA."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np

from hccl_executors.all_to_all.between_pods import between_pods
from hccl_executors.all_to_all.layout import UserParts, block_of, layout_of
from hccl_executors.all_to_all.pods import Pods
from hccl_executors.sources import like_april, like_newest, newest
from hccl_py.call.ops import ALL_TO_ALL
from hccl_py.enums import Buffer
from hccl_py.orchestration import Link, Region, Stream
from hccl_py.plugins.executor import (
    AnyRank,
    BaseExecutor,
    OpParam,
    PlaneRequest,
    RankView,
    ResourceRequest,
    Topology,
    ours,
)
from hccl_py.values import PerRank, values_of

AT_ONCE = 8
"""Peers that a rank talks to at the same time over SDMA."""

LARGE = 1 << 20
"""Bytes of a rank's largest part beyond which the next round is staged while one is moved."""


_EXECUTOR = "coll_all_to_all_v_direct_fullmesh_executor"
_OUT_OF_REACH = ours(
    f"HCCL's takes all servers for one superpod ({_EXECUTOR}.cc:131 of August 2026) and reads from "
    "other servers over SDMA, which does not reach them.",
    *newest(_EXECUTOR),
)


class RunAlltoAllDirectFullmesh(BaseExecutor):
    """AlltoAll, AlltoAllV and AlltoAllVC.

    Ranks that SDMA reaches, a superpod or a server, are a pod of p ranks. Rank r meets its peers in
    rounds of k = min(8, p): r - 1, r - 2, .. and r + 1, r + 2, .., as many below as above. The
    parts of a round are copied to slots of CCL_In, then every peer reads its own. Main starts and
    ends each of these: it stages, wakes a stream for every peer of the round to exchange Acks,
    waits for all, and wakes them again to read.

        main          stage │ wake ─┐  ┌─ wait, wake ─┐  ┌─ wait
        k streams           └ Ack, Ack ─┘   read, DataSignals ─┘

    Where a rank's largest part is more than 1 MiB, k streams more stage the parts of the next round
    while those of this one are read, in the other half of CCL_In. Parts that are larger than a slot
    go in pieces: all rounds once for each piece; a rank with nothing left neither waits nor posts.

    With peers in other pods, a rank talks over RDMA meanwhile, one after the other, on two streams
    more (between_pods.py).
    """

    op = ALL_TO_ALL
    algorithm = "level0:mesh"
    fidelity = like_april(
        "coll_all_to_all_v_direct_fullmesh_executor", "temp_alltoallv/alltoallv_direct_fullmesh"
    ).with_cases({"310P3": like_newest(_EXECUTOR).with_cases({"servers": _OUT_OF_REACH})})

    def suits(self, op: OpParam, topology: Topology) -> bool:
        return True

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """Links to everyone, by way of CCL buffers in graph mode, too; there are no rounds of the
        whole call.
        """
        pods = Pods(rank.topology)
        lanes = min(AT_ONCE, int(pods.size(rank.id)))
        return ResourceRequest(
            planes=(PlaneRequest("flat", "mesh", Buffer.CCL_IN, Buffer.CCL_OUT),),
            sub_streams=2 * lanes + (2 if pods.several else 0),
        )

    def orchestrate(self, op: OpParam, rank: AnyRank) -> None:
        """Start what goes over RDMA, record all that goes over SDMA, wait for both."""
        pods, user = Pods(rank.topology), layout_of(op, rank.size)
        own = user.receives.at(rank.id, rank.id), user.sends.at(rank.id, rank.id)
        members = int(pods.size(rank.id))
        with ExitStack() as last:
            if pods.several:
                last.enter_context(between_pods(rank, pods, user, 2 * min(AT_ONCE, members)))
            rounds = _Rounds.of(op, rank, members)
            pieces = _pieces(rank, pods, user, rounds) if members > 1 else 0
            if pods.several or not pieces:
                rank.main.copy(*own)
            for number in range(pieces):
                with rank.main.phase(f"piece {number + 1}/{pieces}"):
                    piece = _PieceExchange(rank, pods, rounds, user, number)
                    piece.record(None if pods.several or number else own)


class _Peer(NamedTuple):
    """A peer of a round: how many places it is further in the pod, the slot of CCL_In here that
    holds the part for it, and the one there that holds the part from it.
    """

    distance: int
    staged: int
    source: int


class _Rounds(NamedTuple):
    """The rounds of a pod of so many ranks, `lanes` peers each, slots of `block` bytes; in `halves`
    1 or 2 of CCL_In, which is `memory`. Where data `is_large`, other streams stage the next round.
    """

    memory: Region
    members: int
    lanes: int
    halves: int
    block: int
    is_large: bool

    @staticmethod
    def of(op: OpParam, rank: AnyRank, members: int) -> _Rounds:
        most = layout_of(op, rank.size).sends.sizes[values_of(rank.id)].max(axis=-1) > LARGE
        is_large = bool(PerRank.of(np.asarray(most, np.int64)))
        lanes, halves = min(AT_ONCE, members), 2 if is_large or op.name != "all_to_all" else 1
        block = block_of(rank.ccl_bytes, lanes * halves, op.unit)
        return _Rounds(rank.ccl_in, members, lanes, halves, block, is_large)

    def __len__(self) -> int:
        return -(-self.members // self.lanes)

    def peers(self, number: int) -> list[_Peer]:
        """Return the peers of a round: those below, those above, and one that is both."""
        left, half = self.members - 1 - number * self.lanes, self.lanes // 2
        group = max(min(left, self.lanes), 0)
        each = half if group == self.lanes else -(-group // 2)
        shift = self.lanes if self.halves == 2 and number % 2 else 0
        below, above, middle = [], [], []
        for k in range(1, each + 1):
            distance, near, far = number * half + k, half - k + shift, half - 1 + k + shift
            if 2 * distance == self.members:
                middle.append(_Peer(distance, shift, shift))
            else:
                below.append(_Peer(-distance, far, near))
                above.append(_Peer(distance, near, far))
        return below + above + middle

    def slot(self, number: int) -> Region:
        """Return a slot of CCL_In."""
        return self.memory[number * self.block : (number + 1) * self.block]


def _pieces(rank: AnyRank, pods: Pods, user: UserParts, rounds: _Rounds) -> int:
    """Return the number of pieces of the largest part that a rank sends or receives."""
    most: Any = 0
    for distance in range(1, rounds.members):
        peer = pods.near(rank.id, distance)
        for table in user:
            most = np.maximum(most, values_of(table.rounds(rank.id, peer, rounds.block)))
    return int(PerRank.of(most))


class _PieceExchange:
    """All rounds for one piece of every part."""

    def __init__(
        self, rank: AnyRank, pods: Pods, rounds: _Rounds, user: UserParts, number: int
    ) -> None:
        self._rank, self._pods, self._rounds = rank, pods, rounds
        start, most = number * rounds.block, rounds.block
        self._sends, self._receives = (table.piece(start, most) for table in user)

    def record(self, own: tuple[Region, Region] | None) -> None:
        """Record the rounds; in the first, main copies the rank's own part, unless that was done
        before.
        """
        rounds, main = self._rounds, self._rank.main
        for number in range(len(rounds)):
            peers = rounds.peers(number)
            if not peers:
                break
            if rounds.is_large and number == 0:
                stagers = self._wake(peers, rounds.lanes)
                self._stage(peers, stagers)
                self._join(stagers)
            elif not rounds.is_large:
                self._stage(peers, [main] * len(peers))
            self._exchange(peers, number, None if number else own)

    def _exchange(self, peers: list[_Peer], number: int, own: tuple[Region, Region] | None) -> None:
        """Meet the peers of a round, then read; large data for the next round is staged
        meanwhile.
        """
        rounds = self._rounds
        sides = [self._look_up(peer) for peer in peers]
        readers = self._wake(peers)
        for stream, side in zip(readers, sides, strict=True):
            side.meet(stream)
        self._join(readers)
        readers, stagers = self._wake(peers), []
        if rounds.is_large and number < len(rounds) - 1:
            stagers = self._wake(peers, rounds.lanes)
            self._stage(rounds.peers(number + 1), stagers)
        for stream, peer, side in zip(readers, peers, sides, strict=True):
            side.read(stream, rounds.slot(peer.source))
        if own is not None:
            self._rank.main.copy(*own)
        self._join(readers)
        self._join(stagers)

    def _stage(self, peers: list[_Peer], streams: list[Stream]) -> None:
        for stream, peer in zip(streams, peers, strict=False):
            part = self._look_up(peer).sent
            stream.copy(self._rounds.slot(peer.staged).head(part.size), part)

    def _look_up(self, peer: _Peer) -> _PeerTransfer:
        rank = self._rank
        other = self._pods.near(rank.id, peer.distance)
        sent, received = self._sends.at(rank.id, other), self._receives.at(rank.id, other)
        return _PeerTransfer(rank.flat[other], sent, received)

    def _wake(self, peers: list[_Peer], first: int = 0) -> list[Stream]:
        return [self._rank.wake(first + k) for k in range(len(peers))]

    def _join(self, streams: list[Stream]) -> None:
        for stream in streams:
            self._rank.join(stream)


class _PeerTransfer(NamedTuple):
    """The data that a rank sends to one peer and receives from it in this piece; an empty side
    posts no signals.
    """

    link: Link
    sent: Region
    received: Region

    def meet(self, stream: Stream) -> None:
        """Exchange Acks: mine is staged, yours is."""
        if self.sent.size > 0:
            self.link.tx_ack(stream)
        if self.received.size > 0:
            self.link.rx_ack(stream)

    def read(self, stream: Stream, source: Region) -> None:
        """Read what the peer has staged, and let it read."""
        if self.received.size > 0:
            stream.copy(self.received, self.link.remote(source.head(self.received.size)))
            self.link.tx_data_signal(stream)
        if self.sent.size > 0:
            self.link.rx_data_signal(stream)
