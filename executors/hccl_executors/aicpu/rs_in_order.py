"""ReduceScatter that adds in the order of the ranks, in a balanced tree.

HCCL: InsTempReduceScatterOrderPreservedLevel1, and ...Group for more than 8 ranks.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import cycle

from hccl_executors.aicpu.duplex import send_recv_write
from hccl_executors.aicpu.seats import Seat, Template, others, place_at, slots
from hccl_py.orchestration import Chunks, Region

MOST_THREADS = 32


class ReduceScatterInOrder(Template):
    """The template. The block of rank p for rank o lies in o's slot (p + o) % n."""

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
