"""Reduce in a mesh, in two steps: every rank adds one slice, then the root reads all sums.

HCCL: ReduceMesh1DTwoShot. Thread r serves rank r.
"""

from __future__ import annotations

from hccl_executors.aicpu.ar_one_shot import reduce_others
from hccl_executors.aicpu.ar_two_shot import evened
from hccl_executors.aicpu.duplex import recv_read, send_read, send_recv_write
from hccl_executors.aicpu.seats import Seat, Template, cut, slots
from hccl_py.orchestration import Region
from hccl_py.values import RankInt


class TwoShotReduce(Template):
    """The template."""

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
