"""ReduceScatter by NHR for what links do not reduce: every block is gathered by all, and added
by its owner on the AICPU.

HCCL: InsTempReduceScatterAicpuReduceNHR.
"""

from __future__ import annotations

from hccl_executors.aicpu.ar_nhr import nhr_gather
from hccl_executors.aicpu.ar_one_shot import reduce_others
from hccl_executors.aicpu.nhr_steps import NhrTemplate
from hccl_executors.aicpu.seats import Seat, slots
from hccl_py.orchestration import Chunks, Region


class NhrWholeReduceScatter(NhrTemplate):
    """The template on one thread."""

    def run(self, seat: Seat, source: Chunks, target: Region, buffer: Region, unit: int) -> None:
        """Reduce my block of all inputs into `target`: block after block goes round whole."""
        places = slots(buffer, int(target.size), seat.n)
        for i in range(seat.n):
            seat.main.copy(places[seat.me], source[i])
            is_mine = bool(seat.me == i)
            if is_mine:
                seat.main.copy(target, source[i])
            nhr_gather(seat, places)
            if is_mine:
                reduce_others(seat, target, list(places))
