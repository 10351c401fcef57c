"""AllReduceMeshOpbaseLoopExecutor: two-shot all-reduce over the full mesh of one server, in op-base
mode.
"""

from hccl_executors.one_mesh import require_inline_reduce, require_mesh_op_base
from hccl_executors.sources import like_april
from hccl_executors.templates.mesh_all_reduce import mesh_all_reduce
from hccl_executors.templates.mesh_collect import ALIGN
from hccl_py.orchestration import Region
from hccl_py.plugins.executor import (
    BaseExecutor,
    OpParam,
    PlaneRequest,
    Rank,
    RankView,
    ResourceRequest,
    Topology,
    Unsuitable,
)


class AllReduceMeshOpbaseLoopExecutor(BaseExecutor):
    """AllReduce inside one full mesh: reduce-scatter into CCL_Out, then all-gather from it.

    User memory is read and written directly at this rank's end, so CCL_Out holds only the own chunk
    and a round takes p times the buffer. Chunks are multiples of 16 KiB; a buffer that has less
    takes as much as it holds, where HCCL would write beyond it.
    """

    op = "all_reduce"
    algorithm = "level0:mesh"
    order = "arrival"
    fidelity = like_april("coll_all_reduce_mesh_opbase_executor", "all_reduce_mesh_opbase")

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs one server with a full mesh that reduces, and CCL buffers."""
        return require_mesh_op_base(op, topology) and require_inline_reduce(op, topology)

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """One sub stream and one link per peer."""
        size = rank.level0.size
        most = rank.ccl_bytes // ALIGN * ALIGN * size or rank.ccl_bytes
        return ResourceRequest(
            planes=(PlaneRequest("level0", "mesh"),),
            sub_streams=size - 1,
            max_count=most // op.unit,
        )

    def orchestrate(self, op: OpParam, rank: Rank[Region, Region]) -> None:
        """Reduce chunk r at rank r, then read every chunk."""
        if rank.size == 1:
            if not op.in_place:
                rank.main.copy(rank.user_out, rank.user_in)
            return
        inputs, outputs = (
            memory.split(rank.size, ALIGN) for memory in (rank.user_in, rank.user_out)
        )
        mesh_all_reduce(rank, rank.level0, inputs, outputs, rank.ccl_out)
