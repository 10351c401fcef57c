"""BroadCastSmallCountExecutor: whole buffers along a tree inside one server."""

from hccl_executors.one_mesh import require_mesh
from hccl_executors.sources import like_april
from hccl_executors.templates.mesh_tree import mesh_tree_broadcast
from hccl_py.enums import Buffer
from hccl_py.plugins.executor import (
    AnyRank,
    BaseExecutor,
    Mode,
    OpParam,
    PlaneRequest,
    RankView,
    ResourceRequest,
    Topology,
    Unsuitable,
    require,
)


class BroadCastSmallCountExecutor(BaseExecutor):
    """Broadcast of small data along a binomial tree, near ranks first: ceil(log2 p)(α + nβ).

    The buffer goes from CCL_In to CCL_In, and in the last step to user memory. Where a call has an
    output of its own at the root, which HCCL's API has not, the root copies to it first. HCCL
    requests scratch in graph mode that it does not use.
    """

    op = "broadcast"
    algorithm = "level0:NA;level1:tree"
    fidelity = like_april("coll_broadcast_smallcount_executor", "broadcast_oneshot")

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs one server with a full mesh, and three ranks."""
        ranks = topology.size
        return require_mesh(topology) and require(
            (ranks > 2, f"has a first and a last step, which are not the same: {ranks} ranks")
        )

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """Links to all peers; a round fills CCL_In."""
        graph = op.mode is Mode.GRAPH
        work = Buffer.USER_OUT if graph else Buffer.CCL_IN
        steps = (rank.size - 1).bit_length()
        return ResourceRequest(
            planes=(PlaneRequest("level0", "mesh", work, work),),
            sub_streams=1,
            scratch_bytes=(steps - 1) * op.size if graph else 0,
            max_count=rank.ccl_bytes // op.unit,
        )

    def orchestrate(self, op: OpParam, rank: AnyRank) -> None:
        """Broadcast from the root's user memory to that of all others."""
        graph, root = op.mode is Mode.GRAPH, op.root or 0
        if rank.id == root and not graph and not op.in_place:
            rank.main.copy(rank.user_out, rank.user_in)
        work = rank.user_out if graph else rank.ccl_in.head(rank.user_out.size)
        mesh_tree_broadcast(rank, rank.level0, work, root)
