"""Pipeline: a mesh inside the servers and a ring between them, both at work in every step.

While a block travels on to the next server, the one before it is shared out inside this server. S
servers of n ranks; rank i of server j has slot j·n + i.

    all-gather, step s:      this rank has slot i of server j - s: its peers in the server read it,
                             server j + 1 gets it
    reduce-scatter, step s:  slot i of server j + 1 + s takes the parts of all peers in the server,
                             and what server j + 1 has reduced of it; the slot of the step before
                             goes to server j - 1
    all-reduce:              reduce-scatter, then all-gather, which sends to server j - 1, too

S steps each, in S - 1 of which both levels work. For N bytes in all, with steps of inter = α₁ +
N/(Sn)·β₁ and intra = α₀ + N/(Sn)·β₀, all-gather costs (S - 1)·max(inter, intra) + intra.
Reduce-scatter costs as much, with N/(Sn)·γ for every part, and twice the α: RDMA and SDMA may not
add to the same bytes at the same time, so each slot is reduced in two halves, the peers' parts of
one while the other comes in from the next server (`parts=1`, where SDMA goes all the way, needs no
halves). All-reduce costs both. Between servers each rank moves (S - 1)/(Sn) of the data, 1/n of
what a hierarchy without pipeline moves there.

All need a sub stream for each peer in the server, then one for the ring, n in all; with one server
n - 1. Main copies what is this rank's own. Links of the mesh are SDMA, those of the ring of any
kind. Reducing needs inline reduce: the peers add to one place, atomically, in an open order.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

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
    places = [_image(block, slots, slots) for block in blocks]
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
    *,
    parts: int = 2,
) -> Region:
    """Return where, in one of the blocks, the reduction of all ranks' slot j·n + i is.

    `slots` are read on this rank only. `blocks` are two or three exported places, the same at every
    rank, of the size of the largest slot; with three, the own part of the next slot is copied while
    this one is reduced.
    """
    seats, servers, depth = _Seats(mesh, ring), int(ring.size), len(blocks)

    def load(step: int) -> None:
        mine = seats.slot(seats.own, -step - 1)
        rank.main.copy(blocks[step % depth].head(slots[mine].size), slots[mine])

    for step in rank.main.steps("pipeline reduce-scatter", servers):
        before, block = blocks[(step - 1) % depth], blocks[step % depth]
        cuts = slots.parts(parts if step else 1)
        if step == 0 or depth == 2:
            load(step)
        for part, cut in enumerate(cuts):
            place, other = _image(block, slots, cut), cuts[(part + 1) % len(cuts)]
            with rank.fork(seats.n if step else seats.n - 1) as subs:
                if depth > 2 and part == 0 and step < servers - 1:
                    load(step + 1)
                for sub, (seat, link) in zip(subs, seats.peers, strict=False):
                    theirs = seats.slot(seat, -step - 1)
                    _add(sub, link, cut[theirs], place[theirs])
                if step:
                    done, mine = (seats.slot(seats.own, -step - k) for k in (0, 1))
                    here, there = (_image(b, slots, other) for b in (before, block))
                    _relay(subs[-1], ring, -1, _Move(here, there, done, mine), reduce=True)
    return blocks[(servers - 1) % depth].head(slots[seats.own].size)


def pipeline_all_reduce(
    rank: Rank[Any, Any],
    mesh: Plane,
    ring: Plane,
    inputs: Chunks,
    outputs: Chunks,
    blocks: Sequence[Region],
    *,
    parts: int = 2,
) -> None:
    """Fill `outputs` with the reduction of all ranks' `inputs`, S·n chunks each, cut alike.

    Both are touched on this rank only. `blocks` are two exported places, the same at every rank, of
    the size of the largest chunk.
    """
    pipeline_reduce_scatter(rank, mesh, ring, inputs, blocks, parts=parts)
    held, other = blocks if int(ring.size) % 2 else reversed(blocks)
    pipeline_all_gather(rank, mesh, ring, outputs, (held, other), backwards=True)


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


def _image(block: Region, slots: Chunks, parts: Chunks) -> Chunks:
    """Return where parts of the slots lie while a slot is in the block."""
    return Chunks(
        block.buffer, int(block.offset) + parts.offsets - slots.offsets, parts.sizes, parts.row
    )


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


def _relay(stream: Stream, ring: Plane, way: int, move: _Move, *, reduce: bool = False) -> None:
    """Send to the next server, or to the previous one, and receive from the other side: an
    exchange() of data that changes its place.
    """
    to, frm = (ring.right, ring.left) if way > 0 else (ring.left, ring.right)
    transfer = stream.reduce if reduce else stream.copy
    here, there, sends, gets = move
    if not to.rdma:
        to.tx_ack(stream)  # you may read mine
    if frm.rdma:
        frm.tx_ack(stream)  # you may write into mine
    else:
        frm.rx_ack(stream)
        transfer(there[gets], frm.remote(here[gets]))
        frm.tx_data_signal(stream)
    if to.rdma:
        to.rx_ack(stream)
        transfer(to.remote(there[sends]), here[sends])
        to.tx_data_signal(stream)
    if frm.rdma:
        frm.rx_data_signal(stream)
        frm.tx_data_ack(stream)
    if to.rdma:
        to.rx_data_ack(stream)
    else:
        to.rx_data_signal(stream)
