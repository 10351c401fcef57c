"""Pipeline: a mesh inside the servers and a ring between them, both at work in every step.

While a block travels on to the next server, the one before it is shared out inside this server. S
servers of n ranks; rank i of server j has slot j·n + i.

    all-gather, step s:      this rank has slot i of server j - s: its peers in the server read it,
                             server j + 1 gets it
    reduce-scatter, step s:  slot i of server j + 1 + s takes the parts of all peers in the server,
                             while what server j + 1 has reduced of it lands beside; the slot of the
                             step before is joined with what had landed of it, and goes to server
                             j - 1
    all-reduce:              reduce-scatter, then all-gather, which sends to server j - 1, too

S steps each, in S - 1 of which both levels work. For N bytes in all, with steps of inter = α₁ +
N/(Sn)·β₁ and intra = α₀ + N/(Sn)·β₀, all-gather costs (S - 1)·max(inter, intra) + intra.
Reduce-scatter costs as much, with N/(Sn)·γ in both sorts of steps, and where intra is the longer
one N/(Sn)·γ once more, because the last slot is joined after the last step. All-reduce costs both.
Between servers each rank moves (S - 1)/(Sn) of the data, 1/n of what a hierarchy without pipeline
moves there.

All need a sub stream for each peer in the server, then one for the ring, n in all; with one server
n - 1. Main copies what is this rank's own. Links of the mesh are SDMA, those of the ring of any
kind. Peers add to one place, atomically, in an open order, so reducing needs inline reduce. Raw
data lands beside, not in that place: RDMA and SDMA may not add to the same bytes at the same time.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from hccl_py.orchestration import Chunks, Link, Plane, Rank, Region, Stream
from hccl_py.values import RankInt

__all__ = ["pipeline_all_gather", "pipeline_all_reduce", "pipeline_reduce_scatter"]


def pipeline_all_gather(
    rank: Rank[Any, Any],
    mesh: Plane,
    ring: Plane,
    slots: Chunks,
    blocks: Sequence[Region],
    *,
    backwards: bool = False,
) -> None:
    """Fill all `slots`; this rank's own begins in `blocks[0]`.

    `slots` are touched on this rank only. `blocks` are two exported places, the same at every rank,
    of the size of the largest slot. `backwards` sends to the previous server, not to the next one.
    """
    seats, servers, way = _Seats(mesh, ring), int(ring.size), -1 if backwards else 1
    places = [_image(block, slots) for block in blocks]
    for step in rank.main.steps("pipeline all-gather", servers):
        here, there = places[step % 2], places[(step + 1) % 2]
        mine, following = (seats.slot(seats.own, way * (step + k)) for k in (0, 1))
        more = step < servers - 1
        with rank.fork(seats.n if more else seats.n - 1) as subs:
            rank.main.copy(slots[mine], here[mine])
            for sub, (seat, link) in zip(subs, seats.peers, strict=False):
                theirs = seats.slot(seat, way * step)
                _read(sub, link, slots[theirs], here[theirs])
            if more:
                _relay(subs[-1], ring, way, _Move(here, there, mine, following))


def pipeline_reduce_scatter(
    rank: Rank[Any, Any],
    mesh: Plane,
    ring: Plane,
    slots: Chunks,
    blocks: Sequence[Region],
    land: Region,
) -> Region:
    """Return where, in one of the blocks, the reduction of all ranks' slot j·n + i is.

    `slots` are read on this rank only. `blocks` are three exported places, the same at every rank,
    of the size of the largest slot, and `land` is one more.
    """
    seats, servers = _Seats(mesh, ring), int(ring.size)
    places, landed = [_image(block, slots) for block in blocks], _image(land, slots)

    def own_place(step: int) -> Region:
        return places[step % len(blocks)][seats.slot(seats.own, -step - 1)]

    def load(step: int) -> None:
        rank.main.copy(own_place(step), slots[seats.slot(seats.own, -step - 1)])

    def join(stream: Stream, step: int) -> None:
        stream.reduce(own_place(step), landed[seats.slot(seats.own, -step - 1)])

    load(0)
    for step in rank.main.steps("pipeline reduce-scatter", servers):
        here, before = (places[(step - k) % len(blocks)] for k in (0, 1))
        with rank.fork(seats.n if step else seats.n - 1) as subs:
            if step < servers - 1:
                load(step + 1)
            for sub, (seat, link) in zip(subs, seats.peers, strict=False):
                theirs = seats.slot(seat, -step - 1)
                _add(sub, link, slots[theirs], here[theirs])
            if step > 1:
                join(subs[-1], step - 1)
            if step:
                sends, gets = (seats.slot(seats.own, -step - k) for k in (0, 1))
                _relay(subs[-1], ring, -1, _Move(before, landed, sends, gets))
    if servers > 1:
        with rank.main.phase("pipeline reduce-scatter, last join"):
            join(rank.main, servers - 1)
    return own_place(servers - 1)


def pipeline_all_reduce(
    rank: Rank[Any, Any],
    mesh: Plane,
    ring: Plane,
    inputs: Chunks,
    outputs: Chunks,
    blocks: Sequence[Region],
    land: Region,
) -> None:
    """Fill `outputs` with the reduction of all ranks' `inputs`, S·n chunks each, cut alike.

    Both are touched on this rank only. `blocks` are three exported places, the same at every rank,
    of the size of the largest chunk, and `land` is one more.
    """
    pipeline_reduce_scatter(rank, mesh, ring, inputs, blocks, land)
    held = (int(ring.size) - 1) % len(blocks)
    both = blocks[held], blocks[held - 1]
    pipeline_all_gather(rank, mesh, ring, outputs, both, backwards=True)


class _Seats:
    """The slots of the members of this server: of this rank, and of its peers with their links."""

    def __init__(self, mesh: Plane, ring: Plane) -> None:
        self.n = int(mesh.size)
        self.total = self.n * int(ring.size)
        first = ring.id * self.n
        self.own: RankInt = first + mesh.id
        self.peers: list[tuple[RankInt, Link]] = [
            (first + index, link) for index, link in mesh.others()
        ]

    def slot(self, seat: RankInt, back: int) -> RankInt:
        """Return the slot of the same seat so many servers back."""
        return (seat - back * self.n) % self.total


def _image(block: Region, slots: Chunks) -> Chunks:
    """Return the slots as they lie one at a time in the block: each at its beginning."""
    start = int(block.offset)
    return Chunks(block.buffer, np.full_like(slots.offsets, start), slots.sizes, slots.row)


def _read(stream: Stream, link: Link, slot: Region, block: Region) -> None:
    """Read the peer's block while it reads this rank's."""
    link.tx_ack(stream)  # you may read my block
    link.rx_ack(stream)
    stream.copy(slot, link.remote(block))
    link.tx_data_signal(stream)  # I have read yours
    link.rx_data_signal(stream)


def _add(stream: Stream, link: Link, slot: Region, block: Region) -> None:
    """Add this rank's part to the peer's block while the peer adds to this rank's."""
    link.tx_ack(stream)  # my own part is in my block: you may add yours
    link.rx_ack(stream)
    stream.reduce(link.remote(block), slot)
    link.tx_data_signal(stream)  # you have got mine
    link.rx_data_signal(stream)


class _Move(NamedTuple):
    """Chunks go from one place here to another one there: number `sends` away, `gets` hither."""

    here: Chunks
    there: Chunks
    sends: RankInt
    gets: RankInt


def _relay(stream: Stream, ring: Plane, way: int, move: _Move) -> None:
    """Send to the next server, or to the previous one, and receive from the other side: an
    exchange() of data that changes its place.
    """
    to, frm = (ring.right, ring.left) if way > 0 else (ring.left, ring.right)
    here, there, sends, gets = move
    if not to.rdma:
        to.tx_ack(stream)  # you may read mine
    if frm.rdma:
        frm.tx_ack(stream)  # you may write into mine
    else:
        frm.rx_ack(stream)
        stream.copy(there[gets], frm.remote(here[gets]))
        frm.tx_data_signal(stream)
    if to.rdma:
        to.rx_ack(stream)
        stream.copy(to.remote(there[sends]), here[sends])
        to.tx_data_signal(stream)
    if frm.rdma:
        frm.rx_data_signal(stream)
        frm.tx_data_ack(stream)
    if to.rdma:
        to.rx_data_ack(stream)
    else:
        to.rx_data_signal(stream)
