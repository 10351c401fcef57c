"""Reduce-scatter in chunks over a mesh: in every step a rank adds one chunk to each other rank's
slice, another chunk for every rank, so that no two write to the same place.

The part that HCCL's InsTempAllReduceMesh1DTwoShotMeshChunk and
InsTempReduceScatterMesh1DMeshChunk share. With n ranks there are n - 1 chunks and steps.
"""

from __future__ import annotations

from collections.abc import Sequence

from hccl_executors.aicpu.duplex import send_recv_write
from hccl_executors.aicpu.seats import Seat, cut, post_sync, pre_sync
from hccl_py.orchestration import Region
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
