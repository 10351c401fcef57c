"""Executors of a communicator of one rank: a copy from input to output, nothing else."""

from __future__ import annotations

from typing import Any

from hccl_executors.sources import hccl_executor
from hccl_py.call.ops import ALL_TO_ALL
from hccl_py.plugins.executor import (
    OpParam,
    Rank,
    RankView,
    ResourceRequest,
    Topology,
    Unsuitable,
    require,
)
from hccl_py.plugins.fidelity import ours, same

__all__ = [
    "AllGatherSingleExecutor",
    "AllReduceSingleExecutor",
    "BroadCastSingleExecutor",
    "GatherSingleExecutor",
    "ReduceScatterSingleExecutor",
    "ReduceSingleExecutor",
    "RunAlltoAllSingleExecutor",
    "ScatterSingleExecutor",
]


class Single:
    """One local copy; nothing in place."""

    algorithm = "level0:NA"

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs a communicator of one rank."""
        return require((topology.size == 1, f"needs one rank, there are {topology.size}"))

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """Nothing."""
        return ResourceRequest()

    def orchestrate(self, op: OpParam, rank: Rank[Any, Any]) -> None:
        """Copy the input to the output, unless they are the same memory."""
        if not op.in_place:
            rank.main.copy(rank.user_out, rank.user_in)


class AllReduceSingleExecutor(Single):
    """AllReduce of one rank."""

    op = "all_reduce"
    fidelity = same(
        hccl_executor("coll_all_reduce/coll_all_reduce_single_rank_executor.cc"),
    )


class AllGatherSingleExecutor(Single):
    """AllGather of one rank."""

    op = "all_gather"
    fidelity = same(
        hccl_executor("coll_all_gather/coll_all_gather_single_rank_executor.cc"),
    )


class ReduceScatterSingleExecutor(Single):
    """ReduceScatter of one rank."""

    op = "reduce_scatter"
    fidelity = same(
        hccl_executor("coll_reduce_scatter/coll_reduce_scatter_single_rank_executor.cc"),
    )


class ReduceSingleExecutor(Single):
    """Reduce of one rank."""

    op = "reduce"
    fidelity = same(
        hccl_executor("coll_reduce/coll_reduce_single_rank_executor.cc"),
    )


class ScatterSingleExecutor(Single):
    """Scatter of one rank."""

    op = "scatter"
    fidelity = same(
        hccl_executor("coll_scatter/coll_scatter_single_rank_executor.cc"),
    )


class BroadCastSingleExecutor(Single):
    """Broadcast of one rank; HCCL has no executor for it."""

    op = "broadcast"
    fidelity = ours(
        "HCCL returns from a broadcast of one rank before it selects anything.",
    )


class GatherSingleExecutor(Single):
    """Gather of one rank; HCCL has no executor for it."""

    op = "gather"
    fidelity = ours(
        "HCCL has no gather in its API.",
    )


class RunAlltoAllSingleExecutor(Single):
    """The all_to_all family of one rank."""

    op = ALL_TO_ALL
    fidelity = same(
        hccl_executor("coll_all_to_all/coll_all_to_all_single_rank_executor.cc"),
    )
