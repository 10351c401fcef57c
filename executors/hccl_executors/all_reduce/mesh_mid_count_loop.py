"""AllReduceMeshMidCountLoopExecutor: two steps over a mesh, whose sums do not depend on timing."""

from hccl_executors.one_mesh import in_one_mesh, mesh_request
from hccl_executors.templates.local_reduce import local_tree
from hccl_executors.templates.mesh import mesh_all_gather
from hccl_executors.templates.mesh_in_place import mesh_all_gather_in_place
from hccl_executors.templates.mesh_push import aligned, beside, collect
from hccl_py.enums import Buffer
from hccl_py.executor import Mode, OpParam, Rank, RankView, ResourceRequest, Topology, Unsuitable
from hccl_py.orchestration import Region

__all__ = ["AllReduceMeshMidCountLoopExecutor"]


class AllReduceMeshMidCountLoopExecutor:
    """AllReduce inside one full mesh: everybody's chunk r goes to rank r, side by side, is reduced
    there in a tree, and goes to everybody.

    User memory is written to peers and read into directly. CCL_In holds the own chunk, CCL_Out the
    peers' ones; scratch does in graph mode, where HCCL asks for none.
    """

    op = "all_reduce"
    algorithm = "level0:mesh"
    order = "fixed"

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs one server with a full mesh."""
        return in_one_mesh(topology)

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """A stream and a link per peer; a round fills CCL_In, where the peers' chunks with their
        alignment fit CCL_Out.
        """
        peers = max(rank.size - 1, 1)
        fits = rank.ccl_bytes // peers // 128 * 128 * rank.size
        chunk = -(-op.size // rank.size)
        return mesh_request(
            op,
            rank,
            max_bytes=min(rank.ccl_bytes, fits),
            scratch_bytes=aligned(chunk) * (rank.size - 1),
            memories=(Buffer.USER_OUT, Buffer.SCRATCH),
        )

    def orchestrate(self, op: OpParam, rank: Rank[Region, Region]) -> None:
        """Collect, reduce, gather."""
        mesh, graph = rank.level0, op.mode is Mode.GRAPH
        inputs, outputs = rank.user_in.split(mesh.size), rank.user_out.split(mesh.size)
        memory = rank.scratch if graph else rank.ccl_out
        places = beside([memory], inputs.largest, rank.size - 1)
        mine = outputs[mesh.id] if graph else rank.ccl_in.head(inputs[mesh.id].size)
        theirs = collect(rank, mesh, inputs, places)
        if not (graph and op.in_place):
            rank.main.copy(mine, inputs[mesh.id])
        local_tree(rank, [mine, *theirs])
        if graph:
            mesh_all_gather_in_place(rank, mesh, outputs)
        else:
            mesh_all_gather(rank, mesh, outputs, rank.ccl_in)
