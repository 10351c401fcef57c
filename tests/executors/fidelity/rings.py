"""Rings of HCCL, written from its sources: one function per template, as one rank runs it.

Files are those of xiaobingling93-pixel/cann-hcomm @ b5f3e5b under src/algorithm/base/alg_template.
"""

from collections.abc import Sequence

from tests.executors.fidelity.transports import Link, Member, Slice, handshake

Part = Slice | Sequence[Slice]
"""What a step moves: a slice, or one slice of every server or superpod."""


def _ranges(part: Part) -> Sequence[Slice]:
    return [part] if isinstance(part, Slice) else part


def _neighbours(me: Member) -> tuple[Link, Link]:
    return me.link(me.rank - 1), me.link(me.rank + 1)


def ring_all_gather(me: Member, slices: Sequence[Part]) -> None:
    """all_gather_ring.cc:147 RunAllGather, :134 the barrier."""
    left, right = _neighbours(me)
    for step in range(me.size - 1):
        left.tx_ack()
        right.rx_ack()
        right.tx_async(_ranges(slices[(me.rank - step) % me.size]))
        left.rx_async(_ranges(slices[(me.rank - 1 - step) % me.size]))
    handshake(left, right)


def _reduce_scatter(me: Member, slices: Sequence[Part]) -> None:
    """reduce_scatter_ring.cc:185 RunReduceScatter."""
    left, right = _neighbours(me)
    for step in range(me.size - 1):
        left.tx_ack()
        right.rx_ack()
        right.tx_async(_ranges(slices[(me.rank - 1 - step) % me.size]), reduce=True)
        left.rx_async(_ranges(slices[(me.rank - 2 - step) % me.size]), reduce=True)


def ring_reduce_scatter(me: Member, slices: Sequence[Part]) -> None:
    """reduce_scatter_ring.cc:174-177: the barrier behind it."""
    _reduce_scatter(me, slices)
    handshake(*_neighbours(me))


def ring_all_reduce(me: Member, slices: Sequence[Slice]) -> None:
    """all_reduce_ring.cc:42-47: no barrier between the two, :159."""
    _reduce_scatter(me, slices)
    ring_all_gather(me, slices)


def ring_broadcast(me: Member, slices: Sequence[Slice], root: int = 0) -> None:
    """broadcast_ring.cc:75-157."""
    left, right = _neighbours(me)
    left.tx_ack()
    right.rx_ack()
    for part in slices:
        if me.rank != root:
            left.rx_async([part])
            left.tx_ack()
        if (me.rank + 1) % me.size != root:
            right.tx_async([part])
            right.rx_ack()
    right.tx_data_signal()
    left.rx_data_signal()


def ring_reduce(me: Member, whole: Slice, root: int = 0) -> None:
    """reduce_ring.cc:84-152."""
    left, right = _neighbours(me)
    left.tx_ack()
    right.rx_ack()
    if (me.rank - 1) % me.size != root:
        left.rx_async([whole], reduce=True)
        left.tx_ack()
    if me.rank != root:
        right.tx_async([whole], reduce=True)
        right.rx_ack()
    right.tx_data_signal()
    left.rx_data_signal()


def ring_scatter(me: Member, slices: Sequence[Slice], root: int = 0) -> None:
    """scatter_ring.cc:23 RunScatterOnRootRank, :68 on the last rank, :88 between, :227 barrier."""
    left, right = _neighbours(me)
    away = (me.rank - root) % me.size
    if away == 0:
        for k in range(1, me.size):
            right.rx_ack()
            right.tx_async([slices[(me.rank - k) % me.size]])
    else:
        rounds = me.size - away
        for k in range(1, rounds + 1):
            at = me.rank + rounds - k
            left.tx_ack()
            if k > 1:
                right.rx_ack()
                right.tx_async([slices[(at + 1) % me.size]])
            left.rx_async([slices[at % me.size]])
    handshake(left, right)


def ring_gather(me: Member, slices: Sequence[Slice], root: int = 0) -> None:
    """gather_ring.cc:36 RunGatherOnRootRank, :65 on the rank behind, :86 between, :218 barrier."""
    left, right = _neighbours(me)
    away = (me.rank - root) % me.size
    received = [slices[(me.rank - i) % me.size] for i in range(1, away or me.size)]
    if away == 0:
        for part in received:
            left.tx_ack()
            left.rx_async([part])
    else:
        if received:
            left.tx_ack()
        right.rx_ack()
        right.tx_async([slices[me.rank]])
    for i, part in enumerate(received if away else ()):
        left.rx_async([part])
        if i < len(received) - 1:
            left.tx_ack()
        right.rx_ack()
        right.tx_async([part])
    handshake(left, right)


def _slim_step(me: Member, step: int, part: Slice, *, reduce: bool = False) -> None:
    """component/sender.cc:91 and reducer.cc:255 with an index of a notify, all_gather_slim_ring.cc:
    29 and :43, here and below those of libochao-huawei/hcomm @ 8958adb.
    """
    left, right = _neighbours(me)
    right.post(step)
    left.wait(step)
    left.read([part], reduce=reduce)


def _slim_end(me: Member) -> None:
    """alg_template_base.cc:1068 ExecuteBarrier with an index, links the other way round."""
    left, right = _neighbours(me)
    left.post(me.size - 1)
    right.wait(me.size - 1)


def slim_ring_all_gather(me: Member, slices: Sequence[Slice]) -> None:
    """all_gather_slim_ring.cc:140 RunAllGather, :130 the end."""
    for step in range(me.size - 1):
        _slim_step(me, step, slices[(me.rank - 1 - step) % me.size])
    _slim_end(me)


def slim_ring_reduce_scatter(me: Member, slices: Sequence[Slice]) -> None:
    """reduce_scatter_slim_ring.cc:199 RunReduceScatter, :190 the end."""
    for step in range(me.size - 1):
        _slim_step(me, step, slices[(me.rank - 2 - step) % me.size], reduce=True)
    _slim_end(me)
