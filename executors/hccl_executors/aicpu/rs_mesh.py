"""ReduceScatter in a mesh: every rank gets its block from all others, and adds.

HCCL: InsTempReduceScatterMesh1D.
"""

from __future__ import annotations

from collections.abc import Sequence

from hccl_executors.aicpu.ar_one_shot import reduce_others
from hccl_executors.aicpu.duplex import send_recv_write
from hccl_executors.aicpu.seats import Seat, copy, others, place_at, slots
from hccl_py.orchestration import Chunks, Region


class MeshReduceScatter:
    """The template; main takes no part in transfers."""

    def distances(self, n: int) -> range:
        return others(n)

    def threads(self, n: int) -> tuple[int, ...]:
        return (n - 1, *[1] * (n - 1))

    def scratch(self, n: int) -> int:
        return n

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
        for d, thread in enumerate(seat.threads[1:], 1):
            peer = (seat.me + d) % seat.n
            channel = seat.channel(peer)
            moves = [
                (place_at(place, seat.me * source[peer].size, source[peer].size), source[peer])
                for place, source in zip(places, sources, strict=True)
            ]
            send_recv_write(thread, channel, channel, moves)
        seat.post_sync()
        for source, target, place in zip(sources, targets, places, strict=True):
            copy(seat.main, target, source[seat.me])
            reduce_others(seat, target, list(slots(place, int(target.size), seat.n)))
