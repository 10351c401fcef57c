"""AllReduceSmallCountFor910: doubling beside, for small data that links cannot reduce."""

from hccl_executors.all_reduce.doubling import ring_plane
from hccl_executors.sources import like_newest
from hccl_executors.templates.doubling import doubling_all_reduce_beside
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


class AllReduceSmallCountFor910(BaseExecutor):
    """AllReduce of whole buffers in log2 p steps in one server, on main alone: the partner's CCL_In
    is read to CCL_Out and added from there. Partners go by number, as in AllReduceDoubling.
    """

    op = "all_reduce"
    algorithm = "level0:NA;level1:H-D_R"
    fidelity = like_newest(
        "coll_all_reduce_smallcount_for_910_executor", "all_reduce_doubling_local_reduce"
    )

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs one server, a power of two ranks, and op-base mode."""
        ranks = topology.size
        return require(
            (len(topology.servers) == 1, "doubles inside one server only"),
            (not ranks & (ranks - 1), f"needs a power of two ranks, there are {ranks}"),
            (op.mode is Mode.OP_BASE, "works through CCL buffers: op-base mode only"),
        )

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """Links to the partners; a round fills CCL_In."""
        return ResourceRequest(
            planes=(PlaneRequest(ring_plane(rank), "rhd"),), max_count=rank.ccl_bytes // op.unit
        )

    def orchestrate(self, op: OpParam, rank: Rank[Region, Region]) -> None:
        """Stage, double, deliver."""
        work = rank.stage_in()
        doubling_all_reduce_beside(rank.main, rank.plane(ring_plane(rank)), work)
        rank.deliver(work)
