"""Stars over all ranks: the root talks to all other ranks.

HCCL has this algorithm for communicators with CPU ranks only; as executors these are ours, to
compare with: the least steps, all of the load at one rank. AllReduceStar is the parameter server.
"""

from __future__ import annotations

from collections.abc import Callable

from hccl_executors.sources import april
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
from hccl_py.plugins.executor import (
    AnyRank,
    BaseExecutor,
    OpParam,
    RankView,
    ResourceRequest,
    Topology,
    ours,
)

_TEMPLATES: dict[str, Callable[..., None]] = {
    "all_reduce": star_all_reduce,
    "broadcast": star_broadcast,
    "reduce": star_reduce,
    "scatter": star_scatter,
    "gather": star_gather,
}


class StarExecutor(BaseExecutor):
    """Stage the input, run the template over all ranks on one stream, deliver."""

    op: str
    algorithm = "level0:star"

    def suits(self, op: OpParam, topology: Topology) -> bool:
        return True

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """Links between the root and all other ranks."""
        return request(op, rank, ("flat", star_pattern(op.root or 0)))

    def orchestrate(self, op: OpParam, rank: AnyRank) -> None:
        work = staged(op, rank)
        root = (op.root,) if OPS[op.name].rooted else ()
        _TEMPLATES[op.name](rank.main, rank.flat, work, *root)
        delivered(op, rank, work)


class AllReduceStar(StarExecutor):
    """AllReduce as a reduce to rank 0, in rank order, and a broadcast from it."""

    op = "all_reduce"
    fidelity = ours("HCCL has stars for ranks on a CPU only, and none for all_reduce.")


class BroadCastStar(StarExecutor):
    """Broadcast: the root offers the data to all others at once."""

    op = "broadcast"
    fidelity = ours("HCCL has this template for ranks on a CPU only.", *april("broadcast_star"))


class ReduceStar(StarExecutor):
    """Reduce: the root takes one rank's data after the other, in rank order."""

    op = "reduce"
    fidelity = ours("HCCL has stars for ranks on a CPU only, and none for reduce.")


class ScatterStar(StarExecutor):
    """Scatter: the root offers all others their slots at once."""

    op = "scatter"
    fidelity = ours("HCCL has stars for ranks on a CPU only, and none for scatter.")


class GatherStar(StarExecutor):
    """Gather: the root takes the slots of all others."""

    op = "gather"
    fidelity = ours("HCCL has no gather in its API.", *april("gather_star"))
