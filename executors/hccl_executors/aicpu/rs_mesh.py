"""ReduceScatter in a mesh: every rank gets its block from all others, and adds.

HCCL: InsTempReduceScatterMesh1D.
"""

from __future__ import annotations

from collections.abc import Sequence

from hccl_executors.aicpu.ar_one_shot import reduce_others
from hccl_executors.aicpu.duplex import send_recv_write
from hccl_executors.aicpu.seats import (
    Seat,
    SplitTemplate,
    copy,
    others,
    place_at,
    slots,
)
from hccl_py.orchestration import Chunks, Region


class MeshReduceScatter(SplitTemplate):
    """The template; main takes no part in transfers, each of which has a thread."""

    def subs(self, n: int) -> int:
        return (n - 1) * len(self.ways.layers)

    def run(
        self,
        seat: Seat,
        sources: Sequence[Chunks],
        targets: Sequence[Region],
        places: Sequence[Region],
    ) -> None:
        """Reduce my block of every `sources` of all ranks into `targets`, by way of `places`, which
        hold as many blocks of the rank's own size as there are ranks.
        """
        seat.pre_sync()
        subs = iter(seat.threads[1:])
        for d in others(seat.n):
            peer = (seat.me + d) % seat.n
            blocks = [source[peer] for source in sources]
            parts = self.ways.parts(seat.n, blocks[0].size, seat.unit)
            for layer, (begin, size) in zip(self.ways.layers, parts, strict=True):
                channel = seat.channel(peer, layer)
                moves = [
                    (
                        place_at(place, seat.me * block.size + begin, size),
                        place_at(block, begin, size),
                    )
                    for place, block in zip(places, blocks, strict=True)
                ]
                send_recv_write(next(subs), channel, channel, moves)
        seat.post_sync()
        for source, target, place in zip(sources, targets, places, strict=True):
            copy(seat.main, target, source[seat.me])
            reduce_others(seat, target, list(slots(place, int(target.size), seat.n)))
