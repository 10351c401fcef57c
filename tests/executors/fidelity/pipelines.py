"""HCCL's pipelines of Atlas A2, written from its sources, as one rank runs them.

Files are those of xiaobingling93-pixel/cann-hcomm @ b5f3e5b under src/algorithm/base/alg_template.
Main is stream 0; sub stream k of the sources is stream k + 1. Servers are joined by RDMA. Places
are offsets in their buffers, whichever buffer that is.
"""

from collections.abc import Sequence

from tests.executors.fidelity.transports import Event, Link, handshake

ALIGN = 16384


class Pipe:
    """Rank `device` of server `server`, of `servers` servers of `devices` ranks each."""

    def __init__(self, rank: int, servers: int, devices: int) -> None:
        self.server, self.device = divmod(rank, devices)
        self.servers, self.devices = servers, devices
        self.streams: list[list[Event]] = [[] for _ in range(devices + 1)]

    def intra(self, stream: int, ahead: int) -> Link:
        """The link to the device so many ahead in this server."""
        peer = self.server * self.devices + (self.device + ahead) % self.devices
        return Link(self.streams[stream], peer, rdma=False)

    def inter(self, stream: int, ahead: int) -> Link:
        """The link to the same device of the server so many ahead."""
        peer = (self.server + ahead) % self.servers * self.devices + self.device
        return Link(self.streams[stream], peer, rdma=True)

    def slot(self, ahead: int, device: int | None = None) -> int:
        """The number of a device's slot in the server so many ahead."""
        device = self.device if device is None else device % self.devices
        return (self.server + ahead) % self.servers * self.devices + device

    def wake(self, begin: int = 0) -> None:
        """MainRecordSub and SubWaitMain, from sub stream `begin` on."""
        for sub in range(begin + 1, self.devices + 1):
            self.streams[0].append(("post", sub, 0))
            self.streams[sub].append(("wait", sub, 0))

    def join(self, begin: int = 0) -> None:
        """SubRecordMain and MainWaitSub, from sub stream `begin` on."""
        for sub in range(begin + 1, self.devices + 1):
            self.streams[sub].append(("post", 0, sub - 1))
            self.streams[0].append(("wait", 0, sub - 1))


def _relay(
    me: Pipe, stream: int, to: int, source: int, target: int, size: int, *, reduce: bool = False
) -> tuple[Link, Link]:
    """One step between servers, over RDMA: what is sent, and what says so; the previous and the
    next neighbour's link.
    """
    previous, following = me.inter(stream, -to), me.inter(stream, to)
    previous.tx_ack()
    following.rx_ack()
    following.move("rdma_write_reduce" if reduce else "rdma_write", source, target, size)
    following.tx_data_signal()
    previous.rx_data_signal()
    previous.post_fin_ack()
    following.wait_fin_ack()
    return previous, following


def all_gather_pipeline(me: Pipe, size: int, ccl: int) -> None:
    """temp_all_gather/all_gather_pipeline.cc:125-228. Both blocks begin with their buffers."""
    for step in range(me.servers):
        me.wake()
        if step < me.servers - 1:
            at = size * me.slot(-step) % ALIGN
            links = _relay(me, 1, 1, at, at, size)
            if step == me.servers - 2:
                handshake(*links)
        for k in range(1, me.devices):
            link, slot = me.intra(k + 1, k), me.slot(-step, me.device + k)
            link.tx_ack()
            link.rx_ack()
            link.move("read", size * slot % ALIGN, size * slot, size)
            link.tx_data_signal()
            link.rx_data_signal()
        me.join()


def reduce_scatter_pipeline(me: Pipe, size: int, ccl: int) -> None:
    """temp_reduce_scatter/reduce_scatter_pipeline.cc:61 in the server, :84 between, :126 RunAsync.
    Three blocks of CCL_In: :262.
    """
    block = ccl // (ALIGN * 3) * ALIGN

    def at(number: int, slot: int) -> int:
        return number % 3 * block + size * slot % ALIGN

    for step in range(me.servers):
        begin = 0 if step else 1
        if step == 0:
            me.wake(begin)
        for k in range(1, me.devices):
            link, slot = me.intra(k + 1, k), me.slot(step + 1, me.device + k)
            link.tx_ack()
            link.rx_ack()
            link.move("write_reduce", size * slot, at(step, slot), size)
            link.tx_data_signal()
            link.rx_data_signal()
        me.join(begin)
        if step < me.servers - 1:
            me.wake()
            slot = me.slot(step + 1)
            links = _relay(me, 1, -1, at(step, slot), at(step + 1, slot), size, reduce=True)
            if step == me.servers - 2:
                handshake(*links)


def all_reduce_pipeline(me: Pipe, count: int, ccl: int) -> None:
    """temp_all_reduce/all_reduce_opbase_pipeline.cc:244 RunAsync, :60 and :122 reduce-scatter, :94
    and :165 all-gather, :322 slices: floored, the last with the rest. A block is a buffer.
    """
    ranks = me.servers * me.devices
    each = count // ranks * 4

    def size(slot: int) -> int:
        return count * 4 - each * (ranks - 1) if slot == ranks - 1 else each

    def at(slot: int) -> int:
        return each * slot % ALIGN

    def inside(kind: str, slots: Sequence[int]) -> None:
        for k, slot in enumerate(slots, start=1):
            link = me.intra(k, k)
            link.tx_ack()
            link.rx_ack()
            source, to = (
                (each * slot, at(slot)) if kind == "write_reduce" else (at(slot), each * slot)
            )
            link.move(kind, source, to, size(slot))
            link.tx_data_signal()
            link.rx_data_signal()

    for step in range(me.servers):
        if step == 0:
            me.wake()
        inside("write_reduce", [me.slot(step + 1, me.device + k) for k in range(1, me.devices)])
        me.join()
        if step < me.servers - 1:
            me.wake()
            slot = me.slot(step + 1)
            _relay(me, 0, -1, at(slot), at(slot), size(slot), reduce=True)
    for step in range(me.servers):
        me.wake()
        if step < me.servers - 1:
            slot = me.slot(step)
            links = _relay(me, 0, -1, at(slot), at(slot), size(slot))
            if step == me.servers - 2:
                handshake(*links)
        inside("read", [me.slot(step, me.device + k) for k in range(1, me.devices)])
        me.join()
