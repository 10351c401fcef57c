"""Pairwise: in step k a rank sends to the k-th rank after it and receives from the k-th before it.

    own part:             a local copy
    step k = 1 .. p - 1:  to r + k, from r - k (mod p), over SDMA or RDMA

Every step is a permutation, so no link and no rank is used twice at a time. Cost for p ranks with
n(i, j) bytes from rank i to rank j: (p - 1)α + β Σ_k max_i n(i, (i + k) mod p); with the same n/p
everywhere (p - 1)α + (p - 1)/p·nβ.

With a stream for every peer, all exchanges run at once: α + max n(i, j)·β where links are parallel.
Source: HCCL's AlltoAllVPairWise, BCopy and ZCopy.

Where parts lie is up to the caller. SDMA pulls from `Received.there`, RDMA pushes to `Sent.there`:
both are places in a peer's memory and may differ from peer to peer, other than in exchange().
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from hccl_py.orchestration import Link, Plane, Rank, Region, Stream
from hccl_py.values import RankInt

__all__ = [
    "PeerParts",
    "Received",
    "Sent",
    "mesh_all_to_all",
    "pairwise_all_to_all",
    "push",
    "swap",
]

Pieces = Sequence[Region]


class Sent(NamedTuple):
    """What goes to a peer: the data, copied `here` first unless it lies there, where peers reach
    it, and the place `there`, in the peer's memory, that a push fills.
    """

    data: Pieces
    here: Pieces
    there: Pieces


class Received(NamedTuple):
    """What comes from a peer: the place `there`, in the peer's memory, that a pull reads, the place
    `here` that a push fills, and where the data belongs, copied unless it is `here` already.
    """

    there: Pieces
    here: Pieces
    data: Pieces


class PeerParts(Protocol):
    """Where the parts of an all-to-all lie, by index of the peer in the plane."""

    def sent(self, to: RankInt) -> Sent:
        """Return the part for a peer."""

    def received(self, frm: RankInt) -> Received:
        """Return the part from a peer."""

    def keep(self, stream: Stream) -> None:
        """Copy the part of the rank itself."""


def pairwise_all_to_all(rank: Rank[Any, Any], plane: Plane, parts: PeerParts) -> None:
    """Exchange parts with all members, one after the other."""
    size = int(plane.size)
    parts.keep(rank.main)
    for step in rank.main.steps("pairwise", size - 1):
        to, frm = (plane.id + 1 + step) % size, (plane.id - 1 - step) % size
        swap(rank.main, plane[to], plane[frm], parts.sent(to), parts.received(frm))


def mesh_all_to_all(rank: Rank[Any, Any], plane: Plane, parts: PeerParts, subs: int) -> None:
    """Exchange parts with all members at once: a sub stream for each, or for each but one, which
    main takes.
    """
    with rank.main.phase("mesh"), rank.fork(subs) as streams:
        parts.keep(rank.main)
        for stream, (peer, link) in zip((*streams, rank.main), plane.others(), strict=False):
            swap(stream, link, link, parts.sent(peer), parts.received(peer))


def swap(
    stream: Stream, to: Link | None, frm: Link | None, sent: Sent | None, received: Received | None
) -> None:
    """Send over `to` and receive over `frm`, over links of any kind; one-sided where either is
    None.
    """
    if to is not None and sent is not None:
        if sent.here is not sent.data:
            stream.copy(sent.here, sent.data)
        if not to.rdma:
            to.tx_ack(stream)  # you may read mine
    if frm is not None and received is not None:
        if frm.rdma:
            frm.tx_ack(stream)  # you may write into mine
        else:
            frm.rx_ack(stream)
            stream.copy(received.data, [frm.remote(place) for place in received.there])
            frm.tx_data_signal(stream)
    if to is not None and sent is not None and to.rdma:
        to.rx_ack(stream)
        stream.copy([to.remote(place) for place in sent.there], sent.here)
        to.tx_data_signal(stream)
    if frm is not None and received is not None and frm.rdma:
        frm.rx_data_signal(stream)
        if received.here is not received.data:
            stream.copy(received.data, received.here)
        frm.tx_data_ack(stream)
    if to is not None:
        if to.rdma:
            to.rx_data_ack(stream)
        else:
            to.rx_data_signal(stream)


def push(stream: Stream, link: Link, data: Pieces, there: Pieces) -> None:
    """Write data into a peer's memory while the peer writes into this rank's, over a link of any
    kind.
    """
    link.tx_ack(stream)  # you may write into mine
    link.rx_ack(stream)
    stream.copy([link.remote(place) for place in there], data)
    link.tx_data_signal(stream)
    link.rx_data_signal(stream)
    if link.rdma:
        link.tx_data_ack(stream)
        link.rx_data_ack(stream)
