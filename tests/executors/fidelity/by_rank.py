"""HCCL's order-preserved reductions, written from its sources, as one rank runs them.

Files are those of xiaobingling93-pixel/cann-hcomm @ b5f3e5b under src/algorithm: plant is
base/alg_template/temp_reduce_scatter/reduce_scatter_plant_local_reduce.cc, combine the same with
_combine. Streams are 0 for main and 1, 2, .. for subs; number k of the first list of notifies is
("..", 0, k), number k of the second ("..", k + 1, 0).
"""

from collections.abc import Callable
from typing import NamedTuple

from tests.executors.fidelity.transports import Event, Link


class Team(NamedTuple):
    """n members in each of so many groups, servers or superpods; blocks of `stride` bytes, of which
    rank k has `sizes[k]`; `borrows` is isNeedSpaceBorrow_.
    """

    n: int
    groups: int
    stride: int
    sizes: list[int]
    borrows: bool
    in_turns: bool

    @property
    def offset(self) -> int:
        """all2allOffset_."""
        return 1 if self.groups > 1 else 0


class Adder:
    """A rank with its streams."""

    def __init__(self, rank: int, team: Team, subs: int) -> None:
        self.rank, self.team = rank, team
        self.group, self.me = divmod(rank, team.n)
        self.streams: list[list[Event]] = [[] for _ in range(subs + 1)]

    def near(self, stream: int, member: int) -> Link:
        return Link(self.streams[stream], self.group * self.team.n + member, rdma=False)

    def far(self, group: int, rdma: bool) -> Link:
        return Link(self.streams[0], group * self.team.n + self.me, rdma=rdma)

    def wake(self, sub: int, by: int = 0) -> None:
        self.streams[by].append(("post", sub + 1, 0))
        self.streams[sub + 1].append(("wait", sub + 1, 0))

    def join(self, sub: int, to: int = 0) -> None:
        self.streams[sub + 1].append(("post", 0, sub))
        self.streams[to].append(("wait", 0, sub))


def subs_of_servers(n: int, servers: int) -> int:
    """coll_reduce_scatter_order_preserved_executor.cc:56 CalcStreamNum."""
    level0 = n - 1 + (1 << (n.bit_length() - 1))
    return min(max(level0 - 1, 1 << (servers.bit_length() - 1)), 8 + 4 - 1)


def subs_of_pods(n: int, pods: int) -> int:
    """coll_reduce_scatter_order_preserved_for_910_93_executor.cc:54 CalcStreamNum."""
    reduces = min((1 << (n.bit_length() - 1)) - 1, 4)
    between = min((1 << (pods.bit_length() - 1)) - 1, 4)
    return max(min(n, 8) + reduces - 1, between)


def plant(me: Adder) -> None:
    """plant:117 RunAsync."""
    team = me.team
    writers = min(team.n, 8) - 1 if team.in_turns else team.n - 2
    adder = writers
    me.wake(adder)
    me.streams[adder + 1].append(("post", 0, adder))
    for group in range(team.groups):
        (_write_in_turns if team.in_turns else _write)(me, group, writers)
        me.streams[0].append(("wait", 0, adder))
        me.wake(adder)
        _local_reduce(me, team.n, adder + 1, first=adder + 1)
        me.streams[adder + 1].append(("post", 0, adder))
    me.streams[0].append(("wait", 0, adder))


def _place(me: Adder, member: int, group: int) -> int:
    """plant:218 and :309, CalcOutputIndex :93: where a chunk goes at another member."""
    team = me.team
    index = (team.offset + member + me.me) % team.n
    last_of_all = member == team.n - 1 and group == team.groups - 1
    if team.borrows and index == team.n - 1 and not last_of_all:
        return (group * team.n + member) * team.stride
    return (group * team.n + index) * team.stride


def _move(me: Adder, link: Link, member: int, group: int) -> None:
    block = group * me.team.n + member
    if me.team.sizes[block]:
        source, to = block * me.team.stride, _place(me, member, group)
        link.move("write", source, to, me.team.sizes[block])


def _write(me: Adder, group: int, writers: int) -> None:
    """plant:182 RunAlltoAll."""
    others = [round_ for round_ in range(me.team.n) if round_ != me.me]
    for sub in range(writers):
        me.wake(sub)
    for stream, member in enumerate(others):
        me.near(stream, member).tx_ack()
        me.near(stream, member).rx_ack()
    for sub in range(writers):
        me.join(sub)
    for sub in range(writers):
        me.wake(sub)
    for stream, member in enumerate(others):
        link = me.near(stream, member)
        _move(me, link, member, group)
        link.tx_data_signal()
        link.rx_data_signal()
    for sub in range(writers):
        me.join(sub)


def _write_in_turns(me: Adder, group: int, writers: int) -> None:
    """plant:249 RunGroupAlltoAll."""
    n = me.team.n
    for turn in range(-(-n // 8)):
        far = [k for k in range(turn * 8, min(turn * 8 + 8, n)) if k]
        for sub in range(writers):
            me.wake(sub)
        for stream, k in enumerate(far):
            me.near(stream, (n + me.me - k) % n).tx_ack()
            me.near(stream, (me.me + k) % n).rx_ack()
        for sub in range(writers):
            me.join(sub)
        for sub in range(writers):
            me.wake(sub)
        for stream, k in enumerate(far):
            to = (me.me + k) % n
            _move(me, me.near(stream, to), to, group)
            me.near(stream, to).tx_data_signal()
            me.near(stream, (n + me.me - k) % n).rx_data_signal()
        for sub in range(writers):
            me.join(sub)


def _local_reduce(me: Adder, count: int, stream: int, first: int) -> None:
    """plant:337 and combine:236 RunLocalReduce: which streams meet; `first` is a sub."""
    steps = (count - 1).bit_length()
    for number in range(steps):
        tail, head = min(count, 1 << (steps - number)) - 1, 1 << (steps - number - 1)
        for k in range(min(tail - head, 3)):
            me.wake(first + k, by=stream)
        for k in range(min(tail - head, 3)):
            me.join(first + k, to=stream)


def combine(me: Adder, rdma: Callable[[int, int], bool]) -> None:
    """combine:100 RunAsync."""
    team, at = me.team, me.me
    before = (1 + at) % team.n
    for group in range(team.groups):
        if group == me.group:
            continue
        link = me.far(group, rdma(me.group, group))
        link.tx_ack()
        link.rx_ack()
        size = team.sizes[group * team.n + at]
        source = (before + group * team.n) * team.stride
        if team.borrows and at == team.n - 2:
            source = (at + group * team.n) * team.stride
        index = (group + me.group) % team.groups
        to = (at + index * team.n) * team.stride
        last = team.groups - 1
        if team.borrows and at == team.n - 1 and group != last and index == last:
            to = (at + group * team.n) * team.stride
        if size:
            link.move("rdma_write" if link.rdma else "write", source, to, size)
        link.tx_data_signal()
        link.rx_data_signal()
        link.post_fin_ack()
        link.wait_fin_ack()
    _local_reduce(me, team.groups, 0, first=0)


def mesh_all_gather(me: Adder) -> None:
    """all_gather_mesh_atomic.cc:21 within all_gather_mesh.cc:194-215, on the team's blocks."""
    team = me.team
    behind = [(me.me - k) % team.n for k in range(1, team.n)]
    streams = [k if k < team.n - 1 else 0 for k in range(1, team.n)]
    for sub in range(team.n - 2):
        me.wake(sub)
    for stream, member in zip(streams, behind, strict=True):
        me.near(stream, member).tx_ack()
        me.near(stream, member).rx_ack()
    for sub in range(team.n - 2):
        me.join(sub)
    for sub in range(team.n - 2):
        me.wake(sub)
    for stream, member in zip(streams, behind, strict=True):
        link, block = me.near(stream, member), me.group * team.n + member
        if team.sizes[block]:
            link.move("read", block * team.stride, block * team.stride, team.sizes[block])
        link.tx_data_signal()
        link.rx_data_signal()
    for sub in range(team.n - 2):
        me.join(sub)


def hd_stage(rank: int, ranks: int, size: int) -> list[list[Event]]:
    """temp_reduce_scatter/reduce_scatter_hd_stage.cc:125 RunReduceScatterStage of slices of so many
    bytes; main and one sub stream.
    """
    streams: list[list[Event]] = [[], []]
    steps = ranks.bit_length() - 1
    half = 1 << (steps - 1)

    def link(step: int, stream: int = 0) -> Link:
        return Link(streams[stream], rank ^ (1 << (steps - 1 - step)), rdma=False)

    def slice_of(step: int, of: int) -> tuple[int, int]:
        """:97 PrepareSliceData: offset and bytes."""
        number = ranks >> (step + 1)
        offset = size * number * (of // number)
        if step and offset >= half * size:
            offset -= half * size
        return offset, size * number

    def wake() -> None:
        streams[0].append(("post", 1, 0))
        streams[1].append(("wait", 1, 0))

    def join() -> None:
        streams[1].append(("post", 0, 0))
        streams[0].append(("wait", 0, 0))

    first = link(0)
    first.tx_ack()
    first.rx_ack()
    source, length = slice_of(0, first.peer)
    first.move("write_reduce", source, 0, length)
    first.tx_data_signal()
    first.rx_data_signal()
    link(1).tx_ack()
    link(1).rx_ack()
    for step in range(1, steps):
        offset, length = slice_of(step, rank)
        link(step).move("read_reduce", offset, offset, length)
        if step != steps - 1:
            wake()
            link(step, 1).tx_data_signal()
            link(step, 1).rx_data_signal()
            link(step + 1).tx_ack()
            link(step + 1).rx_ack()
            join()
    wake()
    link(steps - 1).tx_data_signal()
    link(steps - 1).rx_data_signal()
    join()
    return streams
