"""Rings inside the servers, any algorithm between them: Atlas training servers and Atlas A2.

In HCCL's order, which keeps what goes between servers in one piece of the user's buffer:

                     first                  then                   last
    all_gather       all-gather inside      all-gather between
    reduce_scatter   reduce-scatter betw.   reduce-scatter inside
    all_reduce       reduce-scatter inside  all-reduce between     all-gather inside
    broadcast        scatter inside         broadcast between      all-gather inside
    reduce           reduce-scatter inside  reduce between         gather inside
    scatter          scatter between        scatter inside

There are as many rings inside as the product has, one sub stream for each but the last: four with
the eight devices of an Atlas 800 (model 9000), else one. Only the root's server scatters and
gathers inside in broadcast and reduce, only the root's plane takes part between servers in scatter.
Servers of several superpods form one plane.

Cost: inside, with n devices in k rings, (n-1)(α + N/(nk)·β) each way; between servers that of the
algorithm, for N/n bytes (all_reduce, broadcast, reduce) or all N bytes (the others). Source: HCCL's
public documents.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hccl_executors.levels import choices
from hccl_executors.rings.inside import Inside, has_equal_servers
from hccl_executors.rings.places import blocks
from hccl_executors.rings.wires import Wire, holds_root, links
from hccl_executors.staging import SLOTTED, delivered, request, staged
from hccl_py.executor import (
    OpParam,
    Rank,
    RankView,
    ResourceRequest,
    Topology,
    Unsuitable,
    require,
)
from hccl_py.orchestration import Chunks, Region

__all__ = [
    "AllGatherRingExecutor",
    "AllReduceRingExecutor",
    "BroadCastRingExecutor",
    "ReduceRingPlusHd",
    "ReduceScatterRingExecutor",
    "ScatterRingExecutor",
]


def _all_gather(inside: Inside, between: Wire, slots: Chunks, root: int) -> None:
    planes = (inside.rank.level0, between.plane)
    inside.all_gather(blocks(slots, planes, 0))
    between.run("all_gather", blocks(slots, planes, 1))


def _reduce_scatter(inside: Inside, between: Wire, slots: Chunks, root: int) -> None:
    planes = (inside.rank.level0, between.plane)
    between.run("reduce_scatter", blocks(slots, planes, 1))
    inside.reduce_scatter(blocks(slots, planes, 0))


def _all_reduce(inside: Inside, between: Wire, work: Region, root: int) -> None:
    slots = work.split(inside.rank.level0.size)
    inside.reduce_scatter(slots)
    between.run("all_reduce", slots[inside.rank.level0.id])
    inside.all_gather(slots)


def _broadcast(inside: Inside, between: Wire, work: Region, root: int) -> None:
    slots = work.split(inside.rank.level0.size)
    if holds_root([between.plane], root):
        inside.scatter(slots, root)
    between.run("broadcast", slots[inside.rank.level0.id], root)
    inside.all_gather(slots)


def _reduce(inside: Inside, between: Wire, work: Region, root: int) -> None:
    slots = work.split(inside.rank.level0.size)
    inside.reduce_scatter(slots)
    between.run("reduce", slots[inside.rank.level0.id], root)
    if holds_root([between.plane], root):
        inside.gather(slots, root)


def _scatter(inside: Inside, between: Wire, slots: Chunks, root: int) -> None:
    planes = (inside.rank.level0, between.plane)
    if holds_root(planes[:1], root):
        between.run("scatter", blocks(slots, planes, 1), root)
    inside.scatter(blocks(slots, planes, 0), root)


_ORDERS: dict[str, Callable[[Inside, Wire, Any, int], None]] = {
    "all_gather": _all_gather,
    "reduce_scatter": _reduce_scatter,
    "all_reduce": _all_reduce,
    "broadcast": _broadcast,
    "reduce": _reduce,
    "scatter": _scatter,
}


class ServerRings:
    """Stage the input, go through both levels in the op's order, deliver.

    Without inline reduce, data lands in the other CCL buffer (HCCL: in scratch), or in scratch in
    graph mode.
    """

    op: str

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs as many devices in every server, and ranks numbered server by server."""
        return require(
            (has_equal_servers(topology), "needs servers alike, and ranks numbered by server")
        )

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """The rings' links, those between servers, and a sub stream for every ring but one."""
        between = rank.plane(_between(rank))
        inside = [(ring.name, "ring") for ring in rank.rings]
        asked = request(
            op,
            rank,
            *inside,
            *links(op.name, [(between, op.level1)], op.root or 0),
            sub_streams=len(inside) - 1,
        )
        parts = rank.size if op.name in SLOTTED else 1
        return replace(asked, max_count=rank.ccl_bytes // (parts * op.unit))

    def orchestrate(self, op: OpParam, rank: Rank[Any, Any]) -> None:
        """Stage, run, deliver."""
        work = staged(op, rank)
        between = Wire(rank.main, rank.plane(_between(rank)), op.level1)
        _ORDERS[op.name](Inside(rank), between, work, op.root or 0)
        delivered(op, rank, work)


def _between(rank: RankView | Rank[Any, Any]) -> str:
    """Return the plane that joins all servers."""
    return "level1" if rank.level1.size == rank.level12.size else "level12"


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
