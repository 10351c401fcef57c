"""ReduceScatter in a mesh, added in chunks on the way, in n - 1 steps.

HCCL: InsTempReduceScatterMesh1DMeshChunk.
"""

from __future__ import annotations

from hccl_executors.aicpu.ar_two_shot import evened
from hccl_executors.aicpu.chunk_steps import reduce_in_chunks
from hccl_executors.aicpu.seats import Seat, Template
from hccl_py.orchestration import Chunks, Region

PAGE = 4096
"""Bytes to which large chunks are cut."""


class ReduceScatterInChunks(Template):
    """The template; every thread, main too, serves a rank."""

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
