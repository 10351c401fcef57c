"""AllReduceMeshOneshotLoopExecutor: HCCL's chunk mesh, whose sums do not depend on timing."""

from hccl_executors.one_mesh import mesh_request, require_inline_reduce, require_mesh
from hccl_executors.sources import like_april
from hccl_executors.templates.chunk_mesh import chunk_mesh_all_reduce
from hccl_py.orchestration import Region
from hccl_py.plugins.executor import (
    BaseExecutor,
    Mode,
    OpParam,
    Rank,
    RankView,
    ResourceRequest,
    Topology,
    Unsuitable,
)


class AllReduceMeshOneshotLoopExecutor(BaseExecutor):
    """AllReduce inside one full mesh: every chunk is cut into p - 1 parts that meet the peers in
    turn, so that all links are busy and the order of every sum is fixed.

    Two ranks read each other's data at once, in one step. In graph mode, where HCCL's selection
    never takes them here, they have the chunk mesh, too: what HCCL reads changes meanwhile.
    """

    op = "all_reduce"
    algorithm = "level0:mesh"
    fidelity = like_april(
        "coll_all_reduce_mesh_oneshot_executor", "all_reduce_chunk_mesh", "all_reduce_mesh_oneshot"
    )

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs one server with a full mesh that reduces."""
        return require_mesh(topology) and require_inline_reduce(op, topology)

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """A stream and a link per peer; a round fills CCL_Out."""
        return mesh_request(op, rank, max_bytes=rank.ccl_bytes)

    def orchestrate(self, op: OpParam, rank: Rank[Region, Region]) -> None:
        """Chunk mesh, or one read."""
        graph = op.mode is Mode.GRAPH
        work = rank.user_out if graph else rank.ccl_out.head(rank.user_in.size)
        if rank.size > 2 or (rank.size == 2 and graph):
            chunk_mesh_all_reduce(rank, rank.level0, work)
            return
        if not op.in_place:
            rank.main.copy(rank.user_out, rank.user_in)
        if rank.size == 2:
            rank.main.copy(work, rank.user_in)
            partner = rank.level0[rank.level0.id ^ 1]
            with rank.main.phase("one shot"), partner.handshake(rank.main):
                rank.main.reduce(rank.user_out, partner.remote(work))
