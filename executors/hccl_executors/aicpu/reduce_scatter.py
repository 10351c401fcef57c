"""Templates of ReduceScatter."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import cycle

from hccl_executors.aicpu import nhr_steps
from hccl_executors.aicpu.all_reduce import nhr_gather, reduce_others
from hccl_executors.aicpu.duplex import send_recv_write
from hccl_executors.aicpu.nhr_steps import NhrTemplate
from hccl_executors.aicpu.seats import (
    Cuts,
    Regions,
    Seat,
    SplitTemplate,
    Template,
    copy,
    others,
    place_at,
    slots,
)
from hccl_py.orchestration import Chunks, Region


class MeshReduceScatter(SplitTemplate):
    """ReduceScatter in a mesh: every rank gets its block from all others, and adds.

    HCCL: InsTempReduceScatterMesh1D. Main takes no part in transfers, each of which has a
    thread.
    """

    def subs(self, n: int) -> int:
        return (n - 1) * len(self.ways.layers)

    def run(self, seat: Seat, sources: Cuts, targets: Regions, places: Regions) -> None:
        """Reduce my block of every `sources` of all ranks into `targets`, by way of `places`, which
        hold as many blocks of the rank's own size as there are ranks.
        """
        seat.pre_sync()
        subs = iter(seat.threads[1:])
        for d in others(seat.n):
            peer = (seat.me + d) % seat.n
            blocks = [source[peer] for source in sources]
            parts = self.ways.parts(seat.n, blocks[0].size, seat.unit)
            for layer, (begin, size) in zip(self.ways.layers, parts, strict=True):
                channel = seat.channel(peer, layer)
                moves = [
                    (
                        place_at(place, seat.me * block.size + begin, size),
                        place_at(block, begin, size),
                    )
                    for place, block in zip(places, blocks, strict=True)
                ]
                send_recv_write(next(subs), channel, channel, moves)
        seat.post_sync()
        for source, target, place in zip(sources, targets, places, strict=True):
            copy(seat.main, target, source[seat.me])
            reduce_others(seat, target, list(slots(place, int(target.size), seat.n)))


class NhrReduceScatter(NhrTemplate):
    """ReduceScatter by NHR: blocks are added on their way through the HCCL buffer.

    HCCL: InsTempReduceScatterNHR. What the first step sends goes straight from the input. One
    thread works.
    """

    by_clos = True

    def run(self, seat: Seat, sources: Cuts, targets: Regions, places: Cuts) -> None:
        """Reduce my block of every `sources` of all ranks into `targets`, by way of `places`."""
        steps = list(nhr_steps.reduce_steps(seat.me, seat.n))
        for i in range(seat.n):
            if steps and any(i == sent for sent in steps[0].sent):
                continue
            for source, place in zip(sources, places, strict=True):
                copy(seat.main, place[i], source[i])
        for number, step in enumerate(steps):
            moves = [
                (place[i], (place if number else source)[i])
                for source, place in zip(sources, places, strict=True)
                for i in step.sent
            ]
            tx, rx = seat.channel(step.to), seat.channel(step.source)
            send_recv_write(seat.main, tx, rx, moves, reduces=True)
        for target, place in zip(targets, places, strict=True):
            copy(seat.main, target, place[seat.me])


class NhrWholeReduceScatter(NhrTemplate):
    """ReduceScatter by NHR for what links do not reduce: every block is gathered by all, and
    added by its owner on the AICPU.

    HCCL: InsTempReduceScatterAicpuReduceNHR. One thread works.
    """

    def run(self, seat: Seat, source: Chunks, target: Region, buffer: Region, unit: int) -> None:
        """Reduce my block of all inputs into `target`: block after block goes round whole."""
        places = slots(buffer, int(target.size), seat.n)
        for i in range(seat.n):
            seat.main.copy(places[seat.me], source[i])
            is_mine = bool(seat.me == i)
            if is_mine:
                seat.main.copy(target, source[i])
            nhr_gather(seat, places)
            if is_mine:
                reduce_others(seat, target, list(places))


MOST_THREADS = 32


class ReduceScatterInOrder(Template):
    """ReduceScatter that adds in the order of the ranks, in a balanced tree.

    HCCL: InsTempReduceScatterOrderPreservedLevel1, and ...Group for more than 8 ranks. The
    block of rank p for rank o lies in o's slot (p + o) % n.
    """

    def order(self, n: int) -> Iterable[int]:
        """Return the distances to all other ranks, in the order in which threads take them."""
        return others(n)

    def run(self, seat: Seat, source: Chunks, target: Region, buffer: Region, unit: int) -> None:
        """Reduce my block of all inputs into `target`."""
        n, me = seat.n, seat.me
        stride = source.largest
        places = slots(buffer, int(target.size), n, stride)
        seat.main.copy(places[(me + me) % n], source[me])
        seat.pre_sync()
        for d, thread in zip(self.order(n), cycle(seat.threads[1:]), strict=False):
            peer = (me + d) % n
            channel, block = seat.channel(peer), source[peer]
            place = place_at(buffer, (me + peer) % n * stride, block.size)
            send_recv_write(thread, channel, channel, [(place, block)])
        seat.post_sync()
        left = n
        while left > 1:
            half = 1 << ((left - 1).bit_length() - 1)
            for p in range(half, left):
                seat.main.reduce(places[(p % half + me) % n], places[(p + me) % n])
            left = half
        seat.main.copy(target, places[me])


class ReduceScatterInGroups(ReduceScatterInOrder):
    """The same from near to far on both sides, with threads for as many ranks at a time."""

    def subs(self, n: int) -> int:
        return min(n, MOST_THREADS) - 1

    def order(self, n: int) -> Iterable[int]:
        near_to_far = (d for gap in range(1, n // 2 + 1) for d in (gap, n - gap))
        return dict.fromkeys(near_to_far)  # halfway round is one rank
