"""Templates of Reduce."""

from __future__ import annotations

from hccl_executors.aicpu.all_reduce import (
    evened,
    nhr_gather,
    nhr_reduce,
    reduce_others,
    rounded_up,
)
from hccl_executors.aicpu.duplex import (
    recv_read,
    recv_write,
    send_read,
    send_recv_write,
    send_write,
)
from hccl_executors.aicpu.nhr_steps import NhrTemplate
from hccl_executors.aicpu.seats import Seat, Template, copy, cut, slots
from hccl_py.orchestration import Region
from hccl_py.values import RankInt


class StarReduce(Template):
    """Reduce in a mesh: all write to the root, which adds.

    HCCL: ReduceMesh1D. Only the root uses threads beside main.
    """

    def run(
        self, seat: Seat, root: RankInt, source: Region, target: Region, buffer: Region, unit: int
    ) -> None:
        """Reduce all inputs into the root's `target`."""
        places = slots(buffer, int(source.size), seat.n)
        if seat.me != root:
            send_write(seat.main, seat.channel(root), [(places[seat.me], source)])
            return
        seat.pre_sync()
        seat.main.copy(target, source)
        peers = [i for i in range(seat.n) if seat.me != i]
        for thread, i in zip(seat.threads[1:], peers, strict=True):
            recv_write(thread, seat.channel(i))
        seat.post_sync()
        reduce_others(seat, target, list(places))


class TwoShotReduce(Template):
    """Reduce in a mesh, in two steps: every rank adds one slice, then the root reads all sums.

    HCCL: ReduceMesh1DTwoShot. Thread r serves rank r.
    """

    def run(
        self, seat: Seat, root: RankInt, source: Region, target: Region, buffer: Region, unit: int
    ) -> None:
        """Reduce all inputs into the root's `target`."""
        sizes = evened(int(source.size), seat.n, unit)
        given, result = cut(source, sizes), cut(target, sizes)
        mine = int(given[seat.me].size)
        collected = slots(buffer, mine, seat.n)
        seat.pre_sync()
        for r, thread in enumerate(seat.threads):
            if not (sizes[r] or mine):
                continue
            place = slots(buffer, sizes[r], seat.n)[seat.me]
            if seat.me == r:
                thread.copy(place, given[r])
            else:
                channel = seat.channel(r)
                send_recv_write(thread, channel, channel, [(place, given[r])])
        seat.post_sync()
        reduce_others(seat, collected[seat.me], list(collected))
        seat.pre_sync()
        if seat.me == root:
            for r, thread in enumerate(seat.threads):
                theirs = slots(buffer, sizes[r], seat.n)[r]
                if seat.me == r:
                    thread.copy(result[r], theirs)
                elif sizes[r]:
                    recv_read(thread, seat.channel(r), [(result[r], theirs)])
        elif mine:
            send_read(seat.threads[int(root)], seat.channel(root))
        seat.post_sync()


class NhrReduce(NhrTemplate):
    """Reduce by NHR: the steps of an AllReduce in the HCCL buffer; the root alone copies the
    result.

    HCCL: ReduceNHR, and ReduceAicpuReduceNHR for what links do not reduce. One thread works.
    """

    def scratch(self, n: int) -> int:
        return 1

    def run(
        self, seat: Seat, root: RankInt, source: Region, target: Region, buffer: Region, unit: int
    ) -> None:
        """Reduce all inputs into the root's `target`."""
        work = buffer.head(source.size)
        copy(seat.main, work, source)
        slices = cut(work, rounded_up(int(work.size), seat.n, unit))
        nhr_reduce(seat, slices)
        nhr_gather(seat, slices)
        if seat.me == root:
            copy(seat.main, target, work)


class NhrWholeReduce(NhrReduce):
    """The template that gathers whole inputs, and adds them at the root on its AICPU."""

    def scratch(self, n: int) -> int:
        return n

    def run(
        self, seat: Seat, root: RankInt, source: Region, target: Region, buffer: Region, unit: int
    ) -> None:
        places = slots(buffer, int(source.size), seat.n)
        copy(seat.main, places[seat.me], source)
        nhr_gather(seat, places)
        if seat.me == root:
            seat.main.copy(target, places[0])
            for place in list(places)[1:]:
                seat.main.reduce(target, place)
