"""HCCL's pipelines of Atlas A2, written from its sources, as one rank runs them.

Files are those of xiaobingling93-pixel/cann-hcomm @ b5f3e5b under src/algorithm/base/alg_template.
Main is stream 0; sub stream k of the sources is stream k + 1. Servers are joined by RDMA. Places
are offsets in their buffers, whichever buffer that is.
"""

from collections.abc import Callable, Iterator, Sequence

from tests.executors.fidelity.transports import Event, Link, Slice, even, handshake

ALIGN = 16384
PIPELINE_DEPTH = 3

Places = Callable[[int, int], int]
"""Where a slot begins in the block of a step."""


Step = tuple[int, int, int]
"""Where a slot is from, where it goes, and its bytes."""


class Pipe:
    """Rank `device` of server `server`, of `servers` servers of `devices` ranks each, with so many
    sub streams.
    """

    joined: Sequence[int] = ()
    """What SDMA joins: ranks of one number."""

    def __init__(self, rank: int, servers: int, devices: int, subs: int) -> None:
        self.server, self.device = divmod(rank, devices)
        self.servers, self.devices, self.subs = servers, devices, subs
        self.streams: list[list[Event]] = [[] for _ in range(subs + 1)]

    @property
    def ranks(self) -> int:
        """How many there are."""
        return self.servers * self.devices

    def intra(self, stream: int, ahead: int) -> Link:
        """The link to the device so many ahead in this server."""
        peer = self.server * self.devices + (self.device + ahead) % self.devices
        return Link(self.streams[stream], peer, rdma=False)

    def inter(self, stream: int, ahead: int) -> Link:
        """The link to the same device of the server so many ahead."""
        peer = (self.server + ahead) % self.servers * self.devices + self.device
        own = self.server * self.devices + self.device
        near = bool(self.joined) and self.joined[peer] == self.joined[own]
        return Link(self.streams[stream], peer, rdma=not near)

    def slot(self, ahead: int, device: int | None = None) -> int:
        """The number of a device's slot in the server so many ahead."""
        device = self.device if device is None else device % self.devices
        return (self.server + ahead) % self.servers * self.devices + device

    def wake(self, begin: int = 0) -> None:
        """MainRecordSub and SubWaitMain, from sub stream `begin` on."""
        for sub in range(begin + 1, self.subs + 1):
            self.streams[0].append(("post", sub, 0))
            self.streams[sub].append(("wait", sub, 0))

    def join(self, begin: int = 0) -> None:
        """SubRecordMain and MainWaitSub, from sub stream `begin` on."""
        for sub in range(begin + 1, self.subs + 1):
            self.streams[sub].append(("post", 0, sub - 1))
            self.streams[0].append(("wait", 0, sub - 1))


def _relay(
    me: Pipe, stream: int, to: int, sent: Step, came: Step, *, reduce: bool = False
) -> tuple[Link, Link]:
    """One step between servers: what is sent over RDMA, or what is read where SDMA joins servers
    (all_gather_pipeline.cc:174-187), and what says so; the previous and the next one's link.
    """
    previous, following = me.inter(stream, -to), me.inter(stream, to)
    previous.tx_ack()
    following.rx_ack()
    if following.rdma:
        following.move("rdma_write_reduce" if reduce else "rdma_write", *sent)
    following.tx_data_signal()
    previous.rx_data_signal()
    if not previous.rdma:
        previous.move("read_reduce" if reduce else "read", *came)
    previous.post_fin_ack()
    following.wait_fin_ack()
    return previous, following


def rounds(counts: Sequence[int], displs: Sequence[int], most: int) -> Iterator[list[Slice]]:
    """coll_all_gather_v_mesh_opbase_pipeline_executor.cc:30 and
    Coll_reduce_scatter_v_mesh_opbase_pipeline_executor.cc:116 CalcCurCountsAndCurDispls, for
    elements of 4 bytes: nobody has more than `most` elements in a round.
    """
    left, starts = list(counts), list(displs)
    while any(left):
        now = [min(count, most) for count in left]
        yield [Slice(4 * start, 4 * count) for start, count in zip(starts, now, strict=True)]
        left = [a - b for a, b in zip(left, now, strict=True)]
        starts = [a + b for a, b in zip(starts, now, strict=True)]


def _in_block(slots: Sequence[Slice]) -> Places:
    """As far behind a multiple of 16 KiB as in user memory; the block is a buffer."""
    return lambda step, slot: slots[slot].offset % ALIGN


def _in_user_memory(slots: Sequence[Slice]) -> Places:
    """In graph mode slots do not leave their places."""
    return lambda step, slot: slots[slot].offset


def _all_gather(me: Pipe, slots: Sequence[Slice], at: Places) -> None:
    """temp_all_gather/all_gather_pipeline.cc:125-228, all_gather_v_pipeline.cc:124,
    all_gather_graph_pipeline.cc:133, all_gather_v_graph_pipeline.cc:20.
    """
    for step in range(me.servers):
        me.wake()
        if step < me.servers - 1:
            sent, came = (
                (at(step, slot), at(step + 1, slot), slots[slot].size)
                for slot in (me.slot(-step), me.slot(-step - 1))
            )
            links = _relay(me, 1, 1, sent, came)
            if step == me.servers - 2:
                handshake(*links)
        for k in range(1, me.devices):
            link, slot = me.intra(k + 1, k), me.slot(-step, me.device + k)
            link.tx_ack()
            link.rx_ack()
            link.move("read", at(step, slot), *slots[slot])
            link.tx_data_signal()
            link.rx_data_signal()
        me.join()


def all_gather_pipeline(me: Pipe, count: int, ccl: int) -> None:
    """Both blocks begin with their buffers."""
    slots = even(me.ranks, 4 * count)
    _all_gather(me, slots, _in_block(slots))


def all_gather_v_pipeline(me: Pipe, counts: Sequence[int], displs: Sequence[int], ccl: int) -> None:
    """The same; coll_all_gather_v_mesh_opbase_pipeline_executor.cc:97 CalcLoopMaxCount."""
    for slots in rounds(counts, displs, (ccl - ALIGN) // 128 * 128 // 4):
        _all_gather(me, slots, _in_block(slots))


def all_gather_graph_pipeline(me: Pipe, count: int, ccl: int) -> None:
    """Everything in the output."""
    slots = even(me.ranks, 4 * count)
    _all_gather(me, slots, _in_user_memory(slots))


def all_gather_v_graph_pipeline(
    me: Pipe, counts: Sequence[int], displs: Sequence[int], ccl: int
) -> None:
    """The same; in graph mode there are no rounds."""
    (slots,) = rounds(counts, displs, max(counts))
    _all_gather(me, slots, _in_user_memory(slots))


def _reduce_scatter(me: Pipe, slots: Sequence[Slice], at: Places, *, pull: bool = False) -> None:
    """temp_reduce_scatter/reduce_scatter_pipeline.cc:61 in the server, :84 between, :126 RunAsync;
    reduce_scatter_v_pipeline.cc:23, :51, :101; pulling, reduce_scatter_graph_pipeline.cc:60, :90,
    :111.
    """
    for step in range(me.servers):
        begin = 0 if step else 1
        if step == 0:
            me.wake(begin)
        for k in range(1, me.devices):
            link, slot = me.intra(k + 1, k), me.slot(step + 1, me.device + k)
            link.tx_ack()
            link.rx_ack()
            if pull:
                mine = slots[me.slot(step + 1)]
                link.move("read_reduce", mine.offset, mine.offset, mine.size)
            else:
                link.move("write_reduce", slots[slot].offset, at(step, slot), slots[slot].size)
            link.tx_data_signal()
            link.rx_data_signal()
        me.join(begin)
        if step < me.servers - 1:
            me.wake()
            sent, came = (
                (at(step, slot), at(step + 1, slot), slots[slot].size)
                for slot in (me.slot(step + 1), me.slot(step + 2))
            )
            links = _relay(me, 1, -1, sent, came, reduce=True)
            if step == me.servers - 2:
                handshake(*links)


def _in_three(slots: Sequence[Slice], ccl: int) -> Places:
    """Three blocks of CCL_In: reduce_scatter_pipeline.cc:262, reduce_scatter_v_pipeline.cc:199."""
    block = ccl // (ALIGN * PIPELINE_DEPTH) * ALIGN
    return lambda step, slot: step % PIPELINE_DEPTH * block + slots[slot].offset % ALIGN


def reduce_scatter_pipeline(me: Pipe, count: int, ccl: int) -> None:
    """By way of CCL_In."""
    slots = even(me.ranks, 4 * count)
    _reduce_scatter(me, slots, _in_three(slots, ccl))


def reduce_scatter_v_pipeline(
    me: Pipe, counts: Sequence[int], displs: Sequence[int], ccl: int
) -> None:
    """The same; Coll_reduce_scatter_v_mesh_opbase_pipeline_executor.cc:107 CalcLoopMaxCount."""
    most = (ccl // (ALIGN * PIPELINE_DEPTH) * ALIGN - ALIGN) // 4
    for slots in rounds(counts, displs, most):
        _reduce_scatter(me, slots, _in_three(slots, ccl))


def reduce_scatter_graph_pipeline(me: Pipe, count: int, ccl: int) -> None:
    """In the input."""
    slots = even(me.ranks, 4 * count)
    _reduce_scatter(me, slots, _in_user_memory(slots), pull=True)


def _all_reduce(me: Pipe, slots: Sequence[Slice], at: Places) -> None:
    """temp_all_reduce/all_reduce_opbase_pipeline.cc:244 RunAsync, :60 and :122 reduce-scatter, :94
    and :165 all-gather; all_reduce_graph_pipeline.cc:175, :67 and :122, :96 and :149.
    """

    def inside(kind: str, numbers: Sequence[int]) -> None:
        for k, slot in enumerate(numbers, start=1):
            link, (user, size) = me.intra(k, k), slots[slot]
            link.tx_ack()
            link.rx_ack()
            places = (user, at(0, slot)) if kind == "write_reduce" else (at(0, slot), user)
            link.move(kind, *places, size)
            link.tx_data_signal()
            link.rx_data_signal()

    def handed(ahead: int) -> list[Step]:
        numbers = (me.slot(ahead), me.slot(ahead + 1))
        return [(at(0, slot), at(0, slot), slots[slot].size) for slot in numbers]

    for step in range(me.servers):
        if step == 0:
            me.wake()
        inside("write_reduce", [me.slot(step + 1, me.device + k) for k in range(1, me.devices)])
        me.join()
        if step < me.servers - 1:
            me.wake()
            _relay(me, 0, -1, *handed(step + 1), reduce=True)
    for step in range(me.servers):
        me.wake()
        if step < me.servers - 1:
            links = _relay(me, 0, -1, *handed(step))
            if step == me.servers - 2:
                handshake(*links)
        inside("read", [me.slot(step, me.device + k) for k in range(1, me.devices)])
        me.join()


def _slots(count: int, ranks: int) -> list[Slice]:
    """all_reduce_opbase_pipeline.cc:322, all_reduce_graph_pipeline.cc:245: elements floored, the
    last slot with the rest.
    """
    each = count // ranks * 4
    return [*even(ranks - 1, each), Slice(each * (ranks - 1), count * 4 - each * (ranks - 1))]


def all_reduce_pipeline(me: Pipe, count: int, ccl: int) -> None:
    """A block is a buffer."""
    slots = _slots(count, me.ranks)
    _all_reduce(me, slots, _in_block(slots))


def all_reduce_graph_pipeline(me: Pipe, count: int, ccl: int) -> None:
    """In the input, then in the output."""
    slots = _slots(count, me.ranks)
    _all_reduce(me, slots, _in_user_memory(slots))
