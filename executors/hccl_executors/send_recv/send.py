"""SendExecutor: one message from each rank to at most one other."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import numpy as np

from hccl_executors.send_recv.messages import Incoming, Mailbox, Outgoing, peers_of, ways_of
from hccl_executors.sources import like_april
from hccl_py.orchestration import Link
from hccl_py.plugins.executor import (
    AnyRank,
    BaseExecutor,
    OpParam,
    PlaneRequest,
    RankView,
    ResourceRequest,
    Topology,
)
from hccl_py.values import PerRank, values_of

PLANES = {1: "flat", -1: "back"}
"""Messages to higher and to lower ranks have links of their own, as every message has in HCCL."""

CHUNK = 1 << 30
"""Bytes that go at once."""

Message = TypeVar("Message", Outgoing, Incoming)


class SendExecutor(BaseExecutor):
    """Send and Recv: HCCL's SendExecutor at the sender and its ReceiveExecutor at the receiver, as
    a recording holds both ends.

    Op-base mode: the sender copies to its CCL_In; over SDMA the receiver reads that, over RDMA it
    is pushed; it lands in CCL_Out and is copied to the output, or is read right there where a
    superpod has no other links. One transfer from input to output in graph mode.

        sender     Ack, Ack, write (RDMA), DataSignal to, DataSignal from
        receiver   Ack, Ack, DataSignal from, read (SDMA), DataSignal to

    A rank that sends one message and receives another posts for both before it waits, so that rings
    do not block; in HCCL these are two calls.
    """

    op = "send_recv"
    algorithm = "level0:NA"
    fidelity = like_april(
        "coll_send_receive/coll_send_executor",
        "coll_send_receive/coll_receive_executor",
        "temp_send_recv/send_receive",
    )

    def suits(self, op: OpParam, topology: Topology) -> bool:
        return True

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """Links to the peers; a round fills a CCL buffer."""
        return ResourceRequest(
            planes=tuple(
                PlaneRequest(PLANES[way], peers_of(op, rank.size, way))
                for way in ways_of(op, rank.size)
            ),
            max_count=rank.ccl_bytes // op.unit,
        )

    def orchestrate(self, op: OpParam, rank: AnyRank) -> None:
        box = Mailbox(op, rank)
        box.copy_own()
        sends, receives = _Sender.all(rank, box), _Receiver.all(rank, box)
        for k in range(max(len(sends), len(receives))):
            both: list[_Sender | _Receiver] = [*sends[k : k + 1], *receives[k : k + 1]]
            for end in both:
                end.begin()
            for end in both:
                end.go()
            for end in both:
                end.finish()


class _Sender:
    """The sender of one chunk."""

    def __init__(self, rank: AnyRank, link: Link, sent: Outgoing) -> None:
        self._main, self._link, self._sent = rank.main, link, sent

    @staticmethod
    def all(rank: AnyRank, box: Mailbox) -> list[_Sender]:
        """Return a sender for each chunk of the message, if there is one."""
        if not box.count(box.sends):
            return []
        peer, sent = box.sent(0)
        link = rank.plane(PLANES[1 if peer > rank.id else -1])[peer]
        return [_Sender(rank, link, chunk) for chunk in _chunks(sent)]

    def begin(self) -> None:
        if self._sent.here is not self._sent.data:
            self._main.copy(self._sent.here, self._sent.data)
        self._link.tx_ack(self._main)

    def go(self) -> None:
        self._link.rx_ack(self._main)
        if self._link.rdma:
            self._main.copy(self._link.remote(self._sent.there), self._sent.here)
        self._link.tx_data_signal(self._main)

    def finish(self) -> None:
        self._link.rx_data_signal(self._main)


class _Receiver:
    """The receiver of one chunk."""

    def __init__(self, rank: AnyRank, link: Link, received: Incoming) -> None:
        self._main, self._link = rank.main, link
        self._received = received
        topology = rank.topology
        if topology.product.superpod_servers and not topology.has_rdma:
            self._received = received._replace(here=received.data)

    @staticmethod
    def all(rank: AnyRank, box: Mailbox) -> list[_Receiver]:
        """Return a receiver for each chunk of the message, if there is one."""
        if not box.count(box.receives):
            return []
        peer, received = box.received(0)
        link = rank.plane(PLANES[1 if peer < rank.id else -1])[peer]
        return [_Receiver(rank, link, chunk) for chunk in _chunks(received)]

    def begin(self) -> None:
        self._link.tx_ack(self._main)

    def go(self) -> None:
        self._link.rx_ack(self._main)
        self._link.rx_data_signal(self._main)
        if not self._link.rdma:
            self._main.copy(self._received.here, self._link.remote(self._received.there))
        self._link.tx_data_signal(self._main)

    def finish(self) -> None:
        if self._received.here is not self._received.data:
            self._main.copy(self._received.data, self._received.here)


def _chunks(message: Message) -> Iterator[Message]:
    """Yield the pieces that go at once; an empty message has none."""
    size = values_of(message.data.size)
    for number in range(int(PerRank.of(-(-size // CHUNK)))):
        start = number * CHUNK
        length = PerRank.of(np.minimum(size - start, CHUNK))
        cut = {id(place): place[start : start + length] for place in message}
        yield type(message)(*(cut[id(place)] for place in message))
