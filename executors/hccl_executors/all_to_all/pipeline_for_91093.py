"""RunAlltoAllVPipelineFor91093: three stages at work between and inside the servers of A3."""

from __future__ import annotations

from hccl_executors.all_to_all.continuous import LANES, RankSlots, continuous_pipeline
from hccl_executors.all_to_all.continuous_pipeline import TEMPLATE
from hccl_executors.all_to_all.layout import layout_of
from hccl_executors.all_to_all.two_levels import even, shape_of
from hccl_executors.sources import like_newest
from hccl_py.call.ops import ALL_TO_ALL
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


class RunAlltoAllVPipelineFor91093(BaseExecutor):
    """AlltoAll, AlltoAllV and AlltoAllVC in op-base mode, between superpods of one server each.

    The stages are those of RunAlltoAllVContinuousPipeline (continuous.py). A server of A3 may have
    16 devices: eight sub streams at most talk to its peers, the k-th also to the one that is eight
    further, and one more to other servers.
    """

    op = ALL_TO_ALL
    algorithm = "level0:mesh;level1:pipeline"
    fidelity = like_newest("coll_all_to_all_v_pipeline_for_910_93_executor", TEMPLATE)

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs superpods of one server each, all of the same number of devices, and CCL
        buffers.
        """
        pods = len(topology.superpods)
        return even(op, topology) and require(
            (op.mode is Mode.OP_BASE, "works through CCL buffers: op-base mode only"),
            (pods > 1, "needs several superpods"),
            (topology.has_sdma_inside, "needs SDMA between all devices of a server"),
            (pods == len(topology.servers), "needs superpods of one server"),
            (topology.servers[0] > 1, "needs several devices in a server"),
        )

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """Links to the server and to equal devices; parts are cut by themselves, so there are no
        rounds.
        """
        return ResourceRequest(
            planes=(PlaneRequest("level0", "mesh"), PlaneRequest("level2", "mesh")),
            sub_streams=min(int(rank.level0.size) - 1, LANES) + 1,
        )

    def orchestrate(self, op: OpParam, rank: AnyRank) -> None:
        shape = shape_of(rank)
        slots = RankSlots.of(rank.ccl_bytes, shape.servers, shape.devices, op.unit)
        continuous_pipeline(rank, shape, rank.level2, layout_of(op, rank.size), slots)
