"""Executors of a communicator of one rank: a copy from input to output, nothing else."""

from __future__ import annotations

from hccl_executors.sources import like_april
from hccl_py.call.ops import ALL_TO_ALL
from hccl_py.plugins.executor import (
    AnyRank,
    BaseExecutor,
    OpParam,
    RankView,
    ResourceRequest,
    Topology,
    Unsuitable,
    ours,
    require,
)


class Single(BaseExecutor):
    """One local copy; nothing in place."""

    algorithm = "level0:NA"

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        return require((topology.size == 1, f"needs one rank, there are {topology.size}"))

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        return ResourceRequest()

    def orchestrate(self, op: OpParam, rank: AnyRank) -> None:
        """Copy the input to the output, unless they are the same memory."""
        if not op.in_place:
            rank.main.copy(rank.user_out, rank.user_in)


class AllReduceSingleExecutor(Single):
    """AllReduce of one rank."""

    op = "all_reduce"
    fidelity = like_april("coll_all_reduce_single_rank_executor")


class AllGatherSingleExecutor(Single):
    """AllGather of one rank."""

    op = "all_gather"
    fidelity = like_april("coll_all_gather_single_rank_executor")


class ReduceScatterSingleExecutor(Single):
    """ReduceScatter of one rank."""

    op = "reduce_scatter"
    fidelity = like_april("coll_reduce_scatter_single_rank_executor")


class ReduceSingleExecutor(Single):
    """Reduce of one rank."""

    op = "reduce"
    fidelity = like_april("coll_reduce_single_rank_executor")


class ScatterSingleExecutor(Single):
    """Scatter of one rank."""

    op = "scatter"
    fidelity = like_april("coll_scatter_single_rank_executor")


class BroadCastSingleExecutor(Single):
    """Broadcast of one rank; HCCL has no executor for it."""

    op = "broadcast"
    fidelity = ours("HCCL returns from a broadcast of one rank before it selects anything.")


class GatherSingleExecutor(Single):
    """Gather of one rank; HCCL has no executor for it."""

    op = "gather"
    fidelity = ours("HCCL has no gather in its API.")


class RunAlltoAllSingleExecutor(Single):
    """The all_to_all family of one rank."""

    op = ALL_TO_ALL
    fidelity = like_april("coll_all_to_all_single_rank_executor")
