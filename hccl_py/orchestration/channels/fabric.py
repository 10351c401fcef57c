"""From requests to channels: the pairing of ends, and every rank's threads and notifies.

Channels are the transports of the program: layer 0 those of plane level0, layer 1 those of level1,
as in programs that C++ code records.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hccl_py.enums import ChannelBuffer
from hccl_py.errors import NotSupportedError, OrchestrationError
from hccl_py.orchestration.fabric import MAX_ENDS, RankRequest
from hccl_py.orchestration.recorder import orchestration_error
from hccl_py.plugins.resources import ChannelRequest, ChannelResources
from hccl_py.program.program import Declared
from hccl_py.program.transports import LocalNotifies, Transports, turns_of
from hccl_py.topology.planes import PLANES
from hccl_py.topology.topology import Topology
from hccl_py.values import IntArray, values_of

_PLANE_OF_LAYER = np.array([PLANES.index("level0"), PLANES.index("level1")])
_NAMES = tuple(f"notify {index}" for index in range(3))


class ChannelFabric:
    """The channels and threads of all ranks of an op."""

    def __init__(
        self,
        topology: Topology,
        requests: Sequence[RankRequest[ChannelResources]],
        transports: Transports,
        asked: IntArray,
    ) -> None:
        self.topology, self.requests, self.transports = topology, tuple(requests), transports
        self._asked = asked  # the number of every end among those of its rank
        self.thread_notifies = np.zeros(
            (topology.size, max(len(r.request.threads) for r in requests)), np.int64
        )
        for group in requests:
            threads = group.request.threads
            self.thread_notifies[group.ranks, : len(threads)] = threads
        most = self.thread_notifies.max(axis=0).tolist()
        self.local_notifies = LocalNotifies(
            tuple((thread, index) for thread, count in enumerate(most) for index in range(count))
        )

    def request_of(self, rank: int) -> ChannelResources:
        """Return a rank's request."""
        return next(r.request for r in self.requests if rank in r.ranks)

    def ends(self, ranks: IntArray, number: int) -> IntArray:
        """Return the end of every rank's channel by its number in the rank's request."""
        at = np.searchsorted(self._by_number[0], ranks * self._most + number)
        return self._by_number[1][at]

    def ends_to(self, ranks: IntArray, peers: IntArray, layer: int | None, number: int) -> IntArray:
        """Return the end of the `number`-th channel of every rank to its peer, on one layer or on
        both, in the order of the requests; OrchestrationError where there is none.
        """
        n = self.topology.size
        if layer is None:
            keys, order = self._by_peer
            wanted = ranks * n + peers
        else:
            keys, order = self._by_layer
            wanted = (_PLANE_OF_LAYER[layer] * n + ranks) * n + peers
        first = np.searchsorted(keys, wanted)
        found = np.searchsorted(keys, wanted, side="right") - first
        found = np.where((peers < 0) | (peers >= n), 0, found)
        missing = (found <= number) | (number < 0)
        if missing.any():
            lane = int(np.argmax(missing))
            rank, peer, have = int(ranks[lane]), int(peers[lane]), int(found[lane])
            where = "" if layer is None else f" on layer {layer}"
            what = f"{have} channels" if have else "no channel"
            raise orchestration_error(
                f"Rank {rank} has {what} to rank {peer}{where}"
                + (f", so none with number {number}" if have else ""),
                "Ask for it in resources(): ChannelRequest(peer), at both ranks.",
                finding="UNDECLARED_CHANNEL",
            )
        return order[first + number]

    def declared(self) -> Declared:
        """Return the requests of all ranks; a recording states everything."""
        ranks = self.topology.size
        subs = np.zeros(ranks, np.int64)
        for group in self.requests:
            subs[group.ranks] = len(group.request.threads) - 1
        notifies = self.thread_notifies
        return Declared(
            subs,
            notifies.sum(axis=1),
            np.zeros(ranks, np.int64),
            notifies,
            np.ones((ranks, 3), bool),
        )

    def memory(self, user_in: IntArray, user_out: IntArray, ccl_bytes: int) -> IntArray:
        """Return the bytes of every rank's memories, [ranks, memories]."""
        return np.stack([user_in, user_out, np.full(len(user_in), ccl_bytes, np.int64)], axis=1)

    @property
    def buffers(self) -> tuple[str, ...]:
        """The names of a rank's memories."""
        return tuple(buffer.spelling for buffer in ChannelBuffer)

    @cached_property
    def _most(self) -> int:
        return int(self._asked.max(initial=0)) + 1

    @cached_property
    def _by_number(self) -> tuple[IntArray, IntArray]:
        keys = self.transports.rank * self._most + self._asked
        order = np.argsort(keys)
        return keys[order], order

    @cached_property
    def _by_peer(self) -> tuple[IntArray, IntArray]:
        t = self.transports
        order = np.lexsort((self._asked, t.peer, t.rank))
        return (t.rank * self.topology.size + t.peer)[order], order

    @cached_property
    def _by_layer(self) -> tuple[IntArray, IntArray]:
        t, n = self.transports, self.topology.size
        order = np.lexsort((self._asked, t.peer, t.rank, t.plane))
        return ((t.plane * n + t.rank) * n + t.peer)[order], order


def build_channels(
    topology: Topology, requests: Sequence[RankRequest[ChannelResources]]
) -> ChannelFabric:
    """Pair the ends of the requested channels; both ranks must request a channel alike.

    Raises OrchestrationError for a peer that does not exist, a layer that does not lead to it, a
    channel that only one side requests, and ends with different numbers of notifies.
    """
    parts = list(_ends(topology, requests))
    if not parts:
        none = replace(Transports.none(PLANES), notify_names=_NAMES)
        return ChannelFabric(topology, requests, none, np.zeros(0, np.int64))
    rank, peer, plane, *others = map(np.concatenate, zip(*parts, strict=True))
    turn = turns_of(plane, rank, peer)  # a rank's ends are in order
    order = np.lexsort((turn, peer, rank, plane))
    ends = _ChannelEnds(*(column[order] for column in (rank, peer, plane, *others)))
    transports = _joined(topology, ends, turn[order])
    return ChannelFabric(topology, requests, transports, ends.number)


class _ChannelEnds(NamedTuple):
    """Requested ends as columns; `number` counts those of a rank in its request."""

    rank: IntArray
    peer: IntArray
    plane: IntArray
    number: IntArray
    notifies: npt.NDArray[np.int16]
    exports: npt.NDArray[np.int8]


def _ends(
    topology: Topology, requests: Sequence[RankRequest[ChannelResources]]
) -> Iterator[_ChannelEnds]:
    total = 0
    asked = [channel for group in requests for channel in group.request.channels]
    width = max([2, *(1 + len(channel.memory) for channel in asked)])
    for group in requests:
        ranks = group.ranks
        for number, channel in enumerate(group.request.channels):
            total += len(ranks)
            if total > MAX_ENDS:
                raise NotSupportedError(
                    f"The channels of {topology.size} ranks are more than {MAX_ENDS} ends.",
                    "Use fewer ranks, or an algorithm that talks to fewer peers.",
                )
            peers = np.broadcast_to(np.asarray(values_of(channel.peer), np.int64), ranks.shape)
            _check_peers(topology, ranks, peers)
            shown = sorted({*channel.memory, ChannelBuffer.CCL})
            exports = np.full((len(ranks), width), shown[-1], np.int8)
            exports[:, : len(shown)] = shown
            yield _ChannelEnds(
                ranks,
                peers,
                _planes(topology, channel, ranks, peers),
                np.full(len(ranks), number),
                np.full(len(ranks), channel.notifies, np.int16),
                exports,
            )


def _check_peers(topology: Topology, ranks: IntArray, peers: IntArray) -> None:
    wrong = (peers < 0) | (peers >= topology.size) | (peers == ranks)
    if wrong.any():
        rank, peer = int(ranks[np.argmax(wrong)]), int(peers[np.argmax(wrong)])
        reason = "itself" if rank == peer else f"rank {peer}, which does not exist"
        raise OrchestrationError(
            f"Rank {rank} asks for a channel to {reason}.",
            "Copies inside a rank need none."
            if rank == peer
            else f"Peers are ranks 0 to {topology.size - 1}.",
            finding="UNDECLARED_CHANNEL",
            ranks=(rank,),
        )


def _planes(
    topology: Topology, channel: ChannelRequest, ranks: IntArray, peers: IntArray
) -> IntArray:
    """Return the plane of each channel's layer; refuse layer 0 between servers or boards, and layer
    1 where there is one server whose devices no Clos network joins.
    """
    is_far = topology.is_apart(ranks, peers)
    has_far = len(topology.servers) > 1 or topology.product.bus.joins_inside
    if channel.layer == 1 and not has_far:
        raise OrchestrationError(
            f"Rank {ranks[0]} asks for a channel to rank {peers[0]} on layer 1, and all ranks are "
            "on one server.",
            "Layer 1 joins servers, and their ranks, too; a single server has layer 0 only.",
            finding="UNDECLARED_CHANNEL",
            ranks=(int(ranks[0]), int(peers[0])),
        )
    if channel.layer == 0 and is_far.any():
        lane = int(np.argmax(is_far))
        raise OrchestrationError(
            f"Rank {ranks[lane]} asks for a channel to rank {peers[lane]} on layer 0, and they are "
            f"on different {'boards' if topology.product.bus.ubx else 'servers'}.",
            "Layer 0 joins the ranks of a server (UBX: of a board), layer 1 those of all; leave it "
            "out for either.",
            finding="UNDECLARED_CHANNEL",
            ranks=(int(ranks[lane]), int(peers[lane])),
        )
    layers = is_far.astype(np.int64) if channel.layer is None else channel.layer
    return np.broadcast_to(_PLANE_OF_LAYER[layers], ranks.shape)


def _joined(topology: Topology, ends: _ChannelEnds, turn: IntArray) -> Transports:
    """Return the transports of ends in order of plane, rank, peer and turn."""
    n, most = topology.size, int(turn.max()) + 1
    keys = ((ends.plane * n + ends.rank) * n + ends.peer) * most + turn
    back = ((ends.plane * n + ends.peer) * n + ends.rank) * most + turn
    far = np.minimum(np.searchsorted(keys, back), len(keys) - 1)
    _check_met(ends, turn, keys[far] != back, far)
    return Transports(
        PLANES,
        ends.rank,
        ends.peer,
        ends.plane,
        topology.link_kinds(ends.rank, ends.peer),
        far,
        ends.exports,
        ends.notifies,
        notify_names=_NAMES,
    )


def _check_met(
    ends: _ChannelEnds, turn: IntArray, alone: npt.NDArray[np.bool_], far: IntArray
) -> None:
    """Refuse ends without a counterpart, or whose counterpart has another number of notifies."""
    if alone.any():
        at = int(np.argmax(alone))
        rank, peer = int(ends.rank[at]), int(ends.peer[at])
        same = ends.plane == ends.plane[at]
        mine = int((same & (ends.rank == rank) & (ends.peer == peer)).sum())
        theirs = int((same & (ends.rank == peer) & (ends.peer == rank)).sum())
        raise OrchestrationError(
            f"Rank {rank} asks for {mine} channels to rank {peer} on layer {_layer(ends, at)}, and "
            f"rank {peer} for {theirs or 'none'} to rank {rank}.",
            "Both ranks ask for a channel, in the same order where they have several.",
            finding="ONE_SIDED_CHANNEL",
            ranks=(rank, peer),
        )
    differ = ends.notifies != ends.notifies[far]
    if differ.any():
        at = int(np.argmax(differ))
        rank, peer = int(ends.rank[at]), int(ends.peer[at])
        raise OrchestrationError(
            f"Rank {rank} asks for {ends.notifies[at]} notifies on channel {turn[at]} to rank "
            f"{peer} on layer {_layer(ends, at)}, and rank {peer} for {ends.notifies[far[at]]}.",
            "Both ranks ask for as many: the larger number.",
            finding="RESOURCE_MISMATCH",
            ranks=(rank, peer),
        )


def _layer(ends: _ChannelEnds, at: int) -> int:
    return int(np.flatnonzero(ends.plane[at] == _PLANE_OF_LAYER)[0])
