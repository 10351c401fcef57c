"""Scatter in a mesh: the root writes its block into every rank's HCCL buffer.

HCCL: InsTempScatterMesh1D.
"""

from __future__ import annotations

from collections.abc import Sequence

from hccl_executors.aicpu.duplex import recv_write, send_write
from hccl_executors.aicpu.seats import Seat, SplitTemplate, copy, place_at
from hccl_py.enums import ChannelBuffer
from hccl_py.orchestration import Chunks, Region
from hccl_py.values import RankInt


class MeshScatter(SplitTemplate):
    """The template; all ranks wake all threads, and those beside the root use one for a channel.
    Where the root is no member, nothing is moved.
    """

    def scratch(self, n: int) -> int:
        return 1

    def run(
        self,
        seat: Seat,
        root: RankInt | None,
        sources: Sequence[Chunks],
        targets: Sequence[Region],
        places: Sequence[Chunks],
    ) -> None:
        """Scatter every one of the root's `sources` into `targets`, by way of `places`."""
        is_root = root is not None and bool(seat.me == root)
        stays = targets[0].buffer == ChannelBuffer.CCL
        if is_root and not (stays and sources[0].buffer == ChannelBuffer.CCL):
            for source, target in zip(sources, targets, strict=True):
                seat.main.copy(target, source[seat.me])
        seat.pre_sync()
        if is_root:
            self._send(seat, sources, places)
        elif root is not None:
            for thread, layer in zip(seat.threads, self.ways.layers, strict=False):
                recv_write(thread, seat.channel(root, layer))
        seat.post_sync()
        if not is_root and not stays:
            for target, place in zip(targets, places, strict=True):
                copy(seat.main, target, place[seat.me])

    def _send(self, seat: Seat, sources: Sequence[Chunks], places: Sequence[Chunks]) -> None:
        """Send from the root. Where it is the last rank, whose block may be longer than others, it
        sends as much to all, as HCCL does.
        """
        threads = iter(seat.threads)
        is_last = bool(seat.me == seat.n - 1)
        for i in range(seat.n):
            if seat.me == i:
                continue
            whole = sources[0][seat.n - 1 if is_last else i].size
            parts = self.ways.parts(seat.n, whole, seat.unit)
            for layer, (begin, size) in zip(self.ways.layers, parts, strict=True):
                moves = [
                    (place_at(place[i], begin, size), place_at(source[i], begin, size))
                    for place, source in zip(places, sources, strict=True)
                ]
                send_write(next(threads), seat.channel(i, layer), moves)
