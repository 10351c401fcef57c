"""HCCL's reduce-scatter in a fixed order in one mesh, written from its source, as one rank runs it.

The file is libochao-huawei/hcomm @ 8958adb, src/legacy/ascend910/algorithm/base/alg_template/
temp_reduce_scatter/reduce_scatter_local_reduce.cc.
"""

from collections.abc import Sequence

from tests.executors.fidelity.streams import Worker
from tests.executors.fidelity.transports import Link

ALIGN_910B, ALIGN_ON_CHIP, SMALL = 16384, 512, 32 << 10


def local_reduce(me: Worker, ranks: int, size: int, memory: int, whole: int, start: int) -> None:
    """:138 RunAsync of `size` bytes for each of the ranks, from `start` of every chunk of `whole`
    bytes, with `memory` bytes to collect in.
    """
    rank, subs = me.rank, range(len(me.streams) - 1)
    shifts = [i * whole % ALIGN_910B if size > SMALL else 0 for i in range(ranks)]
    stride = _stride(size, ranks, memory - max(shifts))
    served = [(k if k < ranks - 1 else 0, (rank + k) % ranks) for k in range(1, ranks)]
    me.start(subs[: ranks - 2])
    for stream, peer in served:
        link = Link(me.streams[stream], peer, rdma=False)
        link.tx_ack()
        link.rx_ack()
    me.finish(subs[: ranks - 2])
    me.start(subs)
    for k, (stream, peer) in enumerate(served):
        link = Link(me.streams[stream], peer, rdma=False)
        link.move("write", peer * whole + start, stride * k + shifts[peer], size)
        link.tx_data_signal()
        link.rx_data_signal()
    me.finish(subs)
    _reduce(me, subs, ranks)


def _stride(size: int, ranks: int, room: int) -> int:
    """:171 CalAlign."""
    for align in (ALIGN_910B, ALIGN_ON_CHIP):
        stride = -(-size // align) * align
        if stride * (ranks - 1) <= room:
            return stride
    return size


def _reduce(me: Worker, subs: Sequence[int], ranks: int) -> None:
    """:256 RunLocalReduce: who is woken; sums are local."""
    power = 1 << ranks.bit_length() - 1
    if power < ranks:
        me.start(subs[: ranks - power - 1])
        me.finish(subs[: ranks - power - 1])
    while power > 1:
        power //= 2
        me.start(subs[: power - 1])
        me.finish(subs[: power - 1])
