"""AllReduceDoublingDirect: doubling whose sums lie in user memory."""

from hccl_executors.all_reduce.doubling import can_double
from hccl_py.executor import (
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
from hccl_py.orchestration import Region

__all__ = ["AllReduceDoublingDirect"]


class AllReduceDoublingDirect:
    """AllReduce of small data in log2 p steps, on one stream, for SDMA links.

    The sum lies in user memory and is never staged. Before every step it is copied to a CCL buffer,
    the other one each time, where the partner reads it.
    """

    op = "all_reduce"
    algorithm = "level0:NA;level1:H-D_R"
    order = "fixed"

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs what doubling needs, SDMA links, and op-base mode: data must fit a CCL buffer."""
        fits = can_double(op, topology)
        return fits and require(
            (not topology.has_rdma, "reads from partners: SDMA links only"),
            (op.mode is Mode.OP_BASE, "works through CCL buffers: op-base mode only"),
        )

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """Links to the partners; a round fills a CCL buffer."""
        return ResourceRequest(
            planes=(PlaneRequest("flat", "rhd"),), max_count=rank.ccl_bytes // op.unit
        )

    def orchestrate(self, op: OpParam, rank: Rank[Region, Region]) -> None:
        """Copy, and add the partner's, in every step."""
        main, total = rank.main, rank.user_out
        if not op.in_place:
            main.copy(total, rank.user_in)
        for step in main.steps("all-reduce", rank.size.bit_length() - 1):
            shown = (rank.ccl_out if step % 2 else rank.ccl_in).head(total.size)
            partner = rank.flat[rank.id ^ (1 << step)]
            main.copy(shown, total)
            partner.tx_ack(main)  # you may read mine
            partner.rx_ack(main)
            main.reduce(total, partner.remote(shown))
            partner.tx_data_signal(main)  # I have read yours
            partner.rx_data_signal(main)
