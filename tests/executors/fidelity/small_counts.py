"""HCCL's small counts over several servers of Atlas A2, written from its sources, as one rank runs
them.

Files are those of libochao-huawei/hcomm @ 8958adb under src/legacy/ascend910/algorithm; templates
are under base/alg_template. Streams are 0 for main and 1, 2, .. for subs, as in meshes.py.
"""

from collections.abc import Callable, Sequence

from tests.executors.fidelity.meshes import Mesh
from tests.executors.fidelity.transports import Across, Link, Member, Part, Slice
from tests.executors.fidelity.trees import nhr_reduce_scatter


class OnServers(Mesh):
    """A rank of servers alike, with main and `subs` sub streams; servers are linked by RDMA, or
    those of other numbers in `joined`.
    """

    def __init__(
        self,
        rank: int,
        servers: int,
        devices: int,
        subs: int,
        joined: Sequence[int] | None = None,
    ) -> None:
        super().__init__(rank, devices, subs)
        self.server, self.device = divmod(rank, devices)
        self.home = range(self.server * devices, (self.server + 1) * devices)
        self.inside = Part(self.streams[0], self.home, rank, rdma=False)
        around = range(self.device, servers * devices, devices)
        servers_of = [number // devices for number in range(servers * devices)]
        self.between = Across(self.streams[0], around, rank, joined or servers_of)

    def link(self, stream: int, peer: int) -> Link:
        """The link to a device of the server, used by a stream."""
        return Link(self.streams[stream], self.home[peer], rdma=False)


def doubling(me: Member, whole: Slice) -> None:
    """temp_all_reduce/all_reduce_doubling_local_reduce.cc:98, :124 over SDMA, :144 over RDMA."""
    for step in range(me.size.bit_length() - 1):
        link = me.link(me.rank ^ (1 << step))
        link.tx_ack()
        link.rx_ack()
        if link.rdma:
            link.tx_async([whole])
            link.rx_async([whole])
            link.post_fin_ack()
            link.wait_fin_ack()
        else:
            link.read([whole])
            link.tx_data_signal()
            link.rx_data_signal()


def at_device_0(me: OnServers, whole: Slice, *, added: bool = False) -> None:
    """temp_all_reduce/all_reduce_local_reduce_bcast.cc:190-236 and :270-315; where all add to one
    sum, all_reduce_reduce_broadcast.cc:126-265.
    """
    for collects in (True, False):
        if me.device == 0:
            me.wake()
            for k in range(1, me.size):
                link = me.link(0 if k == me.size - 1 else k, k)
                link.tx_ack()
                link.rx_data_signal()
            me.join()
            continue
        link = me.link(0, 0)
        link.rx_ack()
        if not collects:
            link.move("read", 0, 0, whole.size)
        elif added or me.device == 1:
            link.move("write_reduce", 0, 0, whole.size)
        else:
            link.move("write", 0, (me.device - 1) * whole.size, whole.size)
        link.tx_data_signal()


def halving_with_reads(me: OnServers, source: int, size: int) -> None:
    """temp_reduce_scatter/reduce_scatter_hd_stage.cc:154-240; `source` is where the slices of this
    server begin in the input, of `size` bytes each.
    """
    steps, half = me.size.bit_length() - 1, me.size // 2
    link = me.link(0, me.device ^ half)
    link.tx_ack()
    link.rx_ack()
    given = (half if me.device < half else 0) * size
    link.move("write_reduce", source + given, 0, half * size)
    link.tx_data_signal()
    link.rx_data_signal()
    link = me.link(0, me.device ^ (half >> 1))
    link.tx_ack()
    link.rx_ack()
    for step in range(1, steps):
        width = me.size >> (step + 1)
        first = me.device // width * width
        kept = first - half if first >= half else first
        link.move("read_reduce", kept * size, kept * size, width * size)
        if step == steps - 1:
            break
        me.wake()
        by_sub = me.link(1, me.device ^ width)
        by_sub.tx_data_signal()
        by_sub.rx_data_signal()
        link = me.link(0, me.device ^ (width >> 1))
        link.tx_ack()
        link.rx_ack()
        me.join()
    me.wake()
    link = me.link(0, me.device ^ 1)
    link.tx_data_signal()
    link.rx_data_signal()
    me.join()


def all_reduce(me: OnServers, size: int, level1: Callable[..., None]) -> None:
    """impl/coll_executor/coll_all_reduce/coll_all_reduce_mesh_opbase_small_count_deterministic_
    executor.cc:134 KernelRun; `level1` is the word's template.
    """
    whole = Slice(0, size)
    if _is_power(me.size):
        doubling(me.inside, whole)
    else:
        at_device_0(me, whole)
    if _is_power(me.between.size):
        doubling(me.between, whole)
    else:
        level1(me.between, whole)


def reduce_scatter(me: OnServers, size: int, level1: Callable[..., None]) -> None:
    """impl/coll_executor/coll_reduce_scatter/coll_reduce_scatter_mesh_opbase_small_count_
    deterministic_executor.cc:179 and :240.
    """
    mine, servers = me.size * size, me.between.size
    level1(me.between, [Slice(server * mine, mine) for server in range(servers)])
    if me.size >= 4 and _is_power(me.size):
        halving_with_reads(me, me.server * mine, size)
    else:
        start = me.server * mine
        nhr_reduce_scatter(me.inside, [Slice(start + i * size, size) for i in range(me.size)])


def _is_power(number: int) -> bool:
    return number & (number - 1) == 0
