"""ReduceScatter by NHR: blocks are added on their way through the HCCL buffer.

HCCL: InsTempReduceScatterNHR. What the first step sends goes straight from the input.
"""

from __future__ import annotations

from collections.abc import Sequence

from hccl_executors.aicpu import nhr_steps
from hccl_executors.aicpu.duplex import send_recv_write
from hccl_executors.aicpu.nhr_steps import NhrTemplate
from hccl_executors.aicpu.seats import Seat, copy
from hccl_py.orchestration import Chunks, Region


class NhrReduceScatter(NhrTemplate):
    """The template on one thread."""

    by_clos = True

    def run(
        self,
        seat: Seat,
        sources: Sequence[Chunks],
        targets: Sequence[Region],
        places: Sequence[Chunks],
    ) -> None:
        """Reduce my block of every `sources` of all ranks into `targets`, by way of `places`."""
        steps = list(nhr_steps.reduce_steps(seat.me, seat.n))
        for i in range(seat.n):
            if steps and any(i == sent for sent in steps[0].sent):
                continue
            for source, place in zip(sources, places, strict=True):
                copy(seat.main, place[i], source[i])
        for number, step in enumerate(steps):
            moves = [
                (place[i], (place if number else source)[i])
                for source, place in zip(sources, places, strict=True)
                for i in step.sent
            ]
            tx, rx = seat.channel(step.to), seat.channel(step.source)
            send_recv_write(seat.main, tx, rx, moves, reduces=True)
        for target, place in zip(targets, places, strict=True):
            copy(seat.main, target, place[seat.me])
