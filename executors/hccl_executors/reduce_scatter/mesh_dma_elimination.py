"""ReduceScatterMeshDmaEliminationExecutor: every rank adds to every peer's landing place."""

from hccl_executors.one_mesh import mesh_request, require_mesh_op_base
from hccl_executors.sources import like_april
from hccl_executors.staging import aligned
from hccl_executors.templates.mesh import mesh_reduce_scatter
from hccl_executors.templates.recursive_halving import recursive_halving_reduce_scatter
from hccl_py.orchestration import Chunks, Region
from hccl_py.plugins.executor import (
    BaseExecutor,
    OpParam,
    Rank,
    RankView,
    ResourceRequest,
    Topology,
    Unsuitable,
    ours,
)

HALVED, SMALL = 8, 32 << 10
"""Devices of a server, and bytes of a chunk up to which they are halved."""


class DmaElimination(BaseExecutor):
    """Reduce chunk r in CCL_Out of rank r, straight from the peers' user memory; copy it out.

    Chunks may differ in size. Without inline reduce they come to lie side by side in CCL_In, which
    holds one per rank, and the order of sums is fixed.
    """

    algorithm = "level0:mesh"
    order = "arrival"

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs one server with a full mesh, and CCL buffers."""
        return require_mesh_op_base(op, topology)

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """A stream and a link per peer; the largest chunk of a round fills CCL_Out."""
        side_by_side = 1 if rank.inline_reduce else rank.size
        return mesh_request(op, rank, max_bytes=rank.ccl_bytes // side_by_side // 128 * 128)

    def orchestrate(self, op: OpParam, rank: Rank[Chunks, Region]) -> None:
        """Reduce in CCL_Out, copy to the output."""
        mine = rank.user_out.size
        land = rank.ccl_out.head(aligned(rank.user_in.largest))
        mesh_reduce_scatter(rank, rank.level0, rank.user_in, land)
        rank.main.copy(rank.user_out, land.head(mine))


class ReduceScatterMeshDmaEliminationExecutor(DmaElimination):
    """ReduceScatter inside one full mesh: α + nβ/p, and no copy but those of the own chunk. Chunks
    of at most 32 KiB among eight devices are halved recursively instead, on main and one sub
    stream.
    """

    op = "reduce_scatter"
    fidelity = like_april(
        "coll_reduce_scatter_mesh_dma_elimination",
        "reduce_scatter_mesh_atomic_opbase",
        "reduce_scatter_hd_stage",
    ).with_cases({"local_reduce": ours("HCCL's is for links that reduce on their way only.")})

    def orchestrate(self, op: OpParam, rank: Rank[Chunks, Region]) -> None:
        """Halve what is small, else reduce in CCL_Out; copy to the output."""
        if not _halves(op, rank):
            super().orchestrate(op, rank)
            return
        recursive_halving_reduce_scatter(
            rank, rank.level0, rank.user_in, rank.ccl_out, rank.user_out
        )


def _halves(op: OpParam, rank: Rank[Chunks, Region]) -> bool:
    """True where HCCL takes few steps for few bytes: MultiStreamReduceScatterMeshAtomic of
    `coll_comm_executor.cc`. Half of the chunks go to CCL_Out.
    """
    fits = op.size <= SMALL and rank.size // 2 * op.size <= rank.ccl_bytes
    return rank.size == HALVED and rank.inline_reduce and fits
