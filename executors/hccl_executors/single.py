"""Executors of a communicator of one rank: a copy from input to output, nothing else."""

from __future__ import annotations

from typing import Any

from hccl_py.executor import (
    OpParam,
    Rank,
    RankView,
    ResourceRequest,
    Topology,
    Unsuitable,
    require,
)
from hccl_py.ops import ALL_TO_ALL

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


class AllGatherSingleExecutor(Single):
    """AllGather of one rank."""

    op = "all_gather"


class ReduceScatterSingleExecutor(Single):
    """ReduceScatter of one rank."""

    op = "reduce_scatter"


class ReduceSingleExecutor(Single):
    """Reduce of one rank."""

    op = "reduce"


class ScatterSingleExecutor(Single):
    """Scatter of one rank."""

    op = "scatter"


class BroadCastSingleExecutor(Single):
    """Broadcast of one rank; HCCL has no executor for it."""

    op = "broadcast"


class GatherSingleExecutor(Single):
    """Gather of one rank; HCCL has no executor for it."""

    op = "gather"


class RunAlltoAllSingleExecutor(Single):
    """The all_to_all family of one rank."""

    op = ALL_TO_ALL
