"""AllGather in a mesh: every rank reads the blocks of all others from their HCCL buffers.

HCCL: InsTempAllGatherMesh1D.
"""

from __future__ import annotations

from collections.abc import Sequence

from hccl_executors.aicpu.duplex import send_recv_read
from hccl_executors.aicpu.seats import Seat, SplitTemplate, copy, others, place_at
from hccl_py.orchestration import Chunks, Region


class MeshAllGather(SplitTemplate):
    """The template; every transfer has a thread, main too."""

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
        if seat.n > 1:
            self.fetch(seat, targets, places)

    def fetch(self, seat: Seat, targets: Sequence[Chunks], places: Sequence[Chunks]) -> None:
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
