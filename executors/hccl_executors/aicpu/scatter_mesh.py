"""Scatter in a mesh: the root writes its block into every rank's HCCL buffer.

HCCL: InsTempScatterMesh1D.
"""

from __future__ import annotations

from collections.abc import Sequence

from hccl_executors.aicpu.duplex import recv_write, send_write
from hccl_executors.aicpu.seats import Seat, copy, others
from hccl_py.enums import ChannelBuffer
from hccl_py.orchestration import Chunks, Region
from hccl_py.values import RankInt


class MeshScatter:
    """The template; all ranks wake all threads, and those beside the root use one."""

    def distances(self, n: int) -> range:
        return others(n)

    def threads(self, n: int) -> tuple[int, ...]:
        return (max(n - 2, 0), *[1] * (n - 2))

    def scratch(self, n: int) -> int:
        return 1

    def run(
        self,
        seat: Seat,
        root: RankInt,
        sources: Sequence[Chunks],
        targets: Sequence[Region],
        places: Sequence[Chunks],
    ) -> None:
        """Scatter every one of the root's `sources` into `targets`, by way of `places`."""
        is_root = bool(seat.me == root)
        stays = targets[0].buffer == ChannelBuffer.CCL
        if is_root and not (stays and sources[0].buffer == ChannelBuffer.CCL):
            for source, target in zip(sources, targets, strict=True):
                seat.main.copy(target, source[seat.me])
        seat.pre_sync()
        if is_root:
            peers = [i for i in range(seat.n) if seat.me != i]
            for thread, i in zip(seat.threads, peers, strict=True):
                moves = [
                    (place[i], source[i]) for place, source in zip(places, sources, strict=True)
                ]
                send_write(thread, seat.channel(i), moves)
        else:
            recv_write(seat.main, seat.channel(root))
        seat.post_sync()
        if not is_root and not stays:
            for target, place in zip(targets, places, strict=True):
                copy(seat.main, target, place[seat.me])
