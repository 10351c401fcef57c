"""Base of both forms of the two-level all-to-all: its streams, and the exchange between servers."""

from __future__ import annotations

from hccl_executors.all_to_all.two_levels import ServerGrid, levels_of
from hccl_executors.templates.pairwise import Received, Sent, rx_parts, tx_parts
from hccl_executors.templates.signals import barrier
from hccl_py.orchestration import Link, Region, Stream
from hccl_py.plugins.executor import AnyRank


class Pipelined:
    """A rank's streams: one for each device of the server, in whose own place is the one for other
    servers.

    HCCL keeps peers in a hash table that it walks from the last one added to the first, so that it
    wakes their streams from the last to the first.
    """

    def __init__(self, rank: AnyRank, shape: ServerGrid) -> None:
        self.rank, self.shape = rank, shape
        self._inner, self._outer = map(rank.plane, levels_of(rank))
        self._own = int(shape.d)
        self.peers = [k for k in reversed(range(shape.devices)) if k != self._own]
        self._inside: list[Stream] = []

    def start_between(self) -> None:
        """Let the stream for other servers go on."""
        self.rank.wake(self._own)

    def wait_between(self) -> None:
        """Wait for the stream for other servers."""
        self.rank.join(self._own)

    def start_inside(self) -> None:
        """Let the streams for the server go on."""
        self._inside = [self.rank.wake(peer) for peer in self.peers]

    def wait_inside(self) -> None:
        """Wait for the streams for the server."""
        for stream in self._inside:
            self.rank.join(stream)

    def read_inside(self, places: list[tuple[Region, Region]]) -> None:
        """Read from every peer of the server while it reads from this rank: pairs of a place of its
        memory and one of this rank's.
        """
        for stream, peer, (there, here) in zip(self._inside, self.peers, places, strict=True):
            link: Link = self._inner[peer]
            link.tx_ack(stream)
            link.rx_ack(stream)
            stream.copy(here, link.remote(there))
            link.tx_data_signal(stream)
            link.rx_data_signal(stream)

    def between(self, step: int, sent: Sent, received: Received) -> None:
        """Send a block to the server that is step + 1 further and receive one from the server that
        is as far before.
        """
        shape, stream = self.shape, self.rank.subs[self._own]
        frm = self._outer[(shape.s - 1 - step) % shape.servers]
        to = self._outer[(shape.s + 1 + step) % shape.servers]
        frm.tx_ack(stream)
        to.rx_ack(stream)
        tx_parts(stream, to, sent)
        rx_parts(stream, frm, received)
        if frm.rdma:
            frm.tx_data_ack(stream)
        if to.rdma:
            to.rx_data_ack(stream)
        barrier(stream, frm, to)
