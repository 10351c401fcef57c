"""Executors on the flat plane: one algorithm over all ranks, whatever connects them.

They run everywhere, on uneven servers too: HCCL's fallback for every op. One composition, and a row
per executor.
"""

from __future__ import annotations

from typing import Any

from hccl_executors.levels import LEVELS, Level, choices, fidelities
from hccl_executors.sources import hccl_executor
from hccl_executors.staging import Links, delivered, request, staged
from hccl_py.call.ops import OPS
from hccl_py.plugins.executor import OpParam, Rank, RankView, ResourceRequest, Topology
from hccl_py.plugins.fidelity import Fidelity, ours, same

__all__ = [
    "AllGatherComm",
    "AllReduceComm",
    "BroadCastComm",
    "GatherComm",
    "ReduceComm",
    "ReduceScatterComm",
    "ScatterCommExecutor",
]


def _words(op: str, *ringed: str) -> dict[str, Fidelity]:
    """Return how words stand to HCCL's executors over all ranks, some of which are rings there."""
    found = fidelities(op)
    return {**found, **dict.fromkeys(ringed, found["ring"])}


class Flat:
    """Stage the input, run the template of `op.level1` over all ranks on one stream, deliver.

    As in HCCL, words of `ringed` are a ring here, whatever they are between servers.
    """

    op: str
    ringed: tuple[str, ...] = ()

    def suits(self, op: OpParam, topology: Topology) -> bool:
        """Runs everywhere, uneven servers included."""
        return True

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """The template's links, all by RDMA where some have to be, as HCCL's on a plane; a round
        fills the CCL buffer that it works in.
        """
        peers = self._level(op).peers(rank.flat, op.root or 0)
        return request(op, rank, Links("flat", peers, rank.topology.has_rdma))

    def orchestrate(self, op: OpParam, rank: Rank[Any, Any]) -> None:
        """Stage, run, deliver."""
        work = staged(op, rank)
        root = (op.root,) if OPS[self.op].rooted else ()
        on_a3 = rank.topology.product.device == "910_93"
        self._level(op).run(rank.main, rank.flat, work, *root, meeting=on_a3)
        delivered(op, rank, work)

    def _level(self, op: OpParam) -> Level:
        return LEVELS[self.op]["ring" if op.level1 in self.ringed else op.level1]


class AllReduceComm(Flat):
    """AllReduce over all ranks: by default a ring, 2(p - 1) steps, every chunk reduced in ring
    order, so that results do not depend on timing.
    """

    op = "all_reduce"
    algorithm = f"level0:NA;level1:{choices('all_reduce')}"
    ringed = ("H-D_R", "AHC", "AHC_BROKE")
    fidelity = same(
        hccl_executor("coll_all_reduce/coll_all_reduce_comm_executor.cc"),
    ).with_cases(_words("all_reduce", *ringed))


class AllGatherComm(Flat):
    """AllGather over all ranks: by default a ring, p - 1 steps."""

    op = "all_gather"
    algorithm = f"level0:NA;level1:{choices('all_gather')}"
    fidelity = same(
        hccl_executor("coll_all_gather/coll_all_gather_comm_executor.cc"),
    ).with_cases(fidelities("all_gather"))


class ReduceScatterComm(Flat):
    """ReduceScatter over all ranks: by default a ring, p - 1 steps."""

    op = "reduce_scatter"
    algorithm = f"level0:NA;level1:{choices('reduce_scatter')}"
    fidelity = same(
        hccl_executor("coll_reduce_scatter/coll_reduce_scatter_comm_executor.cc"),
    ).with_cases(fidelities("reduce_scatter"))


class BroadCastComm(Flat):
    """Broadcast from the root over all ranks: by default along a ring, chunk by chunk."""

    op = "broadcast"
    algorithm = f"level0:NA;level1:{choices('broadcast')}"
    ringed = ("H-D_R",)
    fidelity = same(
        hccl_executor("coll_broadcast/coll_broadcast_comm_executor.cc"),
    ).with_cases(_words("broadcast", *ringed))


class ReduceComm(Flat):
    """Reduce to the root over all ranks: along a ring, whatever the word."""

    op = "reduce"
    algorithm = f"level0:NA;level1:{choices('reduce')}"
    ringed = ("H-D_R", "NHR")
    fidelity = same(
        hccl_executor("coll_reduce/coll_reduce_comm_executor.cc"),
    ).with_cases(_words("reduce", *ringed))


class ScatterCommExecutor(Flat):
    """Scatter from the root over all ranks: by default along a ring."""

    op = "scatter"
    algorithm = f"level0:NA;level1:{choices('scatter')}"
    fidelity = same(
        hccl_executor("coll_scatter/coll_scatter_comm_executor.cc"),
    ).with_cases(fidelities("scatter"))


class GatherComm(Flat):
    """Gather at the root over all ranks: by default along a ring; HCCL has no executor for it."""

    op = "gather"
    algorithm = f"level0:NA;level1:{choices('gather')}"
    fidelity = ours(
        "HCCL has no gather in its API.",
    )
