"""Rings of Atlas A3 from and to user memory, written from HCCL's sources, as one rank runs them.

Files are those of xiaobingling93-pixel/cann-hcomm @ b5f3e5b under src/algorithm/base/alg_template.
`places` are the slices of a ring in exported memory, by its positions, each in one or several
ranges; `ends` are the offsets in user memory, or None.
"""

from collections.abc import Sequence

from tests.executors.fidelity.streams import Way, Worker
from tests.executors.fidelity.transports import Link, Slice, handshake

Places = Sequence[Sequence[Slice]]


def _take(link: Link, kind: str, part: Slice, to: int | None) -> None:
    """A transfer from the peer's slice to the same place, or to another one."""
    if part.size:
        link.move(kind, part.offset, part.offset if to is None else to, part.size)


def _pre_sync(way: Way) -> None:
    """PreSync of the ring's stream with its helper: both go on together."""
    me, k = way.me, way.k
    me.signal_main(k + 1, k)
    me.await_sub(k + 1, k)
    me.await_main(way.lead, k)
    me.signal_sub(way.lead, k)


def all_gather_concurrent_direct(way: Way, places: Places, ends: Places | None = None) -> None:
    """temp_all_gather/all_gather_ring_concurrent_direct.cc:202 RunAllGather, :60 the barrier."""
    me, p = way.me, way.size
    if p == 1:
        return
    left, right = way.left(), way.right()
    me.start([way.k], by=way.lead)
    for step in range(p - 1):
        slot = (way.at - 1 - step) % p
        left.tx_ack()
        right.rx_ack()
        right.tx_data_signal()
        left.rx_data_signal()
        for i, part in enumerate(places[slot]):
            _pre_sync(way)
            last = ends is not None and step == p - 2
            _take(left, "read", part, ends[slot][i].offset if last and ends else None)
    me.finish([way.k], to=way.lead)
    handshake(left, right)


def all_gather_direct(way: Way, places: Places, ends: Places) -> None:
    """temp_all_gather/all_gather_ring_direct.cc:293 RunAllGather, :53 the barrier."""
    p = way.size
    if p == 1:
        return
    left, right = way.left(), way.right()
    for step in range(p - 1):
        slot = (way.at - 1 - step) % p
        left.tx_ack()
        right.rx_ack()
        right.tx_data_signal()
        left.rx_data_signal()
        to = ends[slot][0].offset if step == p - 2 else None
        _take(left, "read", places[slot][0], to)
    handshake(left, right)


def reduce_scatter_concurrent_direct(way: Way, places: Places, out: int | None = None) -> None:
    """temp_reduce_scatter/reduce_scatter_ring_concurrent_direct.cc:435 RunReduceScatter, :197 the
    first copies, :68 the barrier; `out` is lastStepOffset_ in user memory.
    """
    me, p = way.me, way.size
    if p == 1:
        return
    left, right = way.left(), way.right()
    for _ in places[0]:
        me.start([way.k], by=way.lead)
        me.finish([way.k], to=way.lead)
    me.start([way.k], by=way.lead)
    for step in range(p - 1):
        left.tx_ack()
        right.rx_ack()
        right.tx_data_signal()
        left.rx_data_signal()
        for part in places[(way.at - 2 - step) % p]:
            _pre_sync(way)
            _take(left, "read_reduce", part, out if step == p - 2 else None)
    me.finish([way.k], to=way.lead)
    handshake(left, right)


def scatter_concurrent_direct(way: Way, places: Places, root: int) -> None:
    """temp_scatter/scatter_ring_concurrent_direct.cc:263 RunScatter, :168 the first copy, :192 what
    the ring does, :58 the barrier.
    """
    me, p = way.me, way.size
    if p == 1:
        return
    left, right = way.left(), way.right()
    away = (way.at - root) % p
    if away == 0:
        me.start([way.k], by=way.lead)
        me.finish([way.k], to=way.lead)
    for step in range(p - 1):
        me.start([way.k], by=way.lead)
        receives, sends = 0 < away <= step + 1, away <= step
        if receives:
            left.tx_ack()
        if sends:
            right.rx_ack()
            right.tx_data_signal()
        if receives:
            left.rx_data_signal()
            _take(left, "read", places[(way.at - 2 - step) % p][0], None)
        me.finish([way.k], to=way.lead)
    handshake(left, right)


def scatter_direct(way: Way, places: Places, root: int, out: int | None) -> None:
    """temp_scatter/scatter_ring_direct.cc:153 RunScatter, :181 RunScatterOnOtherRank, :53 the
    barrier.
    """
    p = way.size
    if p == 1:
        return
    left, right = way.left(), way.right()
    away = (way.at - root) % p
    for step in range(p - 1):
        receives, sends = 0 < away <= step + 1, away <= step
        if receives:
            left.tx_ack()
        if sends:
            right.rx_ack()
            right.tx_data_signal()
        if receives:
            left.rx_data_signal()
            to = out if step == p - 2 else None
            _take(left, "read", places[(way.at - 2 - step) % p][0], to)
    handshake(left, right)


class Double:
    """Two rings, aligned: ring 0 on sub stream 1, helped by 2, ring 1 on main, helped by 3. The
    template is given so many sub streams. Links reduce on their way if `inline`.
    """

    def __init__(self, me: Worker, ways: Sequence[Way], subs: int, *, inline: bool = True) -> None:
        self.me, self.ways, self.inline = me, ways, inline
        self.subs = range(subs)
        self.steps = ways[0].size - 1

    def meet(self) -> None:
        """Acks with both neighbours of each ring."""
        for way in self.ways:
            way.right().tx_ack()
            way.left().rx_ack()

    def part(self) -> None:
        """DataSignals with both neighbours of each ring."""
        for way in self.ways:
            way.left().tx_data_signal()
            way.right().rx_data_signal()

    def reduce(self, q: int, part: Slice, to: int | None) -> None:
        """ReducerRun of aligned_reduce_scatter_double_ring.cc of libochao-huawei/hcomm @ 8958adb:
        without inline reduce, main reduces what has come for both rings.
        """
        if self.inline:
            _take(self.ways[q].left(), "read_reduce", part, to)
            return
        _take(self.ways[q].left(), "read", part, None)
        if not q:
            self.me.signal_main(1, 0)
            self.me.await_main(0, 0)
            self.me.signal_sub(0, 0)
            self.me.await_sub(1, 0)

    def main_sync(self, subs: Sequence[int]) -> None:
        """PreSync of main: MainWaitSub and MainRecordSub."""
        for k in subs:
            self.me.await_main(0, k)
        for k in subs:
            self.me.signal_sub(0, k)

    def sub_sync(self, k: int) -> None:
        """PreSync of a sub stream."""
        self.me.signal_main(k + 1, k)
        self.me.await_sub(k + 1, k)


def aligned_all_gather(
    double: Double, places: Sequence[Places], ends: Sequence[Places] | None
) -> None:
    """temp_all_gather/aligned_all_gather_double_ring.cc:378 RunAllGather, :255 RunAllStreams, :59
    the barrier of ring 0's links, on main; `ends` in op-base mode.
    """
    me, p = double.me, double.steps + 1
    if ends is not None:
        me.start([0])
        me.finish([0])
    me.start(double.subs)
    for step in range(p - 1):
        double.meet()
        last = ends is not None and step == p - 2
        slots = [(way.at - 1 - step) % p for way in double.ways]
        for i in range(len(places[0][0])):
            for q, way in enumerate(double.ways):
                if q:
                    for k in (2, 1) if ends is not None else ():
                        double.sub_sync(k)
                    double.main_sync(double.subs)
                else:
                    double.sub_sync(0)
                to = ends[q][slots[q]][i].offset if last and ends else None
                _take(way.left(), "read", places[q][slots[q]][i], to)
        double.part()
    me.finish(double.subs)
    barrier_on_main(double)


def aligned_reduce_scatter(
    double: Double, places: Sequence[Places], outs: Sequence[int] | None, *, op_base: bool
) -> None:
    """temp_reduce_scatter/aligned_reduce_scatter_double_ring.cc:585 RunReduceScatter, :292 the
    first copies, :523 RunAllStreams; there is no barrier.
    """
    me, p = double.me, double.steps + 1
    me.start(double.subs)
    for _ in places[0][0] if op_base else ():
        double.sub_sync(0)
        double.sub_sync(1)
        double.main_sync(double.subs)
        double.sub_sync(2)
    for step in range(p - 1):
        double.meet()
        for i in range(len(places[0][0])):
            for q in (1, 0):
                way = double.ways[q]
                if q:
                    double.main_sync(double.subs)
                else:
                    double.sub_sync(0)
                part = places[q][(way.at - 2 - step) % p][i]
                to = outs[q] if outs is not None and step == p - 2 else None
                double.reduce(q, part, to)
            if op_base:
                double.sub_sync(2)
                double.sub_sync(1)
            else:
                double.main_sync(double.subs)
                double.sub_sync(0)
        double.part()
    me.finish(double.subs)


def serial_reduce_scatter(
    double: Double, places: Sequence[Places], outs: Sequence[int] | None, *, op_base: bool
) -> None:
    """aligned_reduce_scatter_double_ring_with_serial_local_copy.cc:242 RunReduceScatter, :179
    PreSync, :201 RunAllStreams, :49 the barrier; the last sub stream does nothing.
    """
    me, p = double.me, double.steps + 1
    active = double.subs[: len(double.subs) - 1] if op_base else double.subs
    if op_base:
        me.start(active)
        me.finish(active)
    me.start(active)
    for step in range(p - 1):
        double.meet()
        for i in range(len(places[0][0])):
            for q in (1, 0):
                way = double.ways[q]
                if q:
                    double.main_sync(active)
                else:
                    double.sub_sync(0)
                part = places[q][(way.at - 2 - step) % p][i]
                to = outs[q] if outs is not None and step == p - 2 else None
                double.reduce(q, part, to)
            if op_base:
                double.sub_sync(1)
        double.part()
    me.finish(active)
    barrier_on_main(double)


def scatter_double_direct(double: Double, places: Sequence[Places], root: int) -> None:
    """temp_scatter/scatter_double_ring_direct.cc:315 RunScatter, :191 RunAllStreams, up to 4 MiB,
    but for what the root reads itself; there is no barrier.
    """
    me, p = double.me, double.steps + 1
    for step in range(p - 1):
        me.start([0])
        double.meet()
        me.finish([0])
        me.start(double.subs)
        for q in (1, 0):
            way = double.ways[q]
            if 0 < (way.at - way.order.index(root)) % p <= step + 1:
                _take(way.left(), "read", places[q][(way.at - 2 - step) % p][0], None)
        double.part()
        me.finish(double.subs)


def barrier_on_main(double: Double) -> None:
    """ExecuteBarrier(leftLink_, rightLink_) of ring 0's neighbours, on main."""
    ring = double.ways[0]
    on_main = Way(ring.me, ring.order, 0)
    handshake(on_main.left(), on_main.right())
