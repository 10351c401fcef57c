"""ReduceScatter that adds in the order of the ranks, in a balanced tree, for up to 8 ranks.

HCCL: InsTempReduceScatterOrderPreservedLevel1.
"""

from __future__ import annotations

from hccl_executors.aicpu.duplex import send_recv_write
from hccl_executors.aicpu.seats import Seat, Template, place_at, slots
from hccl_py.orchestration import Chunks, Region


class ReduceScatterInOrder(Template):
    """The template. The block of rank p for rank o lies in o's slot (p + o) % n."""

    def run(self, seat: Seat, source: Chunks, target: Region, buffer: Region, unit: int) -> None:
        """Reduce my block of all inputs into `target`."""
        n, me = seat.n, seat.me
        stride = source.largest
        places = slots(buffer, int(target.size), n, stride)
        seat.main.copy(places[(me + me) % n], source[me])
        seat.pre_sync()
        for d, thread in enumerate(seat.threads[1:], 1):
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
