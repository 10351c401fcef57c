"""AllGatherV and ReduceScatterV in a mesh: blocks are written to slots in the peers' HCCL buffers.

HCCL: InsTempAllGatherVMesh1D, InsTempReduceScatterVMesh1D. Every thread, main too, serves a rank.
"""

from __future__ import annotations

from hccl_executors.aicpu.all_reduce import reduce_others
from hccl_executors.aicpu.duplex import send_recv_write
from hccl_executors.aicpu.seats import Seat, Template
from hccl_py.orchestration import Chunks, Region


class MeshOfBlocks(Template):
    """The resources of both templates."""

    def subs(self, n: int) -> int:
        return max(n - 2, 0)


class MeshAllGatherV(MeshOfBlocks):
    """The template of AllGatherV."""

    def run(self, seat: Seat, source: Region, target: Chunks, places: Chunks) -> None:
        """Gather blocks into the chunks of `target`."""
        mine = target[seat.me]
        seat.main.copy(mine, source)
        seat.pre_sync()
        for d, thread in enumerate(seat.threads[: seat.n - 1], 1):
            channel = seat.channel((seat.me + d) % seat.n)
            send_recv_write(thread, channel, channel, [(places[seat.me].head(mine.size), mine)])
        seat.post_sync()
        for i in range(seat.n):
            if seat.me != i:
                seat.main.copy(target[i], places[i].head(target[i].size))


class MeshReduceScatterV(MeshOfBlocks):
    """The template of ReduceScatterV."""

    def run(self, seat: Seat, source: Chunks, target: Region, places: Chunks) -> None:
        """Reduce my block of all inputs into `target`."""
        seat.pre_sync()
        for d, thread in enumerate(seat.threads[: seat.n - 1], 1):
            peer = (seat.me + d) % seat.n
            channel, block = seat.channel(peer), source[peer]
            send_recv_write(thread, channel, channel, [(places[seat.me].head(block.size), block)])
        seat.post_sync()
        seat.main.copy(target, source[seat.me])
        reduce_others(seat, target, [place.head(target.size) for place in places])
