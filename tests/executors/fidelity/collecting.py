"""HCCL's reduce-scatter-v in a fixed order, written from its sources, as one rank runs it.

Files are those of xiaobingling93-pixel/cann-hcomm @ b5f3e5b under src/algorithm: LOCAL is
base/alg_template/temp_reduce_scatter/reduce_scatter_plant_local_reduce.cc, COMBINE the one with
_combine, EXECUTOR coll_reduce_scatter_v_deter_executor.cc. Servers are joined by RDMA.
"""

from collections.abc import Iterable, Sequence
from itertools import accumulate

from tests.executors.fidelity.transports import Event, Link

HELPERS = 3
"""DEVICE_EIGHT / FACTOR_NUM_TWO - 1."""


def streams(devices: int, servers: int) -> int:
    """EXECUTOR:101 CalcStreamNum."""
    level0 = devices - 1 + (1 << devices.bit_length() - 1)
    return min(max(level0 - 1, 1 << servers.bit_length() - 1), 8 + 8 // 2 - 1)


class Collector:
    """Rank `device` of server `server`; sub stream k of the sources is stream k + 1."""

    def __init__(self, rank: int, servers: int, devices: int, counts: Sequence[int]) -> None:
        self.server, self.device = divmod(rank, devices)
        self.servers, self.devices = servers, devices
        self.sizes = [4 * count for count in counts]
        self.starts = [0, *accumulate(self.sizes)]
        self.stride, self.shift = max(self.sizes), int(servers > 1)
        self.near = [False] * servers
        """The servers that SDMA reaches."""
        self.streams: list[list[Event]] = [[] for _ in range(streams(devices, servers) + 1)]

    def link(self, stream: int, rank: int, *, rdma: bool = False) -> Link:
        """The link to a rank, used by a stream."""
        return Link(self.streams[stream], rank, rdma=rdma)

    def record(self, by: int, subs: Iterable[int]) -> None:
        """A stream posts to subs, which wait: meshSignalAux."""
        for sub in subs:
            self.streams[by].append(("post", sub + 1, 0))
            self.streams[sub + 1].append(("wait", sub + 1, 0))

    def post(self, subs: Iterable[int]) -> None:
        """Subs post: meshSignal."""
        for sub in subs:
            self.streams[sub + 1].append(("post", 0, sub))

    def wait(self, by: int, subs: Iterable[int]) -> None:
        """A stream waits for what subs have posted."""
        self.streams[by] += [("wait", 0, sub) for sub in subs]


def _add(me: Collector, adder: int, first: int, parts: int) -> None:
    """LOCAL:348 and COMBINE:246 RunLocalReduce: who is woken, in every round; sums are local."""
    steps = (parts - 1).bit_length()
    for step in range(steps):
        tail, head = min(parts, 1 << (steps - step)) - 1, 1 << (steps - step - 1)
        helpers = range(first, first + min(tail - head, HELPERS))
        me.record(adder, helpers)
        me.post(helpers)
        me.wait(adder, helpers)


def _exchange(me: Collector, group: int) -> None:
    """LOCAL:207 RunAlltoAll: main serves the first of the other ranks, in their order."""
    n = me.devices
    subs = range(n - 2)
    peers = [r for r in range(n) if r != me.device]
    me.record(0, subs)
    for stream, peer in enumerate(peers):
        link = me.link(stream, me.server * n + peer)
        link.tx_ack()
        link.rx_ack()
    me.post(subs)
    me.wait(0, subs)
    me.record(0, subs)
    for stream, peer in enumerate(peers):
        link, chunk = me.link(stream, me.server * n + peer), group * n + peer
        place = group * n + (me.shift + peer + me.device) % n
        if me.sizes[chunk]:
            link.move("write", me.starts[chunk], place * me.stride, me.sizes[chunk])
        link.tx_data_signal()
        link.rx_data_signal()
    me.post(subs)
    me.wait(0, subs)


def _between(me: Collector) -> None:
    """COMBINE:222 RunAlltoAll and :137 RunAlltoAllRDMA; EXECUTOR:217 where things lie."""
    n, s = me.devices, me.server
    held = (me.shift + me.device) % n
    for other in range(me.servers):
        if other == s:
            continue
        link = me.link(0, other * n + me.device, rdma=not me.near[other])
        link.tx_ack()
        link.rx_ack()
        size = me.sizes[other * n + me.device]
        source, to = other * n + held, (other + s) % me.servers * n + me.device
        if size:
            link.move(
                "rdma_write" if link.rdma else "write", source * me.stride, to * me.stride, size
            )
        link.tx_data_signal()
        link.rx_data_signal()
        link.post_fin_ack()
        link.wait_fin_ack()


def reduce_scatter_v_deter(me: Collector) -> None:
    """LOCAL:121 RunAsync, then COMBINE:115 RunAsync: EXECUTOR:334-351."""
    adder = me.devices - 2
    me.record(0, [adder])
    me.post([adder])
    for group in range(me.servers):
        _exchange(me, group)
        me.wait(0, [adder])
        me.record(0, [adder])
        _add(me, adder + 1, adder + 1, me.devices)
        me.post([adder])
    me.wait(0, [adder])
    if me.servers > 1:
        _between(me)
        _add(me, 0, 0, me.servers)
