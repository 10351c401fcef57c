"""The continuous pipeline: parts for other servers are staged, sent, and read inside, in turns.

A block is n parts, for all devices of another server. In turn i, all at once,

    main    stage the block for turn i + 1                  parts to their slots of CCL_In
    wire    exchange the block that was staged in turn i - 1     CCL_In to CCL_Out of equal devices
    lanes   read what came in turn i - 1                    CCL_Out of a neighbour to the output

A CCL buffer has a slot for every rank, two between two servers, which take turns then, and at its
end room for the counts of all ranks. Parts larger than
a slot go in pieces: S - 1 turns for the first piece of all blocks, S - 1 for the second, without a
break. With the first block of a piece, parts for the server itself are written to CCL_Out of their
receivers, which copy them to the output in the turn after that.

Every server takes as many pieces as the largest part that one of its ranks sends or receives; who
has nothing for a peer in another server says nothing to it. Lanes meet their peers before and after
each turn in which they have work, and main waits for both, so that all lanes of a server start to
move at the same time.

Source: HCCL's AlltoallvContinuousPipeline. The counts of all ranks are known here, as in HCCL's own
system tests (alltoallv_continuous_pipeline.cc:36-57); elsewhere its ranks tell each other theirs in
the first turn, whose lanes meet for it, and the host waits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hccl_executors.all_to_all.layout import BLOCK_ALIGN, PartTable, UserParts
from hccl_executors.all_to_all.two_levels import ServerGrid, levels_of
from hccl_executors.templates.pairwise import Pieces, Received, Sent
from hccl_py.enums import Buffer
from hccl_py.errors import OrchestrationError
from hccl_py.orchestration import Link, Plane, Region, Stream
from hccl_py.orchestration.region import SLICE_ALIGN
from hccl_py.plugins.executor import AnyRank
from hccl_py.values import PerRank, RankInt, values_of

LANES = 8
"""Streams, at most, on which a rank talks to the peers of its server."""

COUNT_BYTES = 8
"""Bytes of a count; every rank of a server tells as many of them as there are ranks."""


class RankSlots(NamedTuple):
    """The slots of a CCL buffer, `size` bytes each: one for every rank, `pairs` times."""

    ranks: int
    pairs: int
    size: int

    @staticmethod
    def of(ccl_bytes: int, servers: int, devices: int, unit: int) -> RankSlots:
        """Cut a CCL buffer; OrchestrationError for one that has no room."""
        ranks, pairs = servers * devices, 2 if servers == 2 else 1
        counts, number = COUNT_BYTES * ranks * ranks, ranks * pairs
        if ccl_bytes < counts + SLICE_ALIGN * number:
            raise OrchestrationError(
                f"{number} slots of {SLICE_ALIGN} bytes and the counts of all ranks, {counts} "
                f"bytes, do not fit {ccl_bytes}: the CCL buffer is too small.",
                "Set HCCL_BUFFSIZE to a larger number of MB.",
            )
        align = BLOCK_ALIGN if ccl_bytes > counts + BLOCK_ALIGN * number else SLICE_ALIGN
        each = (ccl_bytes - counts) // number // align * align
        return RankSlots(ranks, pairs, each // unit * unit)

    def at(self, buffer: Buffer, rank: RankInt, piece: int, size: RankInt) -> Region:
        """Return the first bytes of a rank's slot, as this piece takes it."""
        number = rank + piece % self.pairs * self.ranks
        return Region(buffer, number * self.size, size)


class _Turn(NamedTuple):
    """The block for, or from, the server that is step + 1 away, and which piece of its parts."""

    step: int
    piece: int


def continuous_pipeline(
    rank: AnyRank, shape: ServerGrid, outer: Plane, user: UserParts, slots: RankSlots
) -> None:
    """Record the exchange, with `outer` between servers, on min(n - 1, 8) lanes and the wire."""
    call = _ContinuousPipeline(rank, shape, outer, user, slots)
    for number in rank.main.steps("pipeline", call.turns + 2):
        call.record(*(call.turn(number - stage) for stage in range(3)))


class _ContinuousPipeline:
    """The three stages of a rank."""

    def __init__(
        self, rank: AnyRank, shape: ServerGrid, outer: Plane, user: UserParts, slots: RankSlots
    ) -> None:
        self._rank, self._shape, self._outer = rank, shape, outer
        self._user, self._slots = user, slots
        self._lanes = min(shape.devices - 1, LANES)
        own = values_of(shape.d)
        self._peers: list[RankInt] = [PerRank.of(k + (own <= k)) for k in range(shape.devices - 1)]
        self.turns = _pieces(user, shape, slots.size) * (shape.servers - 1)

    def turn(self, number: int) -> _Turn | None:
        """Return the `number`-th turn of a stage; nothing before the first and after the last."""
        if not 0 <= number < self.turns:
            return None
        piece, step = divmod(number, self._shape.servers - 1)
        return _Turn(step, piece)

    def record(self, staged: _Turn | None, sent: _Turn | None, read: _Turn | None) -> None:
        """Record one turn of all stages."""
        has_work = read is not None or (sent is not None and sent.step == 0)
        lanes = self._meet() if has_work else []
        if sent is not None:
            self._rank.wake(self._lanes)
            if sent.step == 0:
                self._write_inside(lanes, sent.piece)
        if read is not None:
            self._read_inside(lanes, read)
        if sent is not None:
            self._between(sent)
        if staged is not None:
            self._stage(staged)
        if read is not None and read.step == 0:
            self._deliver_inside(read.piece)
        if has_work:
            self._part(lanes)
        if sent is not None:
            self._rank.join(self._lanes)

    def _meet(self) -> list[tuple[Stream, RankInt, Link]]:
        """Let all lanes exchange Acks and start together; return for each peer its lane, its
        device, and the link.
        """
        rank = self._rank
        lanes, inner = [rank.wake(k) for k in range(self._lanes)], rank.plane(levels_of(rank)[0])
        found = [
            (lanes[k % self._lanes], device, inner[device]) for k, device in enumerate(self._peers)
        ]
        for stream, _, link in found:
            link.tx_ack(stream)
            link.rx_ack(stream)
        for stream in lanes:
            rank.join(stream)
        for stream in lanes:
            rank.wake(stream)
        return found

    def _part(self, lanes: list[tuple[Stream, RankInt, Link]]) -> None:
        """Let all lanes say that they are done, and main wait for them."""
        for stream, _, link in lanes:
            link.tx_data_signal(stream)
            link.rx_data_signal(stream)
        for k in range(self._lanes):
            self._rank.join(k)

    def _write_inside(self, lanes: list[tuple[Stream, RankInt, Link]], piece: int) -> None:
        """Write to every peer of the server what is for it; main copies the rank's own part."""
        shape, sends = self._shape, self._sends(piece)
        for stream, device, link in lanes:
            part = sends.at(shape.me, shape.rank(shape.s, device))
            slot = self._slots.at(Buffer.CCL_OUT, shape.me, piece, part.size)
            stream.copy(link.remote(slot), part)
        if piece == 0:
            me, (out_of, into) = shape.me, self._user
            self._rank.main.copy(into.at(me, me), out_of.at(me, me))

    def _deliver_inside(self, piece: int) -> None:
        """Copy to the output what the peers of the server wrote here."""
        shape, receives = self._shape, self._receives(piece)
        for device in self._peers:
            sender = shape.rank(shape.s, device)
            part = receives.at(shape.me, sender)
            slot = self._slots.at(Buffer.CCL_OUT, sender, piece, part.size)
            self._rank.main.copy(part, slot)

    def _stage(self, turn: _Turn) -> None:
        """Copy a block to its slots of CCL_In."""
        shape, sends = self._shape, self._sends(turn.piece)
        to = (shape.s + 1 + turn.step) % shape.servers
        for device in range(shape.devices):
            receiver = shape.rank(to, device)
            part = sends.at(shape.me, receiver)
            slot = self._slots.at(Buffer.CCL_IN, receiver, turn.piece, part.size)
            self._rank.main.copy(slot, part)

    def _read_inside(self, lanes: list[tuple[Stream, RankInt, Link]], turn: _Turn) -> None:
        """Take the parts that came from a server: this rank's equal device's from here, the others'
        from the peers of their devices.
        """
        shape, receives = self._shape, self._receives(turn.piece)
        frm = (shape.s - 1 - turn.step) % shape.servers
        equal = shape.rank(frm, shape.d)
        part = receives.at(shape.me, equal)
        self._rank.main.copy(part, self._slots.at(Buffer.CCL_OUT, equal, turn.piece, part.size))
        for stream, device, link in lanes:
            part = receives.at(shape.me, shape.rank(frm, device))
            slot = self._slots.at(Buffer.CCL_OUT, equal, turn.piece, part.size)
            stream.copy(part, link.remote(slot))

    def _between(self, turn: _Turn) -> None:
        """Send a block to one server and receive one from another."""
        shape = self._shape
        to = (shape.s + 1 + turn.step) % shape.servers
        frm = (shape.s - 1 - turn.step) % shape.servers
        sent = Sent(*self._block(shape.me, shape.s, to, turn.piece))
        received = Received(*self._block(shape.rank(frm, shape.d), frm, shape.s, turn.piece))
        tx = self._outer[to] if _any(sent.here) else None
        rx = self._outer[frm] if _any(received.there) else None
        _swap(self._rank.subs[self._lanes], tx, rx, sent, received)

    def _block(
        self, sender: RankInt, frm: RankInt, to: RankInt, piece: int
    ) -> tuple[list[Region], list[Region]]:
        """Return a block's slots: where the sender has it, and where the receiver gets it."""
        shape, sends = self._shape, self._sends(piece)
        staged, landed = [], []
        for device in range(shape.devices):
            receiver = shape.rank(to, device)
            size = sends.at(sender, receiver).size
            staged.append(self._slots.at(Buffer.CCL_IN, receiver, piece, size))
            landed.append(self._slots.at(Buffer.CCL_OUT, shape.rank(frm, device), piece, size))
        return staged, landed

    def _sends(self, piece: int) -> PartTable:
        return self._user.sends.piece(piece * self._slots.size, self._slots.size)

    def _receives(self, piece: int) -> PartTable:
        return self._user.receives.piece(piece * self._slots.size, self._slots.size)


def _swap(stream: Stream, tx: Link | None, rx: Link | None, sent: Sent, received: Received) -> None:
    """Send to one peer and receive from another one, each as its link does: over SDMA the receiver
    reads once the sender is ready, over RDMA the sender writes once the receiver is.
    """
    if tx is not None and not tx.rdma:
        tx.tx_ack(stream)
    if rx is not None and rx.rdma:
        rx.tx_ack(stream)
    if rx is not None and not rx.rdma:
        rx.rx_ack(stream)
        stream.copy(received.here, [rx.remote(place) for place in received.there])
        rx.tx_data_signal(stream)
    if tx is not None and tx.rdma:
        tx.rx_ack(stream)
        stream.copy([tx.remote(place) for place in sent.there], sent.here)
        tx.tx_data_signal(stream)
    if rx is not None and rx.rdma:
        rx.rx_data_signal(stream)
        rx.tx_data_ack(stream)
    if tx is not None and tx.rdma:
        tx.rx_data_ack(stream)
    if tx is not None and not tx.rdma:
        tx.rx_data_signal(stream)


def _any(parts: Pieces) -> bool:
    """True if parts are not empty; splits the batch."""
    return bool(sum(part.size for part in parts) > 0)


def _pieces(user: UserParts, shape: ServerGrid, most: int) -> int:
    """Return the number of pieces, at least one, of the largest part that a rank of the server
    sends to or receives from another rank.
    """
    sizes = user.sends.sizes.copy()
    np.fill_diagonal(sizes, 0)
    largest = np.maximum(sizes.max(axis=1), sizes.max(axis=0))
    by_server = -(-largest.reshape(shape.servers, shape.devices).max(axis=1) // most)
    return int(PerRank.of(np.maximum(by_server, 1)[values_of(shape.s)]))
