"""Stars over all ranks: the root talks to everybody.

HCCL has this algorithm for communicators with CPU ranks only; as executors these are ours, to
compare with: the least steps, all of the load at one rank. AllReduceStar is the parameter server.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hccl_executors.sources import hccl_template
from hccl_executors.staging import delivered, request, staged
from hccl_executors.templates.star import (
    star_all_reduce,
    star_broadcast,
    star_gather,
    star_pattern,
    star_reduce,
    star_scatter,
)
from hccl_py.call.ops import OPS
from hccl_py.plugins.executor import OpParam, Rank, RankView, ResourceRequest, Topology
from hccl_py.plugins.fidelity import ours

__all__ = ["AllReduceStar", "BroadCastStar", "GatherStar", "ReduceStar", "ScatterStar"]

_TEMPLATES: dict[str, Callable[..., None]] = {
    "all_reduce": star_all_reduce,
    "broadcast": star_broadcast,
    "reduce": star_reduce,
    "scatter": star_scatter,
    "gather": star_gather,
}


class StarExecutor:
    """Stage the input, run the template over all ranks on one stream, deliver."""

    op: str
    algorithm = "level0:star"

    def suits(self, op: OpParam, topology: Topology) -> bool:
        """Runs everywhere, uneven servers included."""
        return True

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """Links between the root and everybody else."""
        return request(op, rank, ("flat", star_pattern(op.root or 0)))

    def orchestrate(self, op: OpParam, rank: Rank[Any, Any]) -> None:
        """Stage, run, deliver."""
        work = staged(op, rank)
        root = (op.root,) if OPS[op.name].rooted else ()
        _TEMPLATES[op.name](rank.main, rank.flat, work, *root)
        delivered(op, rank, work)


class AllReduceStar(StarExecutor):
    """AllReduce as a reduce to rank 0, in rank order, and a broadcast from it."""

    op = "all_reduce"
    fidelity = ours(
        "HCCL has stars for ranks on a CPU only, and none for all_reduce.",
    )


class BroadCastStar(StarExecutor):
    """Broadcast: the root offers everybody the data at once."""

    op = "broadcast"
    fidelity = ours(
        "HCCL has this template for ranks on a CPU only.",
        hccl_template("temp_broadcast/broadcast_star.cc"),
    )


class ReduceStar(StarExecutor):
    """Reduce: the root takes one rank's data after the other, in rank order."""

    op = "reduce"
    fidelity = ours(
        "HCCL has stars for ranks on a CPU only, and none for reduce.",
    )


class ScatterStar(StarExecutor):
    """Scatter: the root offers everybody their slot at once."""

    op = "scatter"
    fidelity = ours(
        "HCCL has stars for ranks on a CPU only, and none for scatter.",
    )


class GatherStar(StarExecutor):
    """Gather: the root takes everybody's slot."""

    op = "gather"
    fidelity = ours(
        "HCCL has no gather in its API.",
        hccl_template("temp_gather/gather_star.cc"),
    )
