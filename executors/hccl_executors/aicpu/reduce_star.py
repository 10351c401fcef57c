"""Reduce in a mesh: all write to the root, which adds.

HCCL: ReduceMesh1D.
"""

from __future__ import annotations

from hccl_executors.aicpu.ar_one_shot import reduce_others
from hccl_executors.aicpu.duplex import recv_write, send_write
from hccl_executors.aicpu.seats import Seat, Template, slots
from hccl_py.orchestration import Region
from hccl_py.values import RankInt


class StarReduce(Template):
    """The template; only the root uses threads beside main."""

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
