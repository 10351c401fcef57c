"""RunAlltoAllDirectFullmesh: eight peers at a time over SDMA, one at a time over RDMA."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from typing import Any, NamedTuple

import numpy as np

from hccl_executors.all_to_all.layout import aligned
from hccl_py.enums import Buffer
from hccl_py.executor import (
    Mode,
    OpParam,
    PlaneRequest,
    Rank,
    RankView,
    ResourceRequest,
    Topology,
    Unsuitable,
    require,
)
from hccl_py.ops import ALL_TO_ALL
from hccl_py.orchestration import Chunks, Notify, Region, Stream, exchange
from hccl_py.values import IntArray, PerRank, RankInt, values_of

__all__ = ["RunAlltoAllDirectFullmesh"]

AT_ONCE = 8
"""Peers that a rank talks to at the same time over SDMA."""


class RunAlltoAllDirectFullmesh:
    """AlltoAll, AlltoAllV and AlltoAllVC in op-base mode.

    Ranks that SDMA reaches, a superpod or a server, are a pod. A pod of p ranks has min(8, p) pairs
    of streams: on the first half rank r talks to r + 4R + 1 .. r + 4R + 4 in round R, on the second
    to r - 4R - 1 .. r - 4R - 4. With peers in other pods it talks pairwise, over RDMA, on a pair of
    its own. A pair is two streams: one copies the next part to a CCL buffer while the other moves
    the part before it. Each pair has two slots of CCL_In; RDMA sends from CCL_Out and lands there.

    Sub streams: 2·min(8, p), and 2 where there are other pods. Where p is at most 8, the pair
    without a peer copies the own part, else main does.
    """

    op = ALL_TO_ALL
    algorithm = "level0:mesh"

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs CCL buffers."""
        return require((op.mode is Mode.OP_BASE, "works through CCL buffers: op-base mode only"))

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """Links to everyone; a round fills the two slots of every pair."""
        pods = _Pods.of(rank.topology)
        pairs = min(AT_ONCE, int(pods.size(rank.id)))
        return ResourceRequest(
            planes=(PlaneRequest("flat", "mesh"),),
            sub_streams=2 * pairs + (2 if pods.several else 0),
            max_count=_slot(rank) // op.unit,
        )

    def orchestrate(self, op: OpParam, rank: Rank[Chunks, Chunks]) -> None:
        """Record all pairs, then join them."""
        pods = _Pods.of(rank.topology)
        size = int(pods.size(rank.id))
        pairs = min(AT_ONCE, size)
        own = rank.user_out[rank.id], rank.user_in[rank.id]
        with _started(rank):
            if size > AT_ONCE:
                rank.main.copy(*own)
            for pair in range(pairs):
                if pair == size - 1:
                    _halve(rank, 2 * pair, *own)
                else:
                    _record_pair(rank, 2 * pair, list(_steps(rank, pods, pair, pairs)))
            if pods.several:
                _record_pair(rank, 2 * pairs, list(_steps_between(rank, pods)))


class _PeerStep(NamedTuple):
    """What a pair does with one peer, or two: `staged` is where it puts the part for `to`, `source`
    where `frm` has put this rank's.
    """

    to: RankInt | None
    frm: RankInt | None
    staged: Region
    source: Region


class _Pods(NamedTuple):
    """Groups of ranks that SDMA reaches: of each rank the pod and the place in it, of each pod its
    ranks.
    """

    number: IntArray
    place: IntArray
    members: tuple[IntArray, ...]

    @staticmethod
    def of(topology: Topology) -> _Pods:
        number = topology.sdma_groups
        members = tuple(np.flatnonzero(number == k) for k in range(int(number.max()) + 1))
        place = np.zeros(topology.size, np.int64)
        for ranks in members:
            place[ranks] = np.arange(len(ranks))
        return _Pods(number, place, members)

    @property
    def several(self) -> bool:
        """Whether there are ranks that only RDMA reaches."""
        return len(self.members) > 1

    @property
    def even(self) -> bool:
        """Whether all pods have as many ranks."""
        return len({len(ranks) for ranks in self.members}) == 1

    def size(self, rank: RankInt) -> RankInt:
        """Return the ranks of a rank's pod."""
        sizes = np.array([len(ranks) for ranks in self.members], np.int64)
        return PerRank.of(sizes[self.number[values_of(rank)]])

    def peer(self, rank: RankInt, pods: int, places: int) -> RankInt:
        """Return the rank that is so many pods and so many places further."""
        size, at = int(self.size(rank)), values_of(rank)
        table = np.concatenate(self.members)
        if not pods and not self.several:
            found: RankInt = (rank + places) % size
            return found
        first = np.cumsum([0, *map(len, self.members)])
        pod = (self.number[at] + pods) % len(self.members)
        return PerRank.of(table[first[pod] + (self.place[at] + places) % size])


def _steps(rank: Rank[Any, Any], pods: _Pods, pair: int, pairs: int) -> Iterator[_PeerStep]:
    """Yield what one pair does in the pod, one peer a round."""
    size = int(pods.size(rank.id))
    half = min(AT_ONCE // 2, size // 2)
    for number in range(size):
        distance = number * AT_ONCE // 2 + 1 + pair % half
        if pair >= 2 * half or distance > size // 2 or (pair >= half and 2 * distance == size):
            return
        opposite = pair if 2 * distance == size else (pair + half) % (2 * half)
        peer = pods.peer(rank.id, 0, distance if pair < half else -distance)
        slots = [_place(rank, Buffer.CCL_IN, 2 * at + number % 2) for at in (pair, opposite)]
        yield _PeerStep(peer, peer, slots[0], slots[1])


def _steps_between(rank: Rank[Any, Any], pods: _Pods) -> Iterator[_PeerStep]:
    """Yield what the pair between pods does: pairwise, pod by pod; where pods differ in size, in
    the order of ranks, without those of this pod.
    """
    size = int(pods.size(rank.id))
    for number, (to, frm) in enumerate(_even(rank, pods, size) if pods.even else _any(rank, pods)):
        staged = _place(rank, Buffer.CCL_OUT, number % 2)
        yield _PeerStep(to, frm, staged, staged)


def _even(rank: Rank[Any, Any], pods: _Pods, size: int) -> Iterator[tuple[RankInt, RankInt]]:
    for ahead in range(1, len(pods.members)):
        for k in range(size):
            yield pods.peer(rank.id, ahead, k), pods.peer(rank.id, -ahead, -k)


def _any(rank: Rank[Any, Any], pods: _Pods) -> Iterator[tuple[RankInt | None, RankInt | None]]:
    at = values_of(rank.id)
    for k in range(1, rank.size):
        to, frm = (rank.id + k) % rank.size, (rank.id - k) % rank.size
        away = [
            bool(PerRank.of((pods.number[values_of(peer)] != pods.number[at]).astype(np.int64)))
            for peer in (to, frm)
        ]
        if any(away):
            yield to if away[0] else None, frm if away[1] else None


@contextmanager
def _started(rank: Rank[Any, Any]) -> Iterator[None]:
    """Wake the first stream of each pair, which wakes the second; wait for the first at the end."""
    subs, declared = rank.subs, len(rank.subs)
    for i in range(0, declared, 2):
        rank.main.post(rank.notifies[declared + i])
        subs[i].wait(rank.notifies[declared + i])
    yield
    for i in range(0, declared, 2):
        subs[i].post(rank.notifies[i])
        rank.main.wait(rank.notifies[i])


class _StreamPair(NamedTuple):
    """Two streams and the two notifies between them: the second may `go`, it is `done`."""

    copier: Stream
    mover: Stream
    go: Notify
    done: Notify

    @staticmethod
    def of(rank: Rank[Any, Any], first: int) -> _StreamPair:
        subs, notifies = rank.subs, rank.notifies
        go, done = notifies[len(subs) + first + 1], notifies[first + 1]
        return _StreamPair(subs[first], subs[first + 1], go, done)


def _record_pair(rank: Rank[Chunks, Chunks], first: int, steps: Sequence[_PeerStep]) -> None:
    """Copy the part of each step while the one before it is moved."""
    pair = _StreamPair.of(rank, first)
    _stage(rank, pair.copier, steps[0])
    for step, following in zip_longest(steps, steps[1:]):
        pair.copier.post(pair.go)
        pair.mover.wait(pair.go)
        _move(rank, pair.mover, step)
        pair.mover.post(pair.done)
        if following is not None:
            _stage(rank, pair.copier, following)
        pair.copier.wait(pair.done)


def _stage(rank: Rank[Chunks, Chunks], stream: Stream, step: _PeerStep) -> None:
    if step.to is not None:
        part = rank.user_in[step.to]
        stream.copy(step.staged.head(part.size), part)


def _move(rank: Rank[Chunks, Chunks], stream: Stream, step: _PeerStep) -> None:
    to = frm = None
    send: list[Region] = []
    recv: list[Region] = []
    if step.to is not None:
        to = rank.flat[step.to]
        send = [step.staged.head(rank.user_in[step.to].size)]
    if step.frm is not None:
        frm, recv = rank.flat[step.frm], [rank.user_out[step.frm]]
    land = _place(rank, Buffer.CCL_OUT, 2)
    exchange(stream, to, frm, send, recv, source=step.source, land=land)


def _halve(rank: Rank[Any, Any], first: int, dst: Region, src: Region) -> None:
    """Copy with both streams of a pair."""
    pair = _StreamPair.of(rank, first)
    halves = list(zip(dst.split(2), src.split(2), strict=True))
    pair.copier.post(pair.go)
    pair.mover.wait(pair.go)
    pair.copier.copy(*halves[0])
    pair.mover.copy(*halves[1])
    pair.mover.post(pair.done)
    pair.copier.wait(pair.done)


def _place(rank: Rank[Any, Any], buffer: Buffer, number: int) -> Region:
    """Return a slot of a CCL buffer."""
    return Region(buffer, number * _slot(rank), _slot(rank))


def _slot(rank: RankView | Rank[Any, Any]) -> int:
    """Return the bytes of a part in one round."""
    return aligned(rank.ccl_bytes // (2 * AT_ONCE))
