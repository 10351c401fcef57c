"""Executors of two dies of a package, which meet over both links at once: SIO and HCCS.

Each die reads the first half of what the other one has over SIO on one stream, and the second half
over the switch of HCCS on another one. HCCL's selection has them switched off; they run by name.

Cost for blocks of m bytes: α + m/2·β, where β is that of the slower link, which is HCCS.
"""

from __future__ import annotations

from collections.abc import Sequence

from hccl_executors.one_mesh import require_inline_reduce
from hccl_executors.sources import like_newest
from hccl_py.orchestration import Chunks, Region, Stream
from hccl_py.orchestration.region import SLICE_ALIGN
from hccl_py.plugins.executor import (
    AnyRank,
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
from hccl_py.values import RankInt


class AllGatherHccsSioExecutor(BaseExecutor):
    """AllGather of two dies. In op-base mode two streams more copy the own block meanwhile."""

    op = "all_gather"
    algorithm = "level0:mesh"
    fidelity = like_newest(
        "coll_all_gather_hccs_sio_executor",
        "all_gather_hccs_sio",
        "base/communicator/calc_hccs_plus_sio_transport_req",
    )

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs the two dies of one package, and an output beside the input."""
        return _are_dies_of_one_package(op, topology)

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """Both links, and two streams for each; a round fills CCL_In."""
        return _request(op, rank, sub_streams=4)

    def orchestrate(self, op: OpParam, rank: Rank[Region, Chunks]) -> None:
        """Show the own block, then read the other one in halves."""
        main, own = rank.main, rank.user_out[rank.id]
        shown = rank.user_in
        if op.mode is Mode.OP_BASE:
            shown = rank.ccl_in.head(rank.user_in.size)
            main.copy(shown, rank.user_in)
        else:
            main.copy(own, rank.user_in)
        with rank.fork(4) as (first, second, *copying):
            _read_halves(op, rank, [first, second], rank.user_out[_other(rank)], shown)
            if op.mode is Mode.OP_BASE:
                pairs = zip(_halves(op, own), _halves(op, rank.user_in), strict=True)
                for sub, (to, frm) in zip(copying, pairs, strict=True):
                    sub.copy(to, frm)


class ReduceScatterHccsSioExecutor(BaseExecutor):
    """ReduceScatter of two dies: what is read is added to the output on its way."""

    op = "reduce_scatter"
    algorithm = "level0:mesh"
    fidelity = like_newest(
        "coll_reduce_scatter_hccs_sio_executor",
        "reduce_scatter_hccs_sio",
        "base/communicator/calc_hccs_plus_sio_transport_req",
    )

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs the same, and links that reduce on their way."""
        return _are_dies_of_one_package(op, topology) and require_inline_reduce(op, topology)

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """Both links, and a stream for each; a round fills CCL_In."""
        return _request(op, rank, sub_streams=2)

    def orchestrate(self, op: OpParam, rank: Rank[Chunks, Region]) -> None:
        """Take the own part, show the other one, then add the peer's in halves."""
        rank.main.copy(rank.user_out, rank.user_in[rank.id])
        shown = rank.user_in[rank.id]
        if op.mode is Mode.OP_BASE:
            shown = rank.ccl_in.head(rank.user_out.size)
            rank.main.copy(shown, rank.user_in[_other(rank)])
        with rank.fork(2) as subs:
            _read_halves(op, rank, subs, rank.user_out, shown, reduce=True)


def _are_dies_of_one_package(op: OpParam, topology: Topology) -> bool | Unsuitable:
    """Demand two ranks that SIO joins, too, and buffers that do not overlap: peers read what a rank
    has while it writes its output.
    """
    ranks = topology.size
    return require(
        (topology.product.shape == "dies", "needs links of HCCS and SIO at once, which A3 has"),
        (ranks == 2, f"works between two dies, there are {ranks} ranks"),
        (topology.has_whole_packages, "needs the two dies of one package"),
        (not topology.has_rdma, "needs SDMA between the dies"),
        (not op.in_place, "reads from peers what it would have written over: not in place"),
    )


def _request(op: OpParam, rank: RankView, sub_streams: int) -> ResourceRequest:
    return ResourceRequest(
        planes=(PlaneRequest("level0", "mesh"), PlaneRequest("hccs", "mesh")),
        sub_streams=sub_streams,
        max_count=rank.ccl_bytes // SLICE_ALIGN * SLICE_ALIGN // op.unit,
    )


def _other(rank: AnyRank) -> RankInt:
    return (rank.id + 1) % 2


def _halves(op: OpParam, whole: Region) -> tuple[Region, Region]:
    """Cut in the middle; the second half has an odd element."""
    middle = whole.size // op.unit // 2 * op.unit
    return whole[:middle], whole[middle:]


def _read_halves(
    op: OpParam,
    rank: AnyRank,
    subs: Sequence[Stream],
    to: Region,
    shown: Region,
    *,
    reduce: bool = False,
) -> None:
    """Read what the other die shows, half over SIO and half over HCCS, each on its stream."""
    links = [rank.plane(name)[_other(rank)] for name in ("level0", "hccs")]
    for sub, link, mine, theirs in zip(
        subs, links, _halves(op, to), _halves(op, shown), strict=True
    ):
        link.tx_ack(sub)  # mine is there
        link.rx_ack(sub)
        (sub.reduce if reduce else sub.copy)(mine, link.remote(theirs))
        link.tx_data_signal(sub)  # I have read yours
        link.rx_data_signal(sub)
