"""Broadcast in a mesh, in two steps: the root gives a slice to every rank, then all exchange.

HCCL: InsTempBroadcastMesh1DTwoShot. The root also gives its own slice to all.
"""

from __future__ import annotations

from hccl_executors.aicpu.ar_two_shot import rounded_up
from hccl_executors.aicpu.duplex import recv_write, send_recv_write, send_write
from hccl_executors.aicpu.seats import Seat, Template, cut
from hccl_py.orchestration import Region
from hccl_py.values import RankInt


class TwoShotBroadcast(Template):
    """The template."""

    def subs(self, n: int) -> int:
        return max(n - 2, 0)

    def scratch(self, n: int) -> int:
        return 1

    def run(self, seat: Seat, root: RankInt, data: Region, buffer: Region, unit: int) -> None:
        """Broadcast the root's `data`, by way of `buffer`."""
        sizes = rounded_up(int(data.size), seat.n, unit)
        given, places = cut(data, sizes), cut(buffer, sizes)
        peers = [i for i in range(seat.n) if seat.me != i and root != i]
        if seat.me == root:
            seat.pre_sync()
            for thread, i in zip(seat.threads, peers, strict=True):
                for part in (i, seat.me):
                    send_write(thread, seat.channel(i), [(places[part], given[part])])
            seat.post_sync()
            return
        for _ in range(2):
            recv_write(seat.main, seat.channel(root))
        if len(peers) > 1:
            seat.pre_sync()
        for thread, i in zip(seat.threads, peers, strict=False):
            channel, mine = seat.channel(i), places[seat.me]
            send_recv_write(thread, channel, channel, [(mine, mine)])
        if len(peers) > 1:
            seat.post_sync()
        seat.main.copy(data, buffer.head(data.size))
