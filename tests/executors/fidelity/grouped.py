"""HCCL's messages between HcclGroupStart and HcclGroupEnd, written from its source, as one rank
runs them.

Files are those of libochao-huawei/hcomm @ 8958adb under src/legacy/ascend910/algorithm, in
impl/coll_executor/coll_send_receive; lines are those of coll_batch_send_recv_group_executor.cc.
"""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from tests.executors.fidelity.messages import Message
from tests.executors.fidelity.transports import Event, Link

STREAMS = 8
"""GROUP_MAX_CONCURRENT, base/inc/comm_base_pub.h:38."""

ALIGN = 16384


class Slice(NamedTuple):
    """SendRecvSlice: where it is in user memory, its bytes, and the other rank."""

    addr: int
    size: int
    remote: int


class _Rank:
    """A rank of pods of `pods` ranks each, with its queues."""

    def __init__(
        self, rank: int, messages: Sequence[Message], ccl: int, pods: Sequence[int]
    ) -> None:
        self.rank, self.size, self.pods = rank, sum(pods), pods
        first = 0
        for ranks in pods:
            if first <= rank < first + ranks:
                self.start, self.in_pod = first, ranks
            first += ranks
        self.half_size = ccl // ALIGN // (2 * STREAMS) * ALIGN
        self.rdma_size = ccl // ALIGN // 2 * ALIGN
        self.events: list[list[Event]] = [[] for _ in range(2 * STREAMS + 3)]
        sends = self._items(messages, sends=True)
        receives = self._items(messages, sends=False)
        self.send_lanes, self.rdma_sends = self._slices(sends, sends=True)
        self.recv_lanes, self.rdma_recvs = self._slices(receives, sends=False)

    def _items(self, messages: Sequence[Message], *, sends: bool) -> list[Slice]:
        """GetPairWiseList of coll_batch_send_recv_executor.cc:71; parts lie in the list's order."""
        found, offset = [], 0
        for message in messages:
            mine, other = (message.src, message.dst) if sends else (message.dst, message.src)
            if mine == self.rank:
                if other != mine:
                    found.append(Slice(offset, message.size, other))
                offset += message.size

        def flag(item: Slice) -> int:
            at = item.remote
            if sends:
                return -(at + self.size if at <= self.rank else at)
            return at + self.size if at < self.rank else at

        return sorted(found, key=flag)

    def _slices(
        self, items: Sequence[Slice], *, sends: bool
    ) -> tuple[list[deque[Slice]], deque[Slice]]:
        """:52 OrganizeSendItemByStream, :575 CalcSendSlices."""
        by_stream: list[list[Slice]] = [[] for _ in range(STREAMS)]
        for item in items:
            by_stream[item.remote % STREAMS].append(item)
        lanes: list[deque[Slice]] = [deque() for _ in range(STREAMS)]
        by_rank: dict[int, list[Slice]] = {}
        for i in range(STREAMS):
            for addr, count, remote in by_stream[i]:
                rdma = not self.start <= remote < self.start + self.in_pod
                most = self.rdma_size if rdma else self.half_size
                for low in range(0, count, most):
                    one = Slice(addr + low, min(most, count - low), remote)
                    if rdma:
                        by_rank.setdefault(remote, []).append(one)
                    else:
                        lanes[i].append(one)
        return lanes, deque(self._ordered(by_rank, sends=sends))

    def _ordered(self, by_rank: dict[int, list[Slice]], *, sends: bool) -> list[Slice]:
        """:692 OrderRdmaSlices, :667 GetNextDstRank, :680 GetPreSrcRank."""
        found: list[Slice] = []
        others, end = self.size - self.in_pod, self.start + self.in_pod - 1
        same = len(set(self.pods)) == 1
        if same:
            at = (self.rank + (self.in_pod if sends else self.size - self.in_pod)) % self.size
        else:
            at = next((r for r in range(self.size) if not self.start <= r <= end), 0)
        for _ in range(others):
            if sends or not same:
                at %= self.size
                if at == self.start:
                    at += self.in_pod
                at %= self.size
                rank, at = at, at + 1
            else:
                if at == end:
                    at = (at + self.size - self.in_pod) % self.size
                rank, at = at, self.size - 1 if at == 0 else at - 1
            found += by_rank.get(rank, [])
        return found

    def link(self, sub: int, one: Slice, *, rdma: bool = False) -> Link:
        return Link(self.events[sub + 1], one.remote, rdma=rdma)

    def send(self, lane: int) -> None:
        """:281 ProcessPreloadedSendSlice, :339 ProcessNewRankSendSlice."""
        slices, loaded = self.send_lanes[lane], 0
        current = Slice(0, 0, 0)
        while slices or loaded:
            if not loaded:
                current = slices.popleft()
            link = self.link(lane, current)
            link.tx_ack()
            loaded = 0
            if slices and slices[0].remote == current.remote:
                current = slices.popleft()
                loaded = current.size
            link.rx_data_signal()

    def receive(self, lane: int) -> None:
        """:388 ProcessRecvSlice."""
        phase, current = 0, 0
        for one in self.recv_lanes[lane]:
            if one.remote != current:
                phase, current = 0, one.remote
            link = self.link(STREAMS + lane, one)
            link.rx_ack()
            source = self.half_size * (phase + self.rank % STREAMS * 2)
            link.move("read", source, one.addr, one.size)
            link.tx_data_signal()
            phase = 1 - phase

    def over_rdma(self) -> None:
        """:471 ProcessRdmaSendSlice, :498 ProcessRdmaRecvSlice."""
        for one in self.rdma_sends:
            link = self.link(2 * STREAMS, one, rdma=True)
            link.rx_ack()
            link.move("rdma_write", 0, self.rdma_size, one.size)
            link.tx_data_signal()
            link.wait_fin_ack()
        for one in self.rdma_recvs:
            link = self.link(2 * STREAMS + 1, one, rdma=True)
            link.tx_ack()
            link.rx_data_signal()
            link.post_fin_ack()


def grouped(
    rank: int, messages: Sequence[Message], ccl: int, pods: Sequence[int]
) -> list[list[Event]]:
    """:130 Orchestrate, :417 RunTasks, with :199 MainPostSubWait and :241 MainWaitSubPost."""
    me = _Rank(rank, messages, ccl, pods)
    queues = [*me.send_lanes, *me.recv_lanes, me.rdma_sends, me.rdma_recvs]
    has_task = [sub for sub, queue in enumerate(queues) if queue]
    for sub in has_task:
        me.events[0].append(("post", sub + 1, 0))
        me.events[sub + 1].append(("wait", sub + 1, 0))
    for lane in range(STREAMS):
        me.send(lane)
        me.receive(lane)
    me.over_rdma()
    for sub in has_task:
        me.events[sub + 1].append(("post", 0, sub))
        me.events[0].append(("wait", 0, sub))
    return me.events
