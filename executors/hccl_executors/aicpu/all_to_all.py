"""Templates of all-to-all."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hccl_executors.aicpu.duplex import exchange_write
from hccl_executors.aicpu.seats import Seat, Template, place_at, post_sync, pre_sync
from hccl_py.orchestration import Chunks, Region
from hccl_py.values import IntArray, PerRank, RankInt, values_of

MOST_PAIRS = 16


class PairsOfRanks(Template):
    """All-to-all in a mesh: pairs of ranks at growing gaps, both neighbours at a gap at once.

    HCCL: InsTempAlltoAllVMesh1D. Up to 16 pairs are under way, each on a thread and in a slot
    of the HCCL buffer of its own: a rank writes its block into the peer's slot, and copies what
    it got there to the output. Its main thread copies the rank's own block.
    """

    def subs(self, n: int) -> int:
        return at_once(n)

    def scratch(self, n: int) -> int:
        return at_once(n)

    def run(self, seat: Seat, source: Chunks, target: Chunks, slots: Chunks) -> None:
        """Send block i of `source` to rank i, and receive its block into block i of `target`."""
        seat.pre_sync()
        if source[seat.me].size > 0:
            seat.main.copy(target[seat.me], source[seat.me])
        for peer, mine, theirs in self.pairs(seat):
            thread, channel = seat.threads[1 + mine], seat.channel(peer)
            sent, received = source[peer], target[peer]
            moves = [(slots[theirs].head(sent.size), sent)]
            exchange_write(thread, channel, moves, sends=sent.size, receives=received.size)
            if received.size > 0:
                thread.copy(received, slots[mine].head(received.size))
        seat.post_sync()

    def pairs(self, seat: Seat) -> Iterator[tuple[RankInt, int, int]]:
        """Yield (peer, my slot, the peer's slot) of every pair in turn."""
        n, each = seat.n, (at_once(seat.n) + 1) // 2
        for gap in range(1, n // 2 + 1):
            near, far = each - 1 - (gap - 1) % each, each + (gap - 1) % each
            if 2 * gap == n:
                yield (seat.me + gap) % n, 0, 0
                return
            yield (seat.me - gap) % n, near, far
            yield (seat.me + gap) % n, far, near


def at_once(n: int) -> int:
    """Return the number of a rank's pairs that are under way at once."""
    return min(MOST_PAIRS, n - 1)


LINKS = 4
"""Links of two ranks of different boards: the most that HCCL takes."""

Moved = list[tuple[Region, Region]]


class BoardsInTurn(Template):
    """All-to-all over the boards of a UBX server: pairs of boards in turn, as in a round-robin
    tournament, and in every pair of boards one rank after another, over all links of the two at
    once.

    HCCL: InsTempUBXAllToAllVMesh1D. The ranks of a board exchange in their mesh meanwhile. A
    rank writes into its slot of the peer's HCCL buffer, and main copies what came there in the
    next turn. : a thread for every link across boards, and for every device of a board, of at
    most `width`.
    """

    links, width = LINKS, 4

    def subs(self, n: int) -> int:
        return self.links + self.width

    def run(self, seat: Seat, width: int, source: Chunks, target: Chunks, slots: Chunks) -> None:
        """Exchange blocks as PairsOfRanks does, among boards of `width` ranks."""
        mesh = seat.threads[1 + LINKS :]
        arrived: Moved = []
        pre_sync(seat.main, mesh)
        for number, turn in enumerate(turns(seat.n, width)):
            for peers in turn:
                peer = _own(peers, seat.me)
                if peer < seat.n:
                    arrived = self._across(seat, peer, (source, target, slots), arrived)
            if number == 0:
                arrived += self._inside(seat, width, (source, target, slots))
                post_sync(seat.main, mesh, range(LINKS, self.subs(seat.n)))
        _copy(seat, arrived)

    def _across(
        self, seat: Seat, peer: RankInt, memory: tuple[Chunks, Chunks, Chunks], arrived: Moved
    ) -> Moved:
        """Exchange with a rank of another board; return what is left to copy."""
        clos = seat.threads[1 : 1 + LINKS]
        sent, received, place = memory[0][peer], memory[1][peer], memory[2]
        pre_sync(seat.main, clos)
        _copy(seat, arrived)
        parts = zip(_parts(sent.size, seat.unit), _parts(received.size, seat.unit), strict=True)
        for link, ((begin, size), (_, receives)) in enumerate(parts):
            moves = [(place_at(place[seat.me], begin, size), place_at(sent, begin, size))]
            channel = seat.channel(peer, 1, link)
            exchange_write(clos[link], channel, moves, sends=size, receives=receives)
        post_sync(seat.main, clos, range(LINKS))
        return [(received, place[peer].head(received.size))]

    def _inside(self, seat: Seat, width: int, memory: tuple[Chunks, Chunks, Chunks]) -> Moved:
        """Exchange with the ranks of the board; return what is left to copy."""
        source, target, slots = memory
        arrived = []
        for i in range(width):
            thread, peer = seat.threads[1 + LINKS + i], seat.me // width * width + i
            sent, received = source[peer], target[peer]
            if seat.me == peer:
                thread.copy(received, sent)
                continue
            moves = [(slots[seat.me].head(sent.size), sent)]
            channel = seat.channel(peer, 0)
            exchange_write(thread, channel, moves, sends=sent.size, receives=received.size)
            arrived.append((received, slots[peer].head(received.size)))
        return arrived


def _copy(seat: Seat, moved: Moved) -> None:
    for target, place in moved:
        seat.main.copy(target, place)


def _parts(size: RankInt, unit: int) -> list[tuple[RankInt, RankInt]]:
    """Return begin and bytes of every link's part; HCCL computes in single precision."""
    counts = np.atleast_1d(values_of(size)) // unit
    share = np.float32(counts) * np.float32(1 / LINKS)
    each = PerRank.of(share.astype(np.int64)) * unit
    return [(k * each, each if k < LINKS - 1 else size - k * each) for k in range(LINKS)]


def _own(peers: IntArray, me: RankInt) -> RankInt:
    """Return a rank's own peer."""
    return PerRank.of(peers[np.atleast_1d(values_of(me))])


def turns(n: int, width: int) -> Iterator[Iterator[IntArray]]:
    """Yield every turn of boards: in each step of it, the peer of every rank. A peer that is no
    rank stands for the board that is one too few.
    """
    boards = n // width + n // width % 2
    place = np.arange(boards * width) % width
    for partners in rounds(boards):
        partner = partners.repeat(width)
        first = partner > np.arange(boards).repeat(width)
        yield (
            partner * width + np.where(first, place + step, place - step) % width
            for step in range(width)
        )


def rounds(boards: int) -> Iterator[IntArray]:
    """Yield the partner of every board in each round, of an even number of boards."""
    circle = np.arange(boards)
    for _ in range(boards - 1):
        partners = np.empty_like(circle)
        partners[circle] = circle[::-1]
        yield partners
        circle[1:] = np.roll(circle[1:], 1)
