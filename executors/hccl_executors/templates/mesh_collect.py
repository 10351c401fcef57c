"""Collect in a mesh: chunk r of every rank comes to rank r and lies there beside the others, for a
local reduce in a fixed order; for SDMA links.

    place k of rank r has the chunk of the rank k + 1 below

Every place begins at a multiple of 16 KiB behind an offset of the rank's own, if that fits, or else
of 512 bytes, or else right behind the one before: so that source and destination of a write are
aligned alike. User memory is read directly, and the own chunk goes to the result directly.

Cost for p ranks and n bytes: α + nβ/p; β is per link, links are parallel. Source: HCCL's
ReduceScatterLocalReduce (hcomm b5f3e5b, alg_template/temp_reduce_scatter).
"""

from typing import NamedTuple

from hccl_executors.templates.mesh_peers import empty_copy, exchange_acks, peer_assignments
from hccl_py.orchestration import Chunks, Plane, Region
from hccl_py.plugins.executor import AnyRank
from hccl_py.values import RankInt

ALIGN = 16384
"""HCCL_MIN_SLICE_ALIGN_910B: bytes to which slices of A2 and A3 are rounded up."""

ON_CHIP = 512
"""HCCL_MIN_SLICE_ALIGN_ONCHIP: the same where memory is short."""

SMALL = 32 << 10
"""Bytes of a chunk up to which places begin at the beginning of memory."""


class Places(NamedTuple):
    """Places of chunks of `size` bytes in `memory` of p members; `whole` has the bytes of a rank's
    chunk in all rounds, which shifts the places of its owner.
    """

    memory: Region
    size: int
    whole: int
    p: int

    def of(self, owner: RankInt) -> list[Region]:
        """Return the p - 1 places of a member."""
        first, stride = self._offset(owner), self._stride()
        starts = [first + k * stride for k in range(self.p - 1)]
        return [self.memory[start : start + self.size] for start in starts]

    def _offset(self, owner: RankInt) -> RankInt:
        offset: RankInt = owner * self.whole % ALIGN if self.size > SMALL else 0
        return offset

    def _stride(self) -> int:
        furthest = max(int(self._offset(owner)) for owner in range(self.p))
        room = int(self.memory.size) - furthest
        for align in (ALIGN, ON_CHIP):
            stride = -(-self.size // align) * align
            if stride * (self.p - 1) <= room:
                return stride
        return self.size


def collect_beside(
    rank: AnyRank, plane: Plane, chunks: Chunks, mine: Region, places: Places
) -> list[Region]:
    """Leave in `mine` the own chunk, and chunk r of every peer in places of rank r, which are
    returned. Main serves the last peer; the last sub stream copies the own chunk as well, or main
    in the end where that overwrites a chunk of the input that goes elsewhere: in place, which
    HCCL's does not look at.
    """
    p, empty = int(plane.size), places.memory
    members = peer_assignments(rank, plane, by_main=True)
    with rank.main.phase("collect"):
        empty_copy(rank, empty)
        with rank.fork(max(p - 2, 0)):
            exchange_acks(members)
        empty_copy(rank, empty)
        with rank.fork() as subs:
            for k, (stream, peer, link) in enumerate(members):
                stream.copy(link.remote(places.of(peer)[k]), chunks[peer])
                link.tx_data_signal(stream)
                link.rx_data_signal(stream)
            if not rank.is_in_place:
                (subs[-1] if subs else rank.main).copy(mine, chunks[plane.id])
        empty_copy(rank, empty)
        if rank.is_in_place:
            rank.main.copy(mine, chunks[plane.id])
    return places.of(plane.id)
