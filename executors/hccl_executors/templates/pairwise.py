"""Pairwise: in step k a rank sends to the k-th rank after it and receives from the k-th before it.

    own part:             a local copy
    step k = 1 .. p - 1:  to r + k, from r - k (mod p), over SDMA or RDMA

Every step is a permutation, so no link and no rank is used twice at a time. A step with `prev` and
`next`, over links of any kind:

    Ack to prev, from next       you may write into mine; not used over SDMA
    write (RDMA), DataSignal     to next: it is there, or may be read
    DataSignal, read (SDMA)      from prev
    Ack to prev, from next       I have it
    DataSignal to next, from prev

so both ends meet before and after. Cost for p ranks with n(i, j) bytes from rank i to rank j:
2(p - 1)α + β Σ_k max_i n(i, (i + k) mod p); with the same n/p everywhere 2(p - 1)α + (p - 1)/p·nβ.

Two ways for the data. *ZCopy*: parts lie in exported memory and go from place to place. *BCopy*: a
piece as large as a CCL buffer is copied to CCL_In, goes to the peer's CCL_Out, and is copied from
there; a step takes as many of these exchanges as the larger of its two parts has pieces, and none
for empty parts.

With a stream for every peer, all exchanges run at once: 2α + max n(i, j)·β where links are
parallel.

Source: HCCL's AlltoAllVPairWise, AlltoAllVStagedPairwise and AlltoAllVStagedMesh.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from hccl_executors.templates.signals import barrier
from hccl_py.enums import Buffer
from hccl_py.orchestration import Link, Plane, Region, Stream
from hccl_py.plugins.executor import AnyRank
from hccl_py.values import PerRank, RankInt, values_of

Pieces = Sequence[Region]
"""Where parts lie, in order."""


class Sent(NamedTuple):
    """A part for a peer: its place here, and its destination in the peer's memory."""

    here: Pieces
    there: Pieces


class Received(NamedTuple):
    """A part from a peer: its place in the peer's memory, and its destination here."""

    there: Pieces
    here: Pieces


class PeerParts(Protocol):
    """Places of the parts of an all-to-all, by index of the peer in the plane."""

    def sent(self, to: RankInt) -> Sent:
        """Return the part for a peer."""

    def received(self, frm: RankInt) -> Received:
        """Return the part from a peer."""

    def keep(self, stream: Stream) -> None:
        """Copy the part of the rank itself."""


def pairwise_all_to_all(rank: AnyRank, plane: Plane, parts: PeerParts) -> None:
    """Exchange parts with all members, one after the other, from place to place: ZCopy."""
    parts.keep(rank.main)
    size = int(plane.size)
    for step in rank.main.steps("pairwise", size - 1):
        to, frm = (plane.id + 1 + step) % size, (plane.id - 1 - step) % size
        _exchange(rank.main, plane[frm], plane[to], parts.received(frm), parts.sent(to))
        barrier(rank.main, plane[frm], plane[to])


def mesh_all_to_all(rank: AnyRank, plane: Plane, parts: PeerParts) -> None:
    """Exchange parts with all members at once, from place to place: main with the next member, a
    sub stream with each of the others.
    """
    parts.keep(rank.main)
    size = int(plane.size)
    with rank.main.phase("mesh"), rank.fork(max(size - 2, 0)) as subs:
        for k, stream in enumerate([rank.main, *subs][: size - 1], start=1):
            peer = (plane.id + k) % size
            link = plane[peer]
            _exchange(stream, link, link, parts.received(peer), parts.sent(peer))
            barrier(stream, link, link)


def pairwise_in_pieces(rank: AnyRank, plane: Plane, parts: PeerParts) -> None:
    """Exchange parts with all members, one after the other, through the CCL buffers: BCopy."""
    parts.keep(rank.main)
    size, most = int(plane.size), rank.ccl_bytes
    for step in rank.main.steps("pairwise", size - 1):
        to, frm = (plane.id + 1 + step) % size, (plane.id - 1 - step) % size
        sent, received = parts.sent(to).here, parts.received(frm).here
        number = _pieces(sent, most), _pieces(received, most)
        for k in range(max(number)):
            tx = plane[to] if k < number[0] else None
            rx = plane[frm] if k < number[1] else None
            _through_buffers(rank, rx, tx, _piece(received, k, most), _piece(sent, k, most))


def tx_parts(stream: Stream, to: Link, sent: Sent) -> None:
    """Let the peer have what is sent: post DataSignal, over RDMA after writing it."""
    if to.rdma:
        stream.copy([to.remote(place) for place in sent.there], sent.here)
    to.tx_data_signal(stream)


def rx_parts(stream: Stream, frm: Link, received: Received) -> None:
    """Wait for the peer's DataSignal, over SDMA read what it sends."""
    frm.rx_data_signal(stream)
    if not frm.rdma:
        stream.copy(received.here, [frm.remote(place) for place in received.there])


def _exchange(stream: Stream, prev: Link, following: Link, received: Received, sent: Sent) -> None:
    prev.tx_ack(stream)
    following.rx_ack(stream)
    tx_parts(stream, following, sent)
    rx_parts(stream, prev, received)


class _StagedPiece(NamedTuple):
    """A piece of some parts: where it lies among them, and in a CCL buffer; all of its bytes."""

    data: Pieces
    staged: Pieces
    size: RankInt

    def whole(self, buffer: Buffer) -> Pieces:
        return [Region(buffer, 0, self.size)]

    def within(self, buffer: Buffer) -> Pieces:
        return [Region(buffer, place.offset, place.size) for place in self.staged]


def _through_buffers(
    rank: AnyRank, rx: Link | None, tx: Link | None, received: _StagedPiece, sent: _StagedPiece
) -> None:
    """Exchange one piece; without a link there is nothing to receive, or to send."""
    main, into, out_of = rank.main, Buffer.CCL_OUT, Buffer.CCL_IN
    if rx is not None:
        rx.tx_ack(main)
    if tx is not None:
        tx.rx_ack(main)
        main.copy(sent.within(out_of), sent.data)
        tx_parts(main, tx, Sent(sent.whole(out_of), sent.whole(into)))
    if rx is not None:
        rx_parts(main, rx, Received(received.whole(out_of), received.whole(into)))
        main.copy(received.data, received.within(into))
    barrier(main, rx, tx)


def _pieces(parts: Pieces, most: int) -> int:
    """Return the number of pieces of so many bytes in both parts together; splits the batch."""
    return int(PerRank.of(-(-sum(values_of(part.size) for part in parts) // most)))


def _piece(parts: Pieces, number: int, most: int) -> _StagedPiece:
    """Return one of the pieces: bytes number·most .. of parts that are seen as one after the
    other.
    """
    data, staged, begin, low = [], [], 0, number * most
    for part in parts:
        end = begin + values_of(part.size)
        first, last = np.clip(begin, low, low + most), np.clip(end, low, low + most)
        size = PerRank.of(last - first)
        offset = values_of(part.offset) + np.clip(first - begin, 0, end - begin)
        data.append(Region(part.buffer, PerRank.of(offset), size))
        staged.append(Region(Buffer.CCL_IN, PerRank.of(first - low), size))
        begin = end
    total = PerRank.of(np.clip(begin, low, low + most) - low)
    return _StagedPiece(data, staged, total)
