"""AllGatherComm: one ring over all ranks, whatever connects them."""

from hccl_executors.templates.ring import ring_all_gather
from hccl_py.executor import OpParam, PlaneRequest, Rank, RankView, ResourceRequest, Topology
from hccl_py.orchestration import Chunks, Region

__all__ = ["AllGatherComm"]


class AllGatherComm:
    """AllGather on the flat plane with a ring; neighbours may be linked by SDMA or RDMA.

    p - 1 steps, each rank sends and receives (p - 1)/p of the result.
    """

    op = "all_gather"
    algorithm = "level0:NA;level1:ring"

    def suits(self, op: OpParam, topology: Topology) -> bool:
        """Runs everywhere, uneven servers included."""
        return True

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """Links to both neighbours; all slots of a round share CCL_Out."""
        return ResourceRequest(
            planes=(PlaneRequest("flat", "ring"),),
            max_count=rank.ccl_bytes // rank.size // 128 * 128 // op.unit,
        )

    def orchestrate(self, op: OpParam, rank: Rank[Region, Chunks]) -> None:
        """Put the own input into its slot, pass slots round the ring, deliver them."""
        slots = rank.stage_out()
        rank.main.copy(slots[rank.id], rank.user_in)
        ring_all_gather(rank.main, rank.flat, slots)
        rank.deliver(slots)
