"""AllReduceDoublingDirect: doubling whose sums lie in user memory."""

from hccl_executors.all_reduce.doubling import can_double
from hccl_executors.sources import like_april
from hccl_executors.templates.doubling import direct_doubling_all_reduce
from hccl_py.orchestration import Region
from hccl_py.plugins.executor import (
    BaseExecutor,
    Mode,
    OpParam,
    PlaneRequest,
    Rank,
    RankView,
    ResourceRequest,
    Topology,
    Unsuitable,
    require,
)


class AllReduceDoublingDirect(BaseExecutor):
    """AllReduce of small data in log2 p steps, on one stream, for SDMA links and up to 8 ranks; the
    last step adds in user memory.
    """

    op = "all_reduce"
    algorithm = "level0:NA;level1:H-D_R"
    fidelity = like_april(
        "310P/coll_all_reduce_for_310p_doubling_direct_executor", "all_reduce_doubling_direct"
    )

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs what doubling needs, SDMA links, few ranks, and op-base mode: data must fit a CCL
        buffer.
        """
        fits, ranks = can_double(op, topology), topology.size
        return fits and require(
            (ranks <= 8, f"has three steps at most: 8 ranks, there are {ranks}"),
            (not topology.has_rdma, "reads from partners: SDMA links only"),
            (op.mode is Mode.OP_BASE, "works through CCL buffers: op-base mode only"),
        )

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """Links to the partners; a round fills a CCL buffer."""
        return ResourceRequest(
            planes=(PlaneRequest("flat", "rhd"),), max_count=rank.ccl_bytes // op.unit
        )

    def orchestrate(self, op: OpParam, rank: Rank[Region, Region]) -> None:
        """Double, from user memory to user memory."""
        if rank.size > 1:
            direct_doubling_all_reduce(rank, rank.flat)
        elif not op.in_place:
            rank.main.copy(rank.user_out, rank.user_in)
