"""ReduceScatterDeterExecutor: everybody's chunks come to lie side by side and are reduced there."""

from hccl_executors.templates.local_reduce import local_tree
from hccl_executors.templates.mesh_push import aligned, beside, collect
from hccl_py.enums import Buffer
from hccl_py.executor import (
    Mode,
    OpParam,
    PlaneRequest,
    Rank,
    RankView,
    ResourceRequest,
    Topology,
)
from hccl_py.orchestration import Chunks, Region

__all__ = ["Deter", "ReduceScatterDeterExecutor"]

ALIGN = 16384
"""HCCL_MIN_SLICE_ALIGN of 910B and 910_93."""

FEW = 3
"""Sub streams over several servers."""


class Deter:
    """Bring everybody's chunk r to rank r, side by side, and reduce it there in a tree; the order
    is fixed, and links need not reduce. Runs everywhere.

    In op-base mode one server uses CCL_Out, and rounds are HCCL's where a buffer is so large that
    one can follow its 16 KiB; several servers use both CCL buffers and share three sub streams.
    """

    algorithm = "level0:mesh"
    order = "fixed"

    def suits(self, op: OpParam, topology: Topology) -> bool:
        """Runs everywhere, uneven servers included."""
        return True

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """Links to everybody; in graph mode scratch for a chunk of everybody."""
        graph, peers = op.mode is Mode.GRAPH, rank.size - 1
        is_one = bool(rank.level0.size == rank.size)
        streams = peers - graph if is_one else min(FEW, peers)
        return ResourceRequest(
            planes=(
                PlaneRequest(
                    "level0" if is_one else "flat",
                    "mesh",
                    *((Buffer.USER_IN, Buffer.SCRATCH) if graph else ()),
                ),
            ),
            sub_streams=max(streams, 0),
            scratch_bytes=aligned(op.extent * op.unit) * rank.size if graph and peers else 0,
            max_count=_count(op, rank, is_one),
        )

    def orchestrate(self, op: OpParam, rank: Rank[Chunks, Region]) -> None:
        """Collect, then reduce into the output."""
        is_one = bool(rank.level0.size == rank.size)
        plane = rank.level0 if is_one else rank.flat
        memories = [rank.ccl_out] if is_one else [rank.ccl_in, rank.ccl_out]
        if op.mode is Mode.GRAPH:
            memories = [rank.scratch]
        places = beside(memories, rank.user_in.largest, rank.size - 1)
        theirs = collect(rank, plane, rank.user_in, places)
        rank.main.copy(rank.user_out, rank.user_in[rank.id])
        local_tree(rank, [rank.user_out, *theirs])


def _count(op: OpParam, rank: RankView, is_one: bool) -> int:
    """Return the elements of a round's largest chunk."""
    peers = max(rank.size - 1, 1)
    if not is_one:
        return rank.ccl_bytes // -(-peers // 2) // 128 * 128 // op.unit
    hccl = (rank.ccl_bytes - ALIGN * rank.size) // op.unit // peers // ALIGN * ALIGN
    return hccl if hccl > 0 else rank.ccl_bytes // peers // 128 * 128 // op.unit


class ReduceScatterDeterExecutor(Deter):
    """ReduceScatter whose sums do not depend on timing: α + nβ/p + log2(p)·nγ/p in one server."""

    op = "reduce_scatter"
