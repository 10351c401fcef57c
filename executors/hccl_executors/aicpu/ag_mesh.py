"""AllGather in a mesh: every rank reads the blocks of all others from their HCCL buffers.

HCCL: InsTempAllGatherMesh1D.
"""

from __future__ import annotations

from collections.abc import Sequence

from hccl_executors.aicpu.duplex import send_recv_read
from hccl_executors.aicpu.seats import Seat, copy, others
from hccl_py.orchestration import Chunks, Region


class MeshAllGather:
    """The template; every thread, main too, serves a rank."""

    def distances(self, n: int) -> range:
        return others(n)

    def threads(self, n: int) -> tuple[int, ...]:
        return (max(n - 2, 0), *[1] * (n - 2))

    def scratch(self, n: int) -> int:
        return n

    def run(
        self,
        seat: Seat,
        sources: Sequence[Region],
        targets: Sequence[Chunks],
        places: Sequence[Chunks],
    ) -> None:
        """Gather every one of `sources` into the same one of `targets`, by way of `places`."""
        for source, target, place in zip(sources, targets, places, strict=True):
            copy(seat.main, target[seat.me], source)
            copy(seat.main, place[seat.me].head(source.size), source)
        if seat.n == 1:
            return
        seat.pre_sync()
        for d, thread in enumerate(seat.threads, 1):
            peer = (seat.me + d) % seat.n
            channel = seat.channel(peer)
            moves = [
                (target[peer], place[peer].head(target[peer].size))
                for target, place in zip(targets, places, strict=True)
            ]
            send_recv_read(thread, channel, channel, moves)
        seat.post_sync()
