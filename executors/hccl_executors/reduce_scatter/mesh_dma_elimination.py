"""ReduceScatterMeshDmaEliminationExecutor: everybody adds to everybody's landing place."""

from hccl_executors.one_mesh import in_one_mesh_in_op_base_mode, mesh_request
from hccl_executors.sources import hccl_executor, hccl_template
from hccl_executors.templates.mesh import mesh_reduce_scatter
from hccl_executors.templates.mesh_push import aligned
from hccl_py.orchestration import Chunks, Region
from hccl_py.plugins.executor import OpParam, Rank, RankView, ResourceRequest, Topology, Unsuitable
from hccl_py.plugins.fidelity import ours, same

__all__ = ["DmaElimination", "ReduceScatterMeshDmaEliminationExecutor"]


class DmaElimination:
    """Reduce chunk r in CCL_Out of rank r, straight from the peers' user memory; copy it out.

    Chunks may differ in size. Without inline reduce they come to lie side by side in CCL_In, which
    holds one per rank, and the order of sums is fixed.
    """

    algorithm = "level0:mesh"
    order = "arrival"

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs one server with a full mesh, and CCL buffers."""
        return in_one_mesh_in_op_base_mode(op, topology)

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
    """ReduceScatter inside one full mesh: α + nβ/p, and no copy but those of the own chunk."""

    op = "reduce_scatter"
    fidelity = same(
        hccl_executor("coll_reduce_scatter/coll_reduce_scatter_mesh_dma_elimination.cc"),
        hccl_template("temp_reduce_scatter/reduce_scatter_mesh_atomic_opbase.cc"),
    ).with_cases({"local_reduce": ours("HCCL's is for links that reduce on their way only.")})
