"""Steps of a pipelined AllGather: every rank of an axis gets the pieces that the others have in
their HCCL buffers, into its own or, in the last step, right to its output.

HCCL: InsTempAllGatherOmniPipeMesh1D, InsTempAllGatherOmniPipeNHR.
"""

from __future__ import annotations

from collections.abc import Sequence

from hccl_executors.aicpu import nhr_steps
from hccl_executors.aicpu.ag_mesh import MeshAllGather
from hccl_executors.aicpu.ag_nhr import NhrAllGather
from hccl_executors.aicpu.duplex import send_recv_read, send_recv_write
from hccl_executors.aicpu.seats import Seat, others
from hccl_py.orchestration import Chunks


class MeshPieces(MeshAllGather):
    """The template in a mesh."""

    def step(
        self, seat: Seat, targets: Sequence[Chunks], places: Sequence[Chunks], *, reads: bool
    ) -> None:
        """Bring the pieces `places` of every rank to all, or `reads` to their `targets`."""
        if reads:
            self.fetch(seat, targets, places)
            return
        seat.pre_sync()
        moves = [(place[seat.me], place[seat.me]) for place in places]
        for d, thread in zip(others(seat.n), seat.threads, strict=True):
            channel = seat.channel((seat.me + d) % seat.n)
            send_recv_write(thread, channel, channel, moves)
        seat.post_sync()


class NhrPieces(NhrAllGather):
    """The template by NHR; only what its last step brings can be read to the output."""

    def step(
        self,
        seat: Seat,
        targets: Sequence[Chunks],
        places: Sequence[Chunks],
        *,
        reads: bool,
        copies: bool,
    ) -> None:
        """Bring the pieces `places` of every rank to all, the last ones to their `targets` where it
        `reads`; `copies` says that the second thread copies the earlier ones there.
        """
        steps = list(nhr_steps.gather_steps(seat.me, seat.n))
        seat.pre_sync()
        for step in steps:
            tx, rx = seat.channel(step.to), seat.channel(step.source)
            if reads and step is steps[-1]:
                pairs = list(zip(targets, places, strict=True))
                moves = [(target[i], place[i]) for i in step.received for target, place in pairs]
                send_recv_read(seat.main, tx, rx, moves)
            else:
                moves = [(place[i], place[i]) for i in step.sent for place in places]
                send_recv_write(seat.main, tx, rx, moves)
        seat.post_sync()
        seat.pre_sync()
        for step in steps[:-1] if copies else ():
            for i in step.received:
                for target, place in zip(targets, places, strict=True):
                    seat.threads[1].copy(target[i], place[i])
        seat.post_sync()
