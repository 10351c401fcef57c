"""AllReduce by NHR: reduce steps, then gather steps, all in the HCCL buffer.

HCCL: InsTempAllReduceNHR, and InsTempAllReduceAicpuReduceNHR for what links do not reduce.
"""

from __future__ import annotations

from hccl_executors.aicpu import nhr_steps
from hccl_executors.aicpu.ar_one_shot import reduce_others
from hccl_executors.aicpu.ar_two_shot import rounded_down
from hccl_executors.aicpu.duplex import send_recv_write
from hccl_executors.aicpu.nhr_steps import NhrTemplate
from hccl_executors.aicpu.seats import Seat, cut, slots
from hccl_py.orchestration import Chunks, Region


class NhrAllReduce(NhrTemplate):
    """The template on one thread."""

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
