"""AllReduceComm: one ring over all ranks, whatever connects them."""

from hccl_executors.templates.ring import ring_all_gather, ring_reduce_scatter
from hccl_py.enums import Buffer
from hccl_py.executor import Mode, OpParam, PlaneRequest, Rank, RankView, ResourceRequest, Topology
from hccl_py.orchestration import Region

__all__ = ["AllReduceComm"]


class AllReduceComm:
    """AllReduce on the flat plane: ring reduce-scatter, then ring all-gather, in place in exported
    memory.

    2(p - 1) steps, 2(p - 1)/p of the data over each link. Every chunk is reduced in ring order, so
    results do not depend on timing. Without inline reduce, chunks land beside first: in CCL_Out, or
    in scratch in graph mode.
    """

    op = "all_reduce"
    algorithm = "level0:NA;level1:ring"

    def suits(self, op: OpParam, topology: Topology) -> bool:
        """Runs everywhere, uneven servers included."""
        return True

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """Links to both neighbours; a round fills CCL_In."""
        beside = op.mode is Mode.GRAPH and not rank.inline_reduce and rank.size > 1
        memories = (Buffer.USER_OUT, Buffer.SCRATCH) if beside else (None, None)
        return ResourceRequest(
            planes=(PlaneRequest("flat", "ring", *memories),),
            scratch_bytes=op.size if beside else 0,
            max_count=rank.ccl_bytes // op.unit,
        )

    def orchestrate(self, op: OpParam, rank: Rank[Region, Region]) -> None:
        """Stage the input, reduce and gather its chunks, deliver."""
        work = rank.stage_in()
        chunks = work.split(rank.size)
        ring_reduce_scatter(rank.main, rank.flat, chunks)
        ring_all_gather(rank.main, rank.flat, chunks)
        rank.deliver(work)
