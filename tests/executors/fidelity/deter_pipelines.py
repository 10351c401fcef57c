"""HCCL's deterministic pipelines of Atlas A2, written from their sources, as one rank runs them.

Files are those of libochao-huawei/hcomm @ 8958adb under src/legacy/ascend910/algorithm: BASE is
base/alg_template/alg_template_multi_deter_pipeline.cc, SCATTER
temp_reduce_scatter/reduce_scatter_multi_deter_pipeline.cc and REDUCE
temp_all_reduce/all_reduce_multi_deter_pipeline.cc beside it. Servers are joined by RDMA. Main is
stream 0; sub stream k of the sources is stream k + 1.
"""

from collections.abc import Sequence
from typing import NamedTuple

from tests.executors.fidelity.transports import Event, Link, handshake

ALIGN = 16384


class Slots(NamedTuple):
    """Where chunks lie: bytes of each, where they begin in user memory, and the places."""

    sizes: Sequence[int]
    starts: Sequence[int]
    stride: int
    shifts: bool

    def place(self, number: int, owner: int) -> int:
        """SCATTER:18 and REDUCE:18 GetRemoteCclbufferDeviceMem."""
        start = number * self.stride
        return start + (self.starts[owner] - start) % ALIGN if self.shifts else start


def scatter_slots(size: int, ranks: int) -> Slots:
    """SCATTER:398 eachRankCclbufferSize_: 16 KiB behind every chunk."""
    return Slots([size] * ranks, [size * k for k in range(ranks)], size + ALIGN, shifts=True)


def reduce_slots(size: int, ranks: int) -> Slots:
    """coll_all_reduce_deter_pipeline_executor.cc:77 CalcCountPerSlice, :136 PrepareDataSlice."""
    each = -(-(size // 4) // ranks) * 4
    stride = -(-each // ALIGN) * ALIGN
    if stride * (ranks - 1) >= size:
        stride = -(-each // 128) * 128
    sizes = [max(min(stride, size - stride * k), 0) for k in range(ranks)]
    return Slots(sizes, [stride * k for k in range(ranks)], stride, shifts=False)


class Seat:
    """Rank `me` of server `server` with the streams of coll_*_deter_pipeline_executor.cc
    CalcStreamNum: devices - 1, and four that add.
    """

    def __init__(self, rank: int, servers: int, n: int, slots: Slots) -> None:
        self.server, self.me = divmod(rank, n)
        self.servers, self.n, self.slots, self.rank = servers, n, slots, rank
        self.streams: list[list[Event]] = [[] for _ in range(n + 4)]
        self.adder = n - 1

    def near(self, stream: int, peer: int) -> Link:
        """The link to a rank of the server."""
        return Link(self.streams[stream], self.server * self.n + peer % self.n, rdma=False)

    def far(self, server: int) -> Link:
        """Main's link to the same rank of a server."""
        return Link(self.streams[0], server % self.servers * self.n + self.me, rdma=True)

    def wake(self, subs: Sequence[int], by: int = 0) -> None:
        """MainRecordSub and SubWaitMain."""
        for sub in subs:
            self.streams[by].append(("post", sub + 1, 0))
            self.streams[sub + 1].append(("wait", sub + 1, 0))

    def join(self, subs: Sequence[int], to: int = 0) -> None:
        """SubRecordMain and MainWaitSub."""
        for sub in subs:
            self.streams[sub + 1].append(("post", 0, sub))
            self.streams[to].append(("wait", 0, sub))

    @property
    def peers(self) -> range:
        """The sub streams of the all-to-all."""
        return range(self.n - 1)


def _meet(me: Seat) -> None:
    """SCATTER:100 RunIntraAlltoallPreSync."""
    for i in me.peers:
        link = me.near(i + 1, me.me + i + 1)
        link.tx_ack()
        link.rx_ack()
    me.join(me.peers)
    me.wake(me.peers)


def _exchange(me: Seat, step: int) -> None:
    """BASE:121 RunIntraAlltoall; :461 InitAlltoallRecvBlockIdxMap."""
    recv, send = (me.server - step) % me.servers, (me.server + step) % me.servers
    for i in me.peers:
        peer = (me.me + i + 1) % me.n
        link, owner = me.near(i + 1, peer), send * me.n + peer
        number = recv * me.n + (me.me if me.me < peer else me.me - 1)
        if me.slots.sizes[owner]:
            to = me.slots.place(number, owner)
            link.move("write", me.slots.starts[owner], to, me.slots.sizes[owner])
        link.tx_data_signal()
        link.rx_data_signal()


def _add(me: Seat) -> None:
    """BASE:295 LocalReduce and :159 GroupTasksByStream: four pairs at a time; sums are local."""
    left = me.n
    while left > 1:
        pairs = left // 2
        for first in range(0, pairs, 4):
            helpers = [me.adder + k for k in range(1, min(pairs - first, 4))]
            me.wake(helpers, by=me.adder + 1)
            me.join(helpers, to=me.adder + 1)
        left -= pairs


def _send(me: Seat, step: int) -> None:
    """SCATTER:223 RunInterSend, REDUCE:262, over RDMA."""
    recv, send = (me.server - step) % me.servers, (me.server + step) % me.servers
    to, frm, owner = me.far(send), me.far(recv), send * me.n + me.me
    frm.tx_ack()
    to.rx_ack()
    if me.slots.sizes[owner]:
        source = me.slots.place(recv * me.n + me.n - 2, owner)
        target = me.server * me.n * me.slots.stride
        to.move("rdma_write", source, target, me.slots.sizes[owner])
    to.tx_data_signal()
    frm.rx_data_signal()
    frm.post_fin_ack()
    to.wait_fin_ack()


def serial(me: Seat, *, mended: bool) -> None:
    """BASE:384 RunAsyncLocalReduceSerial. It exchanges without Acks in the last step; `mended`
    adds them.
    """
    for step in range(1, me.servers + 1):
        me.wake(me.peers)
        if step < me.servers or mended:
            _meet(me)
        if step > 1:
            _send(me, step - 1)
        _exchange(me, step % me.servers)
        me.join(me.peers)
        me.wake([me.adder])
        _add(me)
        me.join([me.adder])


def overlapping(me: Seat) -> None:
    """BASE:433 RunAsyncReduceScatterPipeline and :370 AlltoallLocalReduceSync."""
    last = me.servers + 1
    for step in range(1, last + 1):
        if step < last:
            me.wake(me.peers)
        if step > 1:
            me.wake([me.adder])
        if step < last:
            _meet(me)
        if step > 2:
            _send(me, step - 2)
        if step > 1:
            _add(me)
        if step < last:
            _exchange(me, step % me.servers)
            me.join(me.peers)
        if step > 1:
            me.join([me.adder])


def all_gather(me: Seat) -> None:
    """REDUCE:506 RunAsyncAllgatherPipeline, :437 between servers, :477 in the server."""
    prev, following = me.far(me.server + 1), me.far(me.server - 1)
    everyone = range(me.n + 3)
    for step in range(me.servers):
        me.wake(everyone)
        if step < me.servers - 1:
            prev.tx_ack()
            following.rx_ack()
            slot = (me.server + step) % me.servers * me.n + me.me
            if me.slots.sizes[slot]:
                following.move(
                    "rdma_write", me.slots.starts[slot], me.slots.starts[slot], me.slots.sizes[slot]
                )
            following.tx_data_signal()
            prev.rx_data_signal()
            prev.post_fin_ack()
            following.wait_fin_ack()
            if step == me.servers - 2:
                handshake(prev, following)
        for i in range(1, me.n):
            peer = (me.me + i) % me.n
            link, slot = me.near(i, peer), (me.server + step) % me.servers * me.n + peer
            link.tx_ack()
            link.rx_ack()
            if me.slots.sizes[slot]:
                start = me.slots.starts[slot]
                link.move("read", start, start, me.slots.sizes[slot])
            link.tx_data_signal()
            link.rx_data_signal()
        me.join(everyone)
