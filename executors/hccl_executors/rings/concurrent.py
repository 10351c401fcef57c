"""Half of the data goes round inside the servers while the other half goes between them: A3.

Links inside and between servers both work all the time, because each half takes its own way:

                     first half (ring 0, on the sub stream)      second half (ring 1, on main)
    all_gather       between superpods, servers, then inside     inside, then between all servers
    reduce_scatter   inside, between servers, then superpods     between all servers, then inside
    all_reduce       reduce-scatter inside, all-reduce between,  reduce-scatter between, all-reduce
                     all-gather inside                           inside, all-gather between

The first half is on planes level1 and level2, the second on level12, which has transports of its
own, so that the two never meet. With one server this is two rings that do not wait for each other.

HCCL's executors of these names use SDMA and RDMA inside of a server at once. Servers here have
links of one kind, so the two kinds are those inside and between servers: this form is ours. It
takes one sub stream in both modes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hccl_executors.levels import choices
from hccl_executors.outer_levels import OuterLevel, all_reduce, links
from hccl_executors.rings.places import sets
from hccl_executors.staging import delivered, request, staged
from hccl_executors.templates.ring import ring_all_gather, ring_all_reduce, ring_reduce_scatter
from hccl_py.call.ops import OPS
from hccl_py.orchestration import Chunks, Region, Stream
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


class ConcurrentHalves:
    """A rank's streams, rings and planes, for either half of the data."""

    def __init__(self, op: OpParam, rank: AnyRank, sub: Stream) -> None:
        self.sub, self.main = sub, rank.main
        self.rings = rank.rings
        self.planes = (rank.level0, rank.level1, rank.level2)
        self.wide = (rank.level0, rank.level12)
        self.outer_levels = [
            (at, OuterLevel(sub, self.planes[at], word))
            for at, word in ((1, op.level1), (2, op.level2))
            if self.planes[at].size > 1
        ]
        self.outer = OuterLevel(rank.main, rank.level12, op.level1)

    def ring0(self, slots: Chunks) -> Chunks:
        """Return slots as the members of the first ring are numbered."""
        return slots.renumbered(self.rings[0].order)

    def ring1(self, slots: Chunks) -> Chunks:
        """Return slots as the members of the second ring are numbered."""
        return slots.renumbered(self.rings[1].order)


def _all_gather(halves: ConcurrentHalves, slots: Chunks) -> None:
    first, second = slots.parts(2)
    for at, outer in reversed(halves.outer_levels):
        outer.run("all_gather", sets(first, halves.planes, at))
    ring_all_gather(halves.sub, halves.rings[0], halves.ring0(sets(first, halves.planes, 0)))
    inside, between = (sets(second, halves.wide, at, inside=True) for at in (0, 1))
    ring_all_gather(halves.main, halves.rings[1], halves.ring1(inside))
    halves.outer.run("all_gather", between)


def _reduce_scatter(halves: ConcurrentHalves, slots: Chunks) -> None:
    first, second = slots.parts(2)
    inside = sets(first, halves.planes, 0)
    ring_reduce_scatter(halves.sub, halves.rings[0], halves.ring0(inside))
    for at, outer in halves.outer_levels:
        outer.run("reduce_scatter", sets(first, halves.planes, at))
    inside, between = (sets(second, halves.wide, at, inside=True) for at in (0, 1))
    halves.outer.run("reduce_scatter", between)
    ring_reduce_scatter(halves.main, halves.rings[1], halves.ring1(inside))


def _all_reduce(halves: ConcurrentHalves, work: Region) -> None:
    first, second = work.split(2)
    slots = first.split(halves.planes[0].size)
    ring_reduce_scatter(halves.sub, halves.rings[0], halves.ring0(slots))
    all_reduce([outer for _, outer in halves.outer_levels], slots[halves.planes[0].id])
    ring_all_gather(halves.sub, halves.rings[0], halves.ring0(slots))
    parts = second.split(halves.wide[1].size)
    halves.outer.run("reduce_scatter", parts)
    ring_all_reduce(halves.main, halves.rings[1], parts[halves.wide[1].id])
    halves.outer.run("all_gather", parts)


_ORDERS: dict[str, Callable[[ConcurrentHalves, Any], None]] = {
    "all_gather": _all_gather,
    "reduce_scatter": _reduce_scatter,
    "all_reduce": _all_reduce,
}

_WIDE = {"all_reduce": ("reduce_scatter", "all_gather")}
"""What an op is on the plane of all servers."""


class ConcurrentRings(BaseExecutor):
    """Stage the input, send each half its way, deliver."""

    op: str

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs servers and superpods alike, and two rings in a server."""
        return require(
            (topology.is_even, "needs servers alike, and superpods alike"),
            (
                topology.level0 == "double_ring",
                f"needs two rings in a server, not {topology.level0}",
            ),
        )

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """Links on all planes, and one sub stream for the second ring."""
        between = [
            (plane, word)
            for plane, word in ((rank.level1, op.level1), (rank.level2, op.level2))
            if plane.size > 1
        ]
        wide = dict.fromkeys(
            link
            for step in _WIDE.get(op.name, (op.name,))
            for link in links(step, [(rank.level12, op.level1)], 0)
        )
        asked = request(
            op,
            rank,
            *((ring.name, "ring") for ring in rank.rings),
            *links(op.name, between, 0),
            *wide,
            sub_streams=1,
        )
        parts = rank.size if OPS[op.name].has_slots else 1
        return replace(asked, max_count=rank.ccl_bytes // (parts * op.unit))

    def orchestrate(self, op: OpParam, rank: AnyRank) -> None:
        """Stage, run both halves, deliver."""
        work = staged(op, rank)
        with rank.fork() as (sub,):
            _ORDERS[op.name](ConcurrentHalves(op, rank, sub), work)
        delivered(op, rank, work)


def _levels(op: str, *without: str) -> str:
    return f"level0:double_ring;level1:{choices(op, *without)};level2:{choices(op)}"


class AllReduceDoubleRingConcurrentExecutor(ConcurrentRings):
    """AllReduce, half of it reduced inside first, half between servers first."""

    op = "all_reduce"
    algorithm = _levels("all_reduce")
    fidelity = ours("HCCL's was taken out by April 2026; its older form is not restated.")


class AllGatherDoubleRingConcurrentExecutor(ConcurrentRings):
    """AllGather, half of every slot between servers first, half inside first."""

    op = "all_gather"
    algorithm = _levels("all_gather", "H-D_R")
    fidelity = ours("HCCL's was taken out by April 2026; its older form is not restated.")


class ReduceScatterDoubleRingConcurrentExecutor(ConcurrentRings):
    """ReduceScatter, half of every slot inside first, half between servers first."""

    op = "reduce_scatter"
    algorithm = _levels("reduce_scatter", "H-D_R")
    fidelity = ours("HCCL's was taken out by April 2026; its older form is not restated.")
