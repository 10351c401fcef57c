"""Reduce-scatter in chunks over a mesh: in every step a rank adds one chunk to each other rank's
slice, another chunk for every rank, so that no two write to the same place.

The part that HCCL's InsTempAllReduceMesh1DTwoShotMeshChunk and
InsTempReduceScatterMesh1DMeshChunk share. With n ranks there are n - 1 chunks and steps.
"""

from __future__ import annotations

from collections.abc import Sequence

from hccl_executors.aicpu.all_reduce import evened, rounded_up
from hccl_executors.aicpu.duplex import send_recv_read, send_recv_write
from hccl_executors.aicpu.seats import Seat, Template, cut, post_sync, pre_sync
from hccl_py.orchestration import Chunks, Region
from hccl_py.values import RankInt


def thread_of(seat: Seat, peer: RankInt) -> int:
    """Return the number of the thread that serves a rank: all but the own one, in their order."""
    return int(peer) if peer < seat.me else int(peer) - 1


def reduce_in_chunks(
    seat: Seat, given: Sequence[Region], places: Sequence[Region], chunks: Sequence[Sequence[int]]
) -> None:
    """Add the slices in `given` to their owners' `places`; `chunks` has the bytes of the chunks of
    every slice.
    """
    n, subs = seat.n, seat.threads[1:]
    for step in range(n - 1):
        seat_wakes = 1 if step else 0
        pre_sync(seat.main, subs, seat_wakes)
        for number in range(n - 1):
            k = step + number + 1
            peer = int((seat.me - (k if k < n else k + 1)) % n)
            pieces = [cut(region, chunks[peer])[number] for region in (places[peer], given[peer])]
            channel = seat.channel(peer)
            thread = seat.threads[thread_of(seat, peer)]
            send_recv_write(thread, channel, channel, [(pieces[0], pieces[1])], reduces=True)
        first = 0 if step == n - 2 else len(subs)
        post_sync(seat.main, subs, range(first, first + len(subs)))


class AllReduceInChunks(Template):
    """AllReduce in a mesh, added in chunks on the way: reduce-scatter in n - 1 steps, then all
    read.

    HCCL: InsTempAllReduceMesh1DTwoShotMeshChunk. Main serves a rank, too, so that the last
    thread has nothing to do.
    """

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


PAGE = 4096
"""Bytes to which large chunks are cut."""


class ReduceScatterInChunks(Template):
    """ReduceScatter in a mesh, added in chunks on the way, in n - 1 steps.

    HCCL: InsTempReduceScatterMesh1DMeshChunk. Every thread, main too, serves a rank.
    """

    def threads(self, n: int) -> tuple[int, ...]:
        return (2 * (n - 2), *[2] * (n - 2))

    def scratch(self, n: int) -> int:
        return n - 1

    def run(self, seat: Seat, source: Chunks, target: Region, buffer: Region, unit: int) -> None:
        """Reduce my block of all inputs into `target`."""
        n, place = seat.n, buffer.head(target.size)
        seat.main.copy(place, source[seat.me])
        chunks = chunk_sizes(int(target.size), n - 1, unit)
        reduce_in_chunks(seat, list(source), [place] * n, [chunks] * n)
        seat.main.copy(target, place)


def chunk_sizes(size: int, n: int, unit: int) -> list[int]:
    """Return the bytes of n chunks: pages where there is so much, the last takes the rest."""
    if size // n < PAGE:
        return evened(size, n, unit)
    each = size // n // PAGE * PAGE
    return [*[each] * (n - 1), size - (n - 1) * each]
