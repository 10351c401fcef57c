"""RunAlltoAllVContinuousPipeline: three stages at work between and inside the servers of A2."""

from __future__ import annotations

from hccl_executors.all_to_all.continuous import RankSlots, continuous_pipeline
from hccl_executors.all_to_all.layout import layout_of
from hccl_executors.all_to_all.two_levels import even, levels_of, shape_of
from hccl_executors.sources import like_newest
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

TEMPLATE = "temp_alltoallv/alltoallv_continuous_pipeline"


class RunAlltoAllVContinuousPipeline(BaseExecutor):
    """AlltoAllV in op-base mode.

    A block of n parts crosses to the equal device of another server while the block before it is
    read inside its server and the block after it is staged (continuous.py). With S servers and
    parts of k pieces, (S - 1)k + 2 turns, on one sub stream for each peer of the server and one for
    other servers: n.
    """

    op = "all_to_all_v"
    algorithm = "level0:mesh;level1:pipeline"
    fidelity = like_newest("coll_all_to_all_v_continuous_pipeline_executor", TEMPLATE)

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs several servers of equal sizes, of several devices, and CCL buffers."""
        return even(op, topology) and require(
            (op.mode is Mode.OP_BASE, "works through CCL buffers: op-base mode only"),
            (len(topology.servers) > 1, "needs several servers"),
            (topology.has_sdma_inside, "needs SDMA between all devices of a server"),
            (topology.servers[0] > 1, "needs several devices in a server"),
        )

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """Links to the server and to equal devices; parts are cut by themselves, so there are no
        rounds.
        """
        inner, outer = levels_of(rank)
        return ResourceRequest(
            planes=(
                PlaneRequest(inner, "mesh"),
                PlaneRequest(outer, "mesh", rdma=rank.topology.has_rdma),
            ),
            sub_streams=shape_of(rank).devices,
        )

    def orchestrate(self, op: OpParam, rank: AnyRank) -> None:
        shape = shape_of(rank)
        slots = RankSlots.of(rank.ccl_bytes, shape.servers, shape.devices, op.unit)
        outer = rank.plane(levels_of(rank)[1])
        continuous_pipeline(rank, shape, outer, layout_of(op, rank.size), slots)
