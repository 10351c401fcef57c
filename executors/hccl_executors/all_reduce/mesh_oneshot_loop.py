"""AllReduceMeshOneshotLoopExecutor: HCCL's chunk mesh, whose sums do not depend on timing."""

from hccl_executors.one_mesh import in_one_mesh, mesh_request
from hccl_executors.templates.mesh_in_place import mesh_all_gather_in_place
from hccl_executors.templates.mesh_reduce import mesh_reduce_scatter_in_turn
from hccl_py.enums import Buffer
from hccl_py.executor import OpParam, Rank, RankView, ResourceRequest, Topology, Unsuitable
from hccl_py.orchestration import Region

__all__ = ["AllReduceMeshOneshotLoopExecutor", "chunk_mesh"]


def chunk_mesh(rank: Rank[Region, Region]) -> None:
    """Reduce chunk r at rank r, part by part from one peer after the other; then gather."""
    work = rank.stage_in()
    chunks = work.split(rank.level0.size)
    mesh_reduce_scatter_in_turn(rank, rank.level0, chunks)
    mesh_all_gather_in_place(rank, rank.level0, chunks)
    rank.deliver(work)


class AllReduceMeshOneshotLoopExecutor:
    """AllReduce inside one full mesh: every chunk is cut into p - 1 parts that meet the peers in
    turn, so that all links are busy and the order of every sum is fixed.

    Where links cannot reduce, what arrives lands in CCL_Out, or in as much scratch as the data in
    graph mode.
    """

    op = "all_reduce"
    algorithm = "level0:mesh"
    order = "fixed"

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs one server with a full mesh."""
        return in_one_mesh(topology)

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """A stream and a link per peer; a round fills CCL_In."""
        lands = not rank.inline_reduce and rank.size > 1
        return mesh_request(
            op,
            rank,
            max_bytes=rank.ccl_bytes,
            scratch_bytes=op.size if lands else 0,
            memories=(Buffer.USER_OUT, Buffer.SCRATCH) if lands else (None, None),
        )

    def orchestrate(self, op: OpParam, rank: Rank[Region, Region]) -> None:
        """Chunk mesh."""
        chunk_mesh(rank)
