"""HCCL's two dies over SIO and HCCS at once, written from its sources, as one rank runs them.

Files are those of libochao-huawei/hcomm @ 8958adb under src/legacy/ascend910/algorithm: GATHER is
base/alg_template/temp_all_gather/all_gather_hccs_sio.cc, REDUCE
base/alg_template/temp_reduce_scatter/reduce_scatter_hccs_sio.cc. Sub stream k of the sources is
stream k + 1. Of the two links of a pair the executors make the first one SIO and the second one
HCCS (coll_all_gather_hccs_sio_executor.cc:71, coll_reduce_scatter_hccs_sio_executor.cc:83), though
they call them the other way round.
"""

from collections.abc import Iterator

from tests.executors.fidelity.streams import ALIGN, Worker
from tests.executors.fidelity.transports import Event, Link

DEVICES = 2
LINKS = ("sio", "hccs")
"""What the links of streams 1 and 2 are."""


def _rounds(count: int, unit: int, ccl: int, *, graph: bool) -> Iterator[tuple[int, int]]:
    """Where a round begins and how many elements it takes: CalcLoopMaxCount of both executors, line
    36 of one and 26 of the other; a graph has one round (Orchestrate).
    """
    most = count if graph else ccl // ALIGN * ALIGN // unit
    for start in range(0, count, most):
        yield start, min(most, count - start)


def all_gather_hccs_sio(
    rank: int, count: int, unit: int, ccl: int, *, graph: bool
) -> list[list[Event]]:
    """GATHER:150 RunAsync, with four streams (executor :28): what is read over either link begins
    in the peer's CCL_In (:102 RunInterDieOpBase) or input (:66 RunInterDie).
    """
    me, peer = Worker(rank, 2 * DEVICES), (rank + 1) % DEVICES
    streams = range(2 * DEVICES)
    for start, now in _rounds(count, unit, ccl, graph=graph):
        half, to = now // 2 * unit, (peer * count + start) * unit
        me.start(streams)
        for k in range(len(LINKS)):
            link = Link(me.streams[k + 1], peer, rdma=False)
            link.tx_ack()
            link.rx_ack()
            begin, end = (half, now * unit) if k else (0, half)
            link.move("read", begin, to + begin, end - begin)
            link.tx_data_signal()
            link.rx_data_signal()
        me.finish(streams)
    return me.streams


def reduce_scatter_hccs_sio(
    rank: int, count: int, unit: int, ccl: int, *, graph: bool
) -> list[list[Event]]:
    """REDUCE:178 RunAsync, with two streams: what the peer has for this rank is added to the
    output, from its CCL_In (:86 RunInterDieOpBase) or from its input (:130 RunInterDieOffload).
    """
    me, peer = Worker(rank, DEVICES), rank + 1 if rank % 2 == 0 else rank - 1
    for start, now in _rounds(count, unit, ccl, graph=graph):
        half, frm = now // 2 * unit, rank * count * unit if graph else 0
        me.start(range(DEVICES))
        for k in range(len(LINKS)):
            link = Link(me.streams[k + 1], peer, rdma=False)
            link.tx_ack()
            link.rx_ack()
            begin, end = (half, now * unit) if k else (0, half)
            link.move("read_reduce", frm + begin, start * unit + begin, end - begin)
            link.tx_data_signal()
            link.rx_data_signal()
        me.finish(range(DEVICES))
    return me.streams
