"""What HCCL's transports put on a stream, written from its sources; nothing here is from our code.

Files are those of xiaobingling93-pixel/cann-hcomm @ b5f3e5b, under src/platform/resource/transport
and src/algorithm/base/alg_template. Events are what a stream does for other ranks to see:

    ("post" | "wait", peer, name of a notify)
    ("post" | "wait", owning stream, number of a notify between streams of the rank)
    ("read" | "read_reduce" | "rdma_write" | "rdma_write_reduce", peer, offset, bytes)
    (the same or "write_reduce", peer, offset it is from, offset it goes to, bytes)

Copies within a rank's own memory, and which of its buffers data lies in, are left out.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

Event = tuple[Any, ...]


class Slice(NamedTuple):
    """Bytes of a buffer, at the same place at both ends."""

    offset: int
    size: int


def even(count: int, size: int) -> list[Slice]:
    """Slices of one size, one after the other."""
    return [Slice(i * size, size) for i in range(count)]


def merged(slices: Sequence[Slice]) -> list[Slice]:
    """nonuniform_hierarchical_ring_base.cc:103 MergeSlices: sorted, neighbours joined."""
    found: list[Slice] = []
    for one in sorted(slices):
        if found and sum(found[-1]) == one.offset:
            found[-1] = Slice(found[-1].offset, found[-1].size + one.size)
        else:
            found.append(one)
    return found


class Link:
    """One end of a transport, recording what its methods put on the stream."""

    def __init__(self, events: list[Event], peer: int, *, rdma: bool) -> None:
        self.events, self.peer, self.rdma = events, peer, rdma

    def tx_ack(self) -> None:
        """transport_p2p.cc:832, transport_ibverbs.cc:1736."""
        self.events.append(("post", self.peer, "Ack"))

    def rx_ack(self) -> None:
        """transport_p2p.cc:839, transport_ibverbs.cc:1745."""
        self.events.append(("wait", self.peer, "Ack"))

    def post(self, index: int) -> None:
        """transport_p2p.cc:949 of libochao-huawei/hcomm @ 8958adb: a notify besides."""
        self.events.append(("post", self.peer, f"extra notify {index}"))

    def wait(self, index: int) -> None:
        """transport_p2p.cc Wait, likewise."""
        self.events.append(("wait", self.peer, f"extra notify {index}"))

    def tx_data_signal(self) -> None:
        """transport_p2p.cc:813."""
        self.events.append(("post", self.peer, "DataSignal"))

    def rx_data_signal(self) -> None:
        """transport_p2p.cc:824."""
        self.events.append(("wait", self.peer, "DataSignal"))

    def post_fin_ack(self) -> None:
        """transport_base.cc:994 does nothing, transport_ibverbs.cc:2272 posts DataAck."""
        if self.rdma:
            self.events.append(("post", self.peer, "DataAck"))

    def wait_fin_ack(self) -> None:
        """transport_base.cc:1000, transport_ibverbs.cc:2279."""
        if self.rdma:
            self.events.append(("wait", self.peer, "DataAck"))

    def data_received_ack(self) -> None:
        """transport_p2p.cc:1262 four signals, transport_ibverbs.cc:1722 the DataAck of both."""
        if self.rdma:
            self.post_fin_ack()
            self.wait_fin_ack()
        else:
            handshake(self, self)

    def tx_async(self, slices: Sequence[Slice], *, reduce: bool = False) -> None:
        """transport_p2p.cc:1190 signals only, transport_ibverbs.cc:1279 writes before; reducing,
        component/sender.cc:50.
        """
        if self.rdma:
            self._move("rdma_write_reduce" if reduce else "rdma_write", slices)
        self.tx_data_signal()

    def rx_async(self, slices: Sequence[Slice], *, reduce: bool = False) -> None:
        """transport_p2p.cc:1239 waits and reads, transport_ibverbs.cc:1705 waits; reducing,
        component/reducer.cc:140.
        """
        self.rx_data_signal()
        if not self.rdma:
            self.read(slices, reduce=reduce)

    def read(self, slices: Sequence[Slice], *, reduce: bool = False) -> None:
        """What a template reads itself from the peer's memory."""
        self._move("read_reduce" if reduce else "read", slices)

    def move(self, kind: str, source: int, to: int, size: int) -> None:
        """One transfer that may change its place; none of no bytes."""
        places = (source,) if source == to else (source, to)
        if size:
            self.events.append((kind, self.peer, *places, size))

    def _move(self, kind: str, slices: Sequence[Slice]) -> None:
        self.events += [(kind, self.peer, one.offset, one.size) for one in slices if one.size]


def handshake(before: Link, after: Link) -> None:
    """alg_template_base.cc:934 ExecuteBarrier."""
    before.tx_ack()
    after.rx_ack()
    after.tx_data_signal()
    before.rx_data_signal()


def landed(events: Sequence[Event]) -> list[Event]:
    """component/sender.cc:39: what RDMA cannot reduce is written beside, and reduced from there;
    where beside is left out.
    """
    return [
        ("rdma_write", *event[1:3], event[-1]) if event[0].startswith("rdma_write") else event
        for event in events
    ]


class Member:
    """A rank of a plane whose links are all of one kind."""

    def __init__(self, rank: int, size: int, *, rdma: bool) -> None:
        self.rank, self.size, self.rdma = rank, size, rdma
        self.events: list[Event] = []

    def link(self, peer: int) -> Link:
        """The link to a peer, which may be counted beyond the last rank."""
        return Link(self.events, peer % self.size, rdma=self.rdma)


class Part(Member):
    """A rank among some others, which templates number from 0; its events name ranks."""

    def __init__(self, events: list[Event], ranks: Sequence[int], rank: int, *, rdma: bool) -> None:
        super().__init__(ranks.index(rank), len(ranks), rdma=rdma)
        self.events, self.ranks = events, ranks

    def link(self, peer: int) -> Link:
        """The link to a member of the part."""
        return Link(self.events, self.ranks[peer % self.size], rdma=self.rdma)


class Across(Part):
    """A rank among some that SDMA joins where `joined` has the same number for both."""

    def __init__(
        self, events: list[Event], ranks: Sequence[int], rank: int, joined: Sequence[int]
    ) -> None:
        super().__init__(events, ranks, rank, rdma=True)
        self.own, self.joined = rank, joined

    def link(self, peer: int) -> Link:
        """The link to a member."""
        to = self.ranks[peer % self.size]
        return Link(self.events, to, rdma=self.joined[to] != self.joined[self.own])


Template = Callable[..., None]


def run(template: Template, size: int, *, rdma: bool, **call: Any) -> list[list[Event]]:
    """Return the events of every rank; `call` is what all ranks know."""
    members = [Member(rank, size, rdma=rdma) for rank in range(size)]
    for member in members:
        if size > 1:
            template(member, **call)
    return [member.events for member in members]
