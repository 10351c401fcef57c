"""Scatter and broadcast by NHR's tree, from the root's HCCL buffer to those of all others.

HCCL: InsTempScatterNHR, InsTempBroadcastNHR, which gathers after it.
"""

from __future__ import annotations

from collections.abc import Sequence

from hccl_executors.aicpu import nhr_steps
from hccl_executors.aicpu.ar_nhr import nhr_gather
from hccl_executors.aicpu.ar_two_shot import rounded_down
from hccl_executors.aicpu.duplex import recv_write, send_write
from hccl_executors.aicpu.nhr_steps import NhrTemplate
from hccl_executors.aicpu.seats import Seat, copy, cut
from hccl_py.orchestration import Chunks, Region
from hccl_py.plugins.fidelity import is_uneven_tree
from hccl_py.values import RankInt


class NhrTree(NhrTemplate):
    """The resources of both templates, on one thread."""

    def spread(self, seat: Seat, root: RankInt, places: Sequence[Chunks]) -> None:
        """Send blocks from the root until every rank has its own. HCCL's ranks also send blocks
        that they do not have, among 7, 11 and some more ranks; these are left out.
        """
        n, behind = seat.n, (root - seat.me) % seat.n
        held = _held(n)
        for s in range(nhr_steps.rounds(n)):
            d = 1 << s
            senders = d if 2 * d <= n else n - d
            if behind < senders:
                to = (seat.me - d) % n
                blocks = [(to - 2 * d * i) % n for i in range((n - 1 + d) // (2 * d))]
                if is_uneven_tree(n):
                    has = held[s][int(behind)]
                    blocks = [i for i in blocks if int((root - i) % n) in has]
                moves = [(place[i], place[i]) for place in places for i in blocks]
                send_write(seat.main, seat.channel(to), moves)
            elif behind >= d and behind < senders + d:
                recv_write(seat.main, seat.channel((seat.me + d) % n))


def _held(n: int) -> list[list[set[int]]]:
    """Return the blocks that every rank has before every step, counted down from the root."""
    now = [set(range(n)), *(set[int]() for _ in range(n - 1))]
    found = []
    for s in range(nhr_steps.rounds(n)):
        found.append([set(blocks) for blocks in now])
        d = 1 << s
        for behind in range(d if 2 * d <= n else n - d):
            sent = {(behind + d + 2 * d * i) % n for i in range((n - 1 + d) // (2 * d))}
            now[behind + d] |= sent & found[s][behind]
    return found


class NhrScatter(NhrTree):
    """The template of Scatter."""

    by_clos = True

    def run(
        self,
        seat: Seat,
        root: RankInt,
        sources: Sequence[Chunks],
        targets: Sequence[Region],
        places: Sequence[Chunks],
    ) -> None:
        """Scatter every one of the root's `sources` into `targets`, by way of `places`."""
        if seat.me == root:
            for source, place in zip(sources, places, strict=True):
                for i in range(seat.n):
                    copy(seat.main, place[i], source[i])
        self.spread(seat, root, places)
        for target, place in zip(targets, places, strict=True):
            copy(seat.main, target, place[seat.me])


class NhrBroadcast(NhrTree):
    """The template of Broadcast."""

    def scratch(self, n: int) -> int:
        return 1

    def run(self, seat: Seat, root: RankInt, data: Region, buffer: Region, unit: int) -> None:
        """Broadcast the root's `data`, by way of `buffer`."""
        work = buffer.head(data.size)
        if seat.me == root:
            copy(seat.main, work, data)
        slices = cut(work, rounded_down(int(work.size), seat.n, unit))
        self.spread(seat, root, [slices])
        nhr_gather(seat, slices)
        if seat.me != root:
            copy(seat.main, data, work)
