"""AllReduceReducePlusBcast: rank 0 takes everybody's data and gives the sum to everybody."""

from typing import Any

from hccl_executors.sources import hccl_executor
from hccl_executors.staging import delivered, request, staged
from hccl_executors.templates.star import star_all_reduce, star_pattern
from hccl_py.executor import OpParam, Rank, RankView, ResourceRequest, Topology
from hccl_py.fidelity import ours

__all__ = ["AllReduceReducePlusBcast"]


class AllReduceReducePlusBcast:
    """AllReduce by a reduce to rank 0 and a broadcast from it, on one stream; runs everywhere.

    Rank 0 adds in rank order, so that the result is that of a loop over the ranks. Only links to
    rank 0 are requested, where HCCL requests a mesh.
    """

    op = "all_reduce"
    algorithm = "level0:NA;level1:star"
    order = "rank"
    fidelity = ours(
        "A star to rank 0, where HCCL runs its reduce and its broadcast by halving and doubling.",
        hccl_executor("coll_all_reduce/coll_all_reduce_reduce_plus_bcast_executor.cc"),
    )

    def suits(self, op: OpParam, topology: Topology) -> bool:
        """Runs everywhere, uneven servers included."""
        return True

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """A star of links; a round fills CCL_In."""
        return request(op, rank, ("flat", star_pattern(0)))

    def orchestrate(self, op: OpParam, rank: Rank[Any, Any]) -> None:
        """Stage, reduce and broadcast, deliver."""
        work = staged(op, rank)
        star_all_reduce(rank.main, rank.flat, work)
        delivered(op, rank, work)
