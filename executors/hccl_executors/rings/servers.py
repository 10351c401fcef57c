"""Rings inside the servers, any algorithm between them: Atlas training servers and Atlas A2.

What they do in which order is in two_levels.py; here are the demands, the resources, and a row per
executor.

There are as many rings inside as the product has, one sub stream for each but the last: four with
the eight devices of an Atlas 800 (model 9000), else one. Servers of several superpods form one
plane.

Inside, n devices in k rings take (n-1)(α + N/(nk)·β) each way. Source: HCCL's public documents.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hccl_executors.levels import choices
from hccl_executors.outer_levels import OuterLevel, all_servers, links
from hccl_executors.rings.inside import Rings
from hccl_executors.staging import delivered, request, staged
from hccl_executors.two_levels import COMPOSITIONS, TwoLevels
from hccl_py.executor import (
    OpParam,
    Rank,
    RankView,
    ResourceRequest,
    Topology,
    Unsuitable,
    require,
)
from hccl_py.ops import OPS

__all__ = [
    "AllGatherRingExecutor",
    "AllReduceRingExecutor",
    "BroadCastRingExecutor",
    "ReduceRingPlusHd",
    "ReduceScatterRingExecutor",
    "ScatterRingExecutor",
]


class ServerRings:
    """Stage the input, go through both levels in the op's order, deliver.

    Without inline reduce, data lands in the other CCL buffer (HCCL: in scratch), or in scratch in
    graph mode.
    """

    op: str

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs as many devices in every server, and ranks numbered server by server."""
        return require(
            (topology.has_equal_servers, "needs servers alike, and ranks numbered by server")
        )

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """The rings' links, those between servers, and a sub stream for every ring but one."""
        between = rank.plane(all_servers(rank))
        inside = [(ring.name, "ring") for ring in rank.rings]
        asked = request(
            op,
            rank,
            *inside,
            *links(op.name, [(between, op.level1)], op.root or 0),
            sub_streams=len(inside) - 1,
        )
        parts = rank.size if OPS[op.name].has_slots else 1
        return replace(asked, max_count=rank.ccl_bytes // (parts * op.unit))

    def orchestrate(self, op: OpParam, rank: Rank[Any, Any]) -> None:
        """Stage, run, deliver."""
        work = staged(op, rank)
        between = OuterLevel(rank.main, rank.plane(all_servers(rank)), op.level1)
        COMPOSITIONS[op.name](TwoLevels(rank.level0, Rings(rank), between), work, op.root or 0)
        delivered(op, rank, work)


class AllReduceRingExecutor(ServerRings):
    """AllReduce in three phases; every chunk is reduced in the order of its ring."""

    op = "all_reduce"
    algorithm = f"level0:ring;level1:{choices('all_reduce')}"


class AllGatherRingExecutor(ServerRings):
    """AllGather in two phases, in CCL_Out, or in the output in graph mode."""

    op = "all_gather"
    algorithm = f"level0:ring;level1:{choices('all_gather')}"


class ReduceScatterRingExecutor(ServerRings):
    """ReduceScatter in two phases."""

    op = "reduce_scatter"
    algorithm = f"level0:ring;level1:{choices('reduce_scatter')}"


class BroadCastRingExecutor(ServerRings):
    """Broadcast in three phases."""

    op = "broadcast"
    algorithm = f"level0:ring;level1:{choices('broadcast')}"


class ReduceRingPlusHd(ServerRings):
    """Reduce in three phases, by default with H-D_R between servers, as its name says."""

    op = "reduce"
    algorithm = f"level0:ring;level1:{choices('reduce')}"


class ScatterRingExecutor(ServerRings):
    """Scatter in two phases."""

    op = "scatter"
    algorithm = f"level0:ring;level1:{choices('scatter')}"
