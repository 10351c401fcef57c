"""AllReduce in a mesh, added in chunks on the way: reduce-scatter in n - 1 steps, then all read.

HCCL: InsTempAllReduceMesh1DTwoShotMeshChunk.
"""

from __future__ import annotations

from hccl_executors.aicpu.ar_two_shot import evened, rounded_up
from hccl_executors.aicpu.chunk_steps import reduce_in_chunks, thread_of
from hccl_executors.aicpu.duplex import send_recv_read
from hccl_executors.aicpu.seats import Seat, Template, cut
from hccl_py.orchestration import Region


class AllReduceInChunks(Template):
    """The template; main serves a rank, too, so that the last thread has nothing to do."""

    def threads(self, n: int) -> tuple[int, ...]:
        return (3 * (n - 1), *[3] * (n - 1))

    def scratch(self, n: int) -> int:
        return 2

    def run(self, seat: Seat, source: Region, target: Region, buffer: Region, unit: int) -> None:
        """Reduce all inputs into `target`."""
        n = seat.n
        sizes = rounded_up(int(source.size), n, unit)
        given, places, result = (cut(region, sizes) for region in (source, buffer, target))
        seat.main.copy(places[seat.me], given[seat.me])
        chunks = [evened(size, n - 1, unit) for size in sizes]
        reduce_in_chunks(seat, list(given), list(places), chunks)
        seat.pre_sync(2)
        for r in range(n):
            if seat.me == r:
                seat.main.copy(result[r], places[r])
            else:
                channel, thread = seat.channel(r), seat.threads[thread_of(seat, r)]
                send_recv_read(thread, channel, channel, [(result[r], places[r])])
        seat.post_sync(3 * (n - 1) - 1, -1)
