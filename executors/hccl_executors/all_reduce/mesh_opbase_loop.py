"""AllReduceMeshOpbaseLoopExecutor: two-shot all-reduce over the full mesh of one server, in op-base
mode.
"""

from hccl_executors.one_mesh import in_one_mesh_in_op_base_mode
from hccl_executors.templates.mesh import mesh_all_gather, mesh_reduce_scatter
from hccl_py.executor import (
    OpParam,
    PlaneRequest,
    Rank,
    RankView,
    ResourceRequest,
    Topology,
    Unsuitable,
)
from hccl_py.orchestration import Region
from hccl_py.orchestration.region import SLICE_ALIGN

__all__ = ["AllReduceMeshOpbaseLoopExecutor"]


class AllReduceMeshOpbaseLoopExecutor:
    """AllReduce inside one full mesh: reduce-scatter into CCL_Out, then all-gather from it.

    User memory is read and written directly at this rank's end, so CCL_Out holds only the own chunk
    and a round takes p times the buffer. Two steps, n/p over each link in each. Without inline
    reduce the peers' chunks need CCL_In, one slot each, and a round takes as much as the buffer.
    """

    op = "all_reduce"
    algorithm = "level0:mesh"
    order = "arrival"

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs one server with a full mesh, and CCL buffers."""
        return in_one_mesh_in_op_base_mode(op, topology)

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """One sub stream and one link per peer."""
        size = rank.level0.size
        chunk_limit = rank.ccl_bytes if rank.inline_reduce else rank.ccl_bytes // size
        return ResourceRequest(
            planes=(PlaneRequest("level0", "mesh"),),
            sub_streams=size - 1,
            max_count=chunk_limit // SLICE_ALIGN * SLICE_ALIGN * size // op.unit,
        )

    def orchestrate(self, op: OpParam, rank: Rank[Region, Region]) -> None:
        """Reduce chunk r at rank r, then read every chunk."""
        mesh = rank.level0
        inputs, outputs = rank.user_in.split(mesh.size), rank.user_out.split(mesh.size)
        land = rank.ccl_out.head(inputs.largest)
        mesh_reduce_scatter(rank, mesh, inputs, land)
        mesh_all_gather(rank, mesh, outputs, land)
