"""The two-level all-to-all where blocks do not fit: pieces go through halves of the CCL buffers.

A half has a slot for each device of a server. A piece of a block is copied slot by slot to one half
of CCL_In and travels to one of CCL_Out, where the devices of the server read theirs: with all slots
at once where they are full, else slot by slot. (HCCL's always send the whole half, with what lies
between and behind the pieces, which is neither written nor read.) Both sides take turns with every
piece, so that one half is filled while the other is read. Of what stays in the server, the first
piece goes beside the first piece between servers, the others at the end.
"""

from __future__ import annotations

from hccl_executors.all_to_all.layout import UserParts, block_of
from hccl_executors.all_to_all.pipelined import Pipelined
from hccl_executors.all_to_all.two_levels import ServerGrid
from hccl_executors.templates.pairwise import Received, Sent
from hccl_py.enums import Buffer
from hccl_py.orchestration import Region
from hccl_py.plugins.executor import AnyRank
from hccl_py.values import RankInt


def blocks_in_halves(rank: AnyRank, shape: ServerGrid, user: UserParts, unit: int) -> None:
    """Record the exchange, in op-base mode."""
    call, halves = Pipelined(rank, shape), _Halves(rank, shape, user, unit)
    pieces, steps = halves.pieces, shape.servers - 1
    halves.stage(1, 0)
    call.start_between()
    halves.keep(0)
    call.start_inside()
    call.read_inside(halves.inside(0, 0, call.peers))
    rank.main.copy(user.receives.at(rank.id, rank.id), user.sends.at(rank.id, rank.id))
    for number in rank.main.steps("pipeline", steps * pieces):
        step, piece = divmod(number, pieces)
        call.between(step, *halves.between(number, step, piece))
        following = divmod(number + 1, pieces)
        halves.stage(following[0] + 1, following[1])
        call.wait_inside()
        call.wait_between()
        call.start_inside()
        call.read_inside(halves.inside(step + 1, piece, call.peers))
        if number + 1 < steps * pieces:
            call.start_between()
        halves.deliver(step + 1, piece)
    call.wait_inside()
    for piece in rank.main.steps("inside", pieces - 1):
        halves.keep(piece + 1)
        call.start_inside()
        call.read_inside(halves.inside(0, piece + 1, call.peers))
        call.wait_inside()


class _Halves:
    """Places of pieces. Halves are counted by the pieces that have gone through them: `number`
    between servers, turns of the server one before it, as its first turn is a piece that stays.
    """

    def __init__(self, rank: AnyRank, shape: ServerGrid, user: UserParts, unit: int) -> None:
        self._rank, self._shape, self._user = rank, shape, user
        self._half = rank.ccl_bytes // 2
        self._slot = block_of(self._half, shape.devices, unit)
        self._staged = self._read = 0
        self.pieces = -(-int(user.sends.sizes.max()) // self._slot)

    def stage(self, ahead: int, piece: int) -> None:
        """Copy a piece of the block for the server so far ahead to the next half of CCL_In."""
        sends, shape, half = (
            self._user.sends.piece(*self._bytes(piece)),
            self._shape,
            self._staged % 2,
        )
        self._staged += 1
        first = (shape.s + ahead) % shape.servers * shape.devices
        for device in range(shape.devices):
            part = sends.at(shape.me, first + device)
            self._rank.main.copy(self._place(Buffer.CCL_IN, half, device).head(part.size), part)

    def keep(self, piece: int) -> None:
        """Copy a piece of what stays in the server, other than the rank's own part, to CCL_Out."""
        sends, shape = self._user.sends.piece(*self._bytes(piece)), self._shape
        half = self._turn_inside(self._read)
        for k in range(1, shape.devices):
            device = (shape.d + k) % shape.devices
            part = sends.at(shape.me, shape.rank(shape.s, device))
            self._rank.main.copy(self._place(Buffer.CCL_OUT, half, device).head(part.size), part)

    def between(self, number: int, step: int, piece: int) -> tuple[Sent, Received]:
        """Return the pieces in the number-th halves: one of the block for a server, and one of the
        block from a server.
        """
        shape, half = self._shape, number % 2
        to, frm = (shape.s + 1 + step) % shape.servers, (shape.s - 1 - step) % shape.servers
        return (
            Sent(*self._travelling(shape.me, to, half, piece)),
            Received(*self._travelling(shape.rank(frm, shape.d), shape.s, half, piece)),
        )

    def _travelling(
        self, sender: RankInt, to: RankInt, half: int, piece: int
    ) -> tuple[list[Region], list[Region]]:
        """Return the source and the destination of a piece of a sender's block for a server."""
        shape, sends = self._shape, self._user.sends.piece(*self._bytes(piece))
        sizes = [sends.at(sender, shape.rank(to, k)).size for k in range(shape.devices)]
        both = (Buffer.CCL_IN, Buffer.CCL_OUT)
        if all(size == self._slot for size in sizes):
            start, size = half * self._half, shape.devices * self._slot
            return [Region(both[0], start, size)], [Region(both[1], start, size)]
        here, there = (
            [self._place(b, half, k).head(size) for k, size in enumerate(sizes)] for b in both
        )
        return here, there

    def inside(self, behind: int, piece: int, peers: list[int]) -> list[tuple[Region, Region]]:
        """Return, for every peer of the server, this rank's slot there, with a piece that came from
        the server so far behind, and where it belongs.
        """
        receives, shape = self._user.receives.piece(*self._bytes(piece)), self._shape
        half = self._turn_inside(self._read)
        self._read += 1
        frm = (shape.s - behind) % shape.servers
        parts = [receives.at(shape.me, shape.rank(frm, peer)) for peer in peers]
        slot = self._place(Buffer.CCL_OUT, half, shape.d)
        return [(slot.head(part.size), part) for part in parts]

    def deliver(self, behind: int, piece: int) -> None:
        """Copy the piece for this rank itself that came last, from the server so far behind."""
        shape = self._shape
        sender = shape.rank((shape.s - behind) % shape.servers, shape.d)
        part = self._user.receives.piece(*self._bytes(piece)).at(shape.me, sender)
        half = self._turn_inside(self._read - 1)
        self._rank.main.copy(part, self._place(Buffer.CCL_OUT, half, shape.d).head(part.size))

    def _bytes(self, piece: int) -> tuple[int, int]:
        return piece * self._slot, self._slot

    def _turn_inside(self, turn: int) -> int:
        """Return the half of CCL_Out that the server reads in a turn: the second one first."""
        return (turn + 1) % 2

    def _place(self, buffer: Buffer, half: int, slot: RankInt) -> Region:
        return Region(buffer, slot * self._slot + half * self._half, self._slot)
