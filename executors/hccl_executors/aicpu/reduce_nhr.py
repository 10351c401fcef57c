"""Reduce by NHR: the steps of an AllReduce in the HCCL buffer; the root alone copies the result.

HCCL: ReduceNHR, and ReduceAicpuReduceNHR for what links do not reduce.
"""

from __future__ import annotations

from hccl_executors.aicpu.ar_nhr import nhr_gather, nhr_reduce
from hccl_executors.aicpu.ar_two_shot import rounded_up
from hccl_executors.aicpu.nhr_steps import NhrTemplate
from hccl_executors.aicpu.seats import Seat, copy, cut, slots
from hccl_py.orchestration import Region
from hccl_py.values import RankInt


class NhrReduce(NhrTemplate):
    """The template on one thread."""

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
