"""Templates of AllGather."""

from __future__ import annotations

from collections.abc import Sequence

from hccl_executors.aicpu import nhr_steps
from hccl_executors.aicpu.duplex import send_recv_read, send_recv_write
from hccl_executors.aicpu.nhr_steps import NhrTemplate
from hccl_executors.aicpu.seats import Cuts, Regions, Seat, SplitTemplate, copy, others, place_at
from hccl_py.enums import ChannelBuffer
from hccl_py.orchestration.channels import Thread
from hccl_py.values import RankInt


class MeshAllGather(SplitTemplate):
    """AllGather in a mesh: every rank reads the blocks of all others from their HCCL buffers.

    HCCL: InsTempAllGatherMesh1D. Every transfer has a thread, main too.
    """

    def run(self, seat: Seat, sources: Regions, targets: Cuts, places: Cuts) -> None:
        """Gather every one of `sources` into the same one of `targets`, by way of `places`."""
        for source, target, place in zip(sources, targets, places, strict=True):
            copy(seat.main, target[seat.me], source)
            copy(seat.main, place[seat.me].head(source.size), source)
        if seat.n > 1:
            self.fetch(seat, targets, places)

    def fetch(self, seat: Seat, targets: Cuts, places: Cuts) -> None:
        """Read the blocks of all others."""
        seat.pre_sync()
        threads = iter(seat.threads)
        for d in others(seat.n):
            peer = (seat.me + d) % seat.n
            parts = self.ways.parts(seat.n, targets[0][peer].size, seat.unit)
            for layer, (begin, size) in zip(self.ways.layers, parts, strict=True):
                channel = seat.channel(peer, layer)
                moves = [
                    (place_at(target[peer], begin, size), place_at(place[peer], begin, size))
                    for target, place in zip(targets, places, strict=True)
                ]
                send_recv_read(next(threads), channel, channel, moves)
        seat.post_sync()


START_COPY = 1
"""The notify by which the second thread begins to copy; by 0 it begins and ends."""


class NhrAllGather(NhrTemplate):
    """AllGather by NHR in the HCCL buffer; what the last step brings is read straight to the
    output.

    HCCL: InsTempAllGatherNHR. A second thread copies what has come before to the output
    meanwhile. On two threads. In a Broadcast, whose output is the input, the last step writes
    as all others: `reads` is false.
    """

    by_clos = True

    def __init__(self, *, reads: bool = True) -> None:
        self.reads = reads

    def threads(self, n: int) -> tuple[int, ...]:
        return (1, 2)

    def run(self, seat: Seat, sources: Regions, targets: Cuts, places: Cuts) -> None:
        """Gather every one of `sources` into the same one of `targets`, by way of `places`."""
        seat.pre_sync()
        for source, place in zip(sources, places, strict=True):
            copy(seat.main, place[seat.me], source)
        steps = list(nhr_steps.gather_steps(seat.me, seat.n))
        leaves_buffer = self.reads and targets[0].buffer != ChannelBuffer.CCL
        reads = leaves_buffer and bool(steps) and len(steps[-1].sent) > 1
        lies_there = leaves_buffer and sources[0].buffer == targets[0].buffer
        left_out = [seat.me] if lies_there else []
        for step in steps[: len(steps) - reads]:
            moves = [(place[i], place[i]) for place in places for i in step.sent]
            send_recv_write(seat.main, seat.channel(step.to), seat.channel(step.source), moves)
        if reads:
            last, helper = steps[-1], seat.threads[1]
            seat.pre_sync(START_COPY)
            self._copy_out(seat, helper, targets, places, [*last.received, *left_out])
            moves = [
                (target[i], place[i])
                for target, place in zip(targets, places, strict=True)
                for i in last.received
            ]
            tx, rx = seat.channel(last.to), seat.channel(last.source)
            send_recv_read(seat.main, tx, rx, moves)
        else:
            self._copy_out(seat, seat.main, targets, places, left_out)
        seat.post_sync()

    def _copy_out(
        self, seat: Seat, thread: Thread, targets: Cuts, places: Cuts, left_out: Sequence[RankInt]
    ) -> None:
        for target, place in zip(targets, places, strict=True):
            for i in range(seat.n):
                if not any(i == left for left in left_out):
                    copy(thread, target[i], place[i])
