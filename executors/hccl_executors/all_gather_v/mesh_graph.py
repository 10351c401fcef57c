"""AllGatherVMeshGraphExecutor: every rank reads every peer's block in the output."""

from hccl_executors.one_mesh import mesh_request, require_mesh
from hccl_executors.sources import like_april
from hccl_executors.templates.mesh_in_place import mesh_all_gather_meeting
from hccl_py.orchestration import Chunks, Region
from hccl_py.plugins.executor import (
    BaseExecutor,
    Mode,
    OpParam,
    Rank,
    RankView,
    ResourceRequest,
    Topology,
    Unsuitable,
    require,
)


class AllGatherVMeshGraphExecutor(BaseExecutor):
    """AllGatherV inside one full mesh, in graph mode: α + nβ for the largest block, no staging."""

    op = "all_gather_v"
    algorithm = "level0:mesh"
    fidelity = like_april("coll_all_gather_v_mesh_graph_executor")

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs one server with a full mesh, and outputs that peers can read."""
        return require_mesh(topology) and require(
            (op.mode is Mode.GRAPH, "reads from peers' outputs: graph mode only")
        )

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """A stream and a link per peer."""
        return mesh_request(op, rank, max_bytes=rank.ccl_bytes)

    def orchestrate(self, op: OpParam, rank: Rank[Region, Chunks]) -> None:
        """Put the own block in its place, then read from everyone."""
        rank.main.copy(rank.user_out[rank.id], rank.user_in)
        mesh_all_gather_meeting(rank, rank.level0, rank.user_out)
