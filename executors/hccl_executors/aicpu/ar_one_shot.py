"""AllReduce in one step: every rank gets every input whole, and adds.

HCCL: InsTempAllReduceMesh1DOneShot.
"""

from __future__ import annotations

from hccl_executors.aicpu.duplex import send_recv_write
from hccl_executors.aicpu.seats import Seat, Template, slots
from hccl_py.orchestration import Region


class OneShotAllReduce(Template):
    """The template; main copies and adds, and every other thread serves a rank."""

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
