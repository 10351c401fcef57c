"""AllReduce in two steps: every rank adds one slice, then all read all sums.

HCCL: InsTempAllReduceMesh1DTwoShot. Thread r serves rank r, and copies where that is the rank
itself; slices are rounded up, so the last ones may be short or empty.
"""

from __future__ import annotations

from hccl_executors.aicpu.duplex import (
    exchange_write,
    recv_read,
    send_read,
    send_recv_read,
)
from hccl_executors.aicpu.seats import Seat, Template, cut, slots
from hccl_py.orchestration import Chunks, Region


class TwoShotAllReduce(Template):
    """The template."""

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
