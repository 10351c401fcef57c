"""An exchange: every rank has data that belongs to another one, hands it over, and gets its own.

With n devices in each of S servers in each of P superpods, blocks of user memory that lie side by
side are d·S·P + s·P + p for device d of server s of superpod p. So the rings in a server and the
planes between them leave rank (p, s, d) with the data of rank d·S·P + s·P + p (in a pipeline, with
that of rank d·S + s of its superpod): a reduce-scatter hands it to that rank, an all-gather begins
with that rank's.

Neighbours in a server use its ring's transports, which reach user memory; all others have
transports of their own on plane `flat`, which reach CCL buffers. So data may have to be put into
the memory that the peer reaches first. HCCL requests these for neighbours, too,
and has all of them over RDMA where some exchange leaves a superpod.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hccl_py.orchestration import Link, Region, Stream
from hccl_py.plugins.executor import AnyRank, PlaneRequest, Topology
from hccl_py.values import IntArray, PerRank, RankInt, values_of


@dataclass(frozen=True)
class Owners:
    """Holders and owners of data after the rings: of all ranks, or of each superpod by itself."""

    pods: int
    servers: int
    devices: int

    @staticmethod
    def of(topology: Topology, *, by_pod: bool = False) -> Owners:
        """Return the places of a topology of servers and superpods alike."""
        pods = len(topology.superpods)
        servers = len(topology.servers) // pods
        return Owners(1 if by_pod else pods, servers, topology.size // pods // servers)

    @cached_property
    def owners(self) -> IntArray:
        """The rank whose data each rank holds; for the first superpod only, where each is by
        itself.
        """
        pods, servers, devices = self.pods, self.servers, self.devices
        ranks = np.arange(pods * servers * devices)
        server, d = np.divmod(ranks, devices)
        p, s = np.divmod(server, servers)
        found: IntArray = (d * servers + s) * pods + p
        return found

    @cached_property
    def holders(self) -> IntArray:
        """The holder of each rank's data."""
        return np.argsort(self.owners)

    def __call__(self, rank: int, ranks: int) -> list[int]:
        """Return both peers of a rank of any superpod."""
        first, at = divmod(rank, len(self.owners))
        peers = {int(self.owners[at]), int(self.holders[at])} - {at}
        return sorted(first * len(self.owners) + peer for peer in peers)

    def request(self, *, rdma: bool = False) -> PlaneRequest:
        """Return the transports that an exchange needs, if asked for all of them over RDMA."""
        return PlaneRequest("flat", self, rdma=rdma)


@dataclass(frozen=True)
class Peer:
    """The rank that is sent to, or received from: its link, its place, whether it is a neighbour in
    the server, whose user memory is in reach.
    """

    link: Link
    server: RankInt
    pod: RankInt
    device: RankInt
    is_near: bool


class OwnerExchange:
    """An exchange as a rank sees it; `to_owner` tells its direction."""

    def __init__(self, rank: AnyRank, places: Owners, *, to_owner: bool) -> None:
        self.rank, self.places, self.main = rank, places, rank.main
        there, back = places.owners, places.holders
        self._to, self._frm = (there, back) if to_owner else (back, there)

    @property
    def moves(self) -> bool:
        """True if this rank holds another one's data."""
        return bool(self._peer(self._to) != self.rank.id)

    @cached_property
    def to(self) -> Peer:
        """The rank that this one sends to."""
        return self._at(self._peer(self._to))

    @cached_property
    def frm(self) -> Peer:
        """The rank that this one receives from."""
        return self._at(self._peer(self._frm))

    def begin(self) -> None:
        """Let the sender write here, and hear that this rank may write."""
        self.frm.link.tx_ack(self.main)
        self.to.link.rx_ack(self.main)

    def send(self, data: Region, there: Region) -> None:
        """Let the peer have `data`: over SDMA it fetches that, over RDMA it gets it `there`, where
        a peer's memory has the same buffers and places.
        """
        send(self.main, self.to.link, data, there)

    def receive(self, theirs: Region, into: Region) -> None:
        """Fetch what the peer has in `theirs`, over RDMA it has come."""
        receive(self.main, self.frm.link, theirs, into)

    def end(self) -> None:
        """Hear that all has been read."""
        self.frm.link.tx_ack(self.main)
        self.to.link.rx_ack(self.main)
        self.to.link.tx_data_signal(self.main)
        self.frm.link.rx_data_signal(self.main)

    def _peer(self, table: IntArray) -> RankInt:
        ranks = values_of(self.rank.id)
        first, at = np.divmod(ranks, len(table))
        return PerRank.of(first * len(table) + table[at])

    def _at(self, peer: RankInt) -> Peer:
        places, rank = self.places, self.rank
        n = places.devices
        server, device = peer // n, peer % n
        distance = (device - rank.level0.id) % n
        is_near = bool(server == rank.id // n) and (bool(distance == 1) or bool(distance == n - 1))
        link = rank.level0[device] if is_near else rank.flat[peer]
        pods, s = server // places.servers, server % places.servers
        return Peer(link, s, pods, device, is_near)


def send(stream: Stream, to: Link, data: Region, there: Region) -> None:
    """HCCL's TxAsync, which writes over RDMA, and posts DataSignal."""
    if to.rdma:
        stream.copy(to.remote(there), data)
    to.tx_data_signal(stream)


def receive(stream: Stream, frm: Link, theirs: Region, into: Region) -> None:
    """HCCL's RxAsync, which waits for DataSignal, and reads over SDMA."""
    frm.rx_data_signal(stream)
    if not frm.rdma:
        stream.copy(into, frm.remote(theirs))
