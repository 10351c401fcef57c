"""Templates of AllReduce."""

from __future__ import annotations

from hccl_executors.aicpu import nhr_steps
from hccl_executors.aicpu.duplex import (
    exchange_write,
    recv_read,
    send_read,
    send_recv_read,
    send_recv_write,
)
from hccl_executors.aicpu.nhr_steps import NhrTemplate
from hccl_executors.aicpu.seats import Seat, Template, cut, slots
from hccl_py.orchestration import Chunks, Region


class OneShotAllReduce(Template):
    """AllReduce in one step: every rank gets every input whole, and adds.

    HCCL: InsTempAllReduceMesh1DOneShot. Main copies and adds, and every other thread serves a
    rank.
    """

    def run(self, seat: Seat, source: Region, target: Region, buffer: Region, unit: int) -> None:
        """Reduce all inputs into `target`, in the order of the ranks after the own one."""
        places = slots(buffer, int(source.size), seat.n)
        seat.pre_sync()
        if not seat.in_place:
            seat.main.copy(target, source)
        for d, thread in enumerate(seat.threads[1:], 1):
            channel = seat.channel((seat.me + d) % seat.n)
            send_recv_write(thread, channel, channel, [(places[seat.me], source)])
        seat.post_sync()
        reduce_others(seat, target, [places[i] for i in range(seat.n)])


def reduce_others(seat: Seat, target: Region, places: list[Region]) -> None:
    """Let main reduce the places of all other ranks into `target`, ascending."""
    for i, place in enumerate(places):
        if seat.me != i:
            seat.main.reduce(target, place)


class TwoShotAllReduce(Template):
    """AllReduce in two steps: every rank adds one slice, then all read all sums.

    HCCL: InsTempAllReduceMesh1DTwoShot. Thread r serves rank r, and copies where that is the
    rank itself; slices are rounded up, so the last ones may be short or empty.
    """

    def scratch(self, n: int) -> int:
        return 2

    def run(self, seat: Seat, source: Region, target: Region, buffer: Region, unit: int) -> None:
        """Reduce all inputs into `target`."""
        sizes = rounded_up(int(source.size), seat.n, unit)
        given, result = cut(source, sizes), cut(target, sizes)
        seat.pre_sync()
        for r in range(seat.n):
            self._scatter(seat, r, given, buffer, sizes[r])
        seat.post_sync()
        mine = given[seat.me].size
        places = slots(buffer, int(mine), seat.n)
        for i in range(1, seat.n):
            seat.main.reduce(places[0], places[i])
        seat.pre_sync()
        for r in range(seat.n):
            self._gather(seat, r, result, places[0])
        seat.post_sync()

    def _scatter(self, seat: Seat, r: int, given: Chunks, buffer: Region, size: int) -> None:
        """Write my slice r to rank r, which collects all of them side by side."""
        place = buffer[seat.me * size :].head(size)
        if seat.me == r:
            seat.threads[r].copy(place, given[r])
            return
        moves, receives = [(place, given[r])], given[seat.me].size
        exchange_write(seat.threads[r], seat.channel(r), moves, sends=size, receives=receives)

    def _gather(self, seat: Seat, r: int, result: Chunks, total: Region) -> None:
        """Read the sum of slice r."""
        if seat.me == r:
            seat.threads[r].copy(result[r], total)
            return
        channel, theirs = seat.channel(r), Region(total.buffer, total.offset, result[r].size)
        moves = [(result[r], theirs)]
        sends, receives = result[seat.me].size > 0, result[r].size > 0
        if sends and receives:
            send_recv_read(seat.threads[r], channel, channel, moves)
        elif sends:
            send_read(seat.threads[r], channel)
        elif receives:
            recv_read(seat.threads[r], channel, moves)


def rounded_up(size: int, n: int, unit: int) -> list[int]:
    """Return the bytes of n slices, rounded up to whole elements."""
    each = -(-(size // unit) // n) * unit
    return [max(0, min(each, size - i * each)) for i in range(n)]


def rounded_down(size: int, n: int, unit: int) -> list[int]:
    """Return the bytes of n slices, rounded down to whole elements; the last takes the rest."""
    each = size // unit // n * unit
    return [*[each] * (n - 1), size - (n - 1) * each]


def evened(size: int, n: int, unit: int) -> list[int]:
    """Return the bytes of n slices that differ by one element, the first ones longer."""
    each, longer = divmod(size // unit, n)
    return [(each + (i < longer)) * unit for i in range(n)]


class NhrAllReduce(NhrTemplate):
    """AllReduce by NHR: reduce steps, then gather steps, all in the HCCL buffer.

    HCCL: InsTempAllReduceNHR, and InsTempAllReduceAicpuReduceNHR for what links do not reduce.
    One thread works.
    """

    by_clos = True

    def scratch(self, n: int) -> int:
        return 1

    def run(self, seat: Seat, source: Region, target: Region, buffer: Region, unit: int) -> None:
        """Reduce all inputs into `target`."""
        work = buffer.head(source.size)
        seat.main.copy(work, source)
        slices = cut(work, rounded_down(int(work.size), seat.n, unit))
        nhr_reduce(seat, slices)
        nhr_gather(seat, slices)
        seat.main.copy(target, work)


class NhrWholeAllReduce(NhrAllReduce):
    """The template that gathers whole inputs, and adds them on the AICPU."""

    by_clos = False

    def scratch(self, n: int) -> int:
        return n

    def run(self, seat: Seat, source: Region, target: Region, buffer: Region, unit: int) -> None:
        places = slots(buffer, int(source.size), seat.n)
        seat.main.copy(places[seat.me], source)
        nhr_gather(seat, places)
        seat.main.copy(target, places[seat.me])
        reduce_others(seat, target, list(places))


def nhr_reduce(seat: Seat, slices: Chunks) -> None:
    """Add slices until every rank has the sum of its own."""
    for step in nhr_steps.reduce_steps(seat.me, seat.n):
        moves = [(slices[i], slices[i]) for i in step.sent]
        tx, rx = seat.channel(step.to), seat.channel(step.source)
        send_recv_write(seat.main, tx, rx, moves, reduces=True)


def nhr_gather(seat: Seat, slices: Chunks) -> None:
    """Write slices until every rank has all."""
    for step in nhr_steps.gather_steps(seat.me, seat.n):
        moves = [(slices[i], slices[i]) for i in step.sent]
        send_recv_write(seat.main, seat.channel(step.to), seat.channel(step.source), moves)
