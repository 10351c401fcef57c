"""AllGatherVMeshOpbaseExecutor: every rank reads every peer's block."""

from hccl_executors.one_mesh import mesh_request, require_mesh_op_base
from hccl_executors.sources import like_april
from hccl_executors.templates.mesh import mesh_all_gather
from hccl_py.orchestration import Chunks, Region
from hccl_py.plugins.executor import (
    BaseExecutor,
    OpParam,
    Rank,
    RankView,
    ResourceRequest,
    Topology,
    Unsuitable,
)


class AllGatherVMeshOpbaseExecutor(BaseExecutor):
    """AllGatherV inside one full mesh, in op-base mode: α + nβ for the largest block.

    A block lies at the beginning of its rank's CCL_Out; blocks lie apart in user memory only.
    """

    op = "all_gather_v"
    algorithm = "level0:mesh"
    fidelity = like_april("coll_all_gather_v_mesh_executor")

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs one server with a full mesh, and CCL buffers."""
        return require_mesh_op_base(op, topology)

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """A stream and a link per peer; a round's largest block fills CCL_Out but for one block of
        alignment.
        """
        return mesh_request(op, rank, max_bytes=(rank.ccl_bytes - 16384) // 128 * 128)

    def orchestrate(self, op: OpParam, rank: Rank[Region, Chunks]) -> None:
        """Stage, then read from everyone."""
        rank.main.copy(rank.ccl_out.head(rank.user_in.size), rank.user_in)
        mesh_all_gather(rank, rank.level0, rank.user_out, rank.ccl_out)
