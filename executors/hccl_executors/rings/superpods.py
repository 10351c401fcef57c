"""Rings inside the servers, then between the servers of a superpod, then between superpods: A3.

Slots go to the slowest plane before they multiply, so little crosses it. With n devices in each of
S servers in each of P superpods and slots of s bytes:

    all_gather       level2 (P-1)·s, level1 (S-1)·P·s, level0 (n-1)·S·P·s
    reduce_scatter   the mirror image, level0 first
    scatter          level2, level1, level0: whole superpods, servers, slots
    all_reduce       reduce-scatter on level0 and level1, all-reduce on level2, all-gathers back
    broadcast        scatter on level0 and level1, broadcast on level2, all-gathers back
    reduce           reduce-scatter on level0 and level1, reduce on level2, gathers back

The last plane that has several members takes the op itself, so level1 does with one superpod.

Where both dies of all packages take part there are two rings inside, the two ways round, else one.
They are aligned: all begin a read together. In op-base mode each ring has a helper stream besides,
which moves data between user memory and the CCL buffer meanwhile; `templates/double_ring.py` says
how. With one device per server, and for reductions with two, helpers would have nothing to do and
are not requested.

Links that cannot reduce on their way bring data to the other CCL buffer (HCCL: scratch), in graph
mode to scratch. Source: HCCL's public documents; the way of broadcast, reduce and scatter between
superpods is ours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from hccl_executors.levels import choices
from hccl_executors.outer_levels import (
    STEPS,
    OuterLevel,
    all_reduce,
    broadcast,
    holds_root,
    links,
    reduce,
    words,
)
from hccl_executors.rings.inside import Rings
from hccl_executors.rings.places import blocks, sets
from hccl_executors.staging import delivered, request, staged
from hccl_executors.templates.double_ring import aligned_all_gather, aligned_reduce_scatter
from hccl_py.executor import (
    Mode,
    OpParam,
    Rank,
    RankView,
    ResourceRequest,
    Topology,
    Unsuitable,
    require,
)
from hccl_py.ops import OPS
from hccl_py.orchestration import Chunks, Region
from hccl_py.orchestration.bundles import Bundles

__all__ = [
    "AlignedAllGatherDoubleRingFor91093Executor",
    "AlignedAllReduceDoubleRingFor91093Executor",
    "AlignedReduceScatterDoubleRingFor91093Executor",
    "AllGatherRingFor91093Executor",
    "AllReduceFastDoubleRingFor91093Executor",
    "AllReduceRingFor91093Executor",
    "BroadCastRingFor91093Executor",
    "ReduceRingFor91093Executor",
    "ReduceScatterFastDoubleRingFor91093Executor",
    "ReduceScatterRingFor91093Executor",
    "ScatterRingFor91093Executor",
]

JOINED = ("AHC", "AHC_BROKE")
"""Algorithms over the servers of all superpods, which may then differ in their servers."""


class Superpods:
    """A rank's three planes and the memory that its rings work on."""

    def __init__(self, op: OpParam, rank: Rank[Any, Any], *, aligned: bool) -> None:
        self.op, self.rank, self.aligned = op, rank, aligned
        self.root = op.root or 0
        self.inside = Rings(rank)
        self.planes = (rank.level0, rank.level1, rank.level2)

    @cached_property
    def outer_levels(self) -> list[OuterLevel]:
        """The planes between servers that have several members, from inside to outside."""
        return [
            OuterLevel(self.rank.main, self.rank.plane(n), w)
            for n, w in _between(self.op, self.rank)
        ]

    @property
    def is_direct(self) -> bool:
        """Whether rings move data from and to user memory themselves."""
        return self.op.mode is Mode.OP_BASE

    @property
    def has_root(self) -> bool:
        """Whether this is the root's server."""
        return holds_root([outer.plane for outer in self.outer_levels], self.root)

    def reduced_inside(self) -> tuple[Region, Chunks]:
        """Reduce the input inside the server; return the work and its slots, one per device."""
        rank, n = self.rank, self.rank.level0.size
        if self.is_direct:
            work = rank.ccl_in.head(rank.user_in.size)
            slots = work.split(n)
            self.reduce_scatter(rank.user_in.split(n), slots)
        else:
            work = rank.stage_in()
            slots = work.split(n)
            self.reduce_scatter(slots, slots)
        return work, slots

    def reduce_scatter(self, inputs: Chunks, slots: Chunks) -> None:
        """Leave in slot d of device d the reduction of all `inputs` d of its server."""
        if self.aligned and (self.rank.inline_reduce or not isinstance(slots, Bundles)):
            aligned_reduce_scatter(self.rank, self.inside.rings, inputs, slots)
            return
        if inputs is not slots:
            self.copy(slots, inputs)
        self.inside.reduce_scatter(slots)

    def all_gather(self, slots: Chunks, out: Chunks) -> None:
        """Leave in `out` of every device all slots of its server."""
        if self.aligned and self.rank.level0.size > 1:
            aligned_all_gather(self.rank, self.inside.rings, slots, out)
            return
        self.inside.all_gather(slots)
        if out is not slots:
            self.copy(out, slots)

    def copy(self, to: Chunks, source: Chunks) -> None:
        """Copy with all streams, each a part of every slot."""
        with self.rank.fork() as subs:
            streams = (*subs, self.rank.main)
            parts = zip(to.parts(len(streams)), source.parts(len(streams)), strict=True)
            for stream, (there, here) in zip(streams, parts, strict=True):
                stream.copy(_pieces(there), _pieces(here))


def _pieces(slots: Chunks | Bundles) -> list[Region]:
    return slots.pieces() if isinstance(slots, Bundles) else list(slots)


def _between(op: OpParam, rank: RankView | Rank[Any, Any]) -> list[tuple[str, str]]:
    """Return the planes between servers that have several members, and the algorithm on each."""
    if op.level1 in JOINED:
        named = [("level12", op.level1)]
    else:
        named = [("level1", op.level1), ("level2", op.level2)]
    return [(name, word) for name, word in named if rank.plane(name).size > 1]


def _all_gather(levels: Superpods) -> None:
    rank = levels.rank
    slots = rank.stage_out()
    rank.main.copy(slots[rank.id], rank.user_in)
    for outer in reversed(levels.outer_levels):
        outer.run("all_gather", sets(slots, levels.planes, _number(outer)))
    mine = sets(slots, levels.planes, 0)
    levels.all_gather(mine, sets(rank.user_out, levels.planes, 0) if levels.is_direct else mine)


def _reduce_scatter(levels: Superpods) -> None:
    rank = levels.rank
    slots = rank.slots(rank.user_out.size)
    if levels.is_direct and levels.aligned and not levels.outer_levels:
        aligned_reduce_scatter(rank, levels.inside.rings, rank.user_in, slots, rank.user_out)
        return
    mine = inputs = sets(slots, levels.planes, 0)
    if levels.is_direct:
        inputs = sets(rank.user_in, levels.planes, 0)
    else:
        rank.main.copy(slots, rank.user_in)
    levels.reduce_scatter(inputs, mine)
    for outer in levels.outer_levels:
        outer.run("reduce_scatter", sets(slots, levels.planes, _number(outer)))
    rank.main.copy(rank.user_out, slots[rank.id])


def _all_reduce(levels: Superpods) -> None:
    rank = levels.rank
    _, slots = levels.reduced_inside()
    all_reduce(levels.outer_levels, slots[rank.level0.id])
    levels.all_gather(slots, rank.user_out.split(len(slots)) if levels.is_direct else slots)


def _broadcast(levels: Superpods) -> None:
    rank = levels.rank
    slots = staged(levels.op, rank).split(rank.level0.size)
    if levels.has_root:
        levels.inside.scatter(slots, levels.root)
    broadcast(levels.outer_levels, slots[rank.level0.id], levels.root)
    levels.all_gather(slots, rank.user_out.split(len(slots)) if levels.is_direct else slots)


def _reduce(levels: Superpods) -> None:
    work, slots = levels.reduced_inside()
    reduce(levels.outer_levels, slots[levels.rank.level0.id], levels.root)
    if levels.has_root:
        levels.inside.gather(slots, levels.root)
    delivered(levels.op, levels.rank, work)


def _scatter(levels: Superpods) -> None:
    slots = staged(levels.op, levels.rank)
    for outer in reversed(levels.outer_levels):
        at = _number(outer)
        if holds_root(levels.planes[:at], levels.root):
            outer.run("scatter", blocks(slots, levels.planes, at), levels.root)
    levels.inside.scatter(blocks(slots, levels.planes, 0), levels.root)
    delivered(levels.op, levels.rank, slots)


def _number(outer: OuterLevel) -> int:
    return ("level0", "level1", "level2").index(outer.plane.name)


_ORDERS: dict[str, Callable[[Superpods], None]] = {
    "all_gather": _all_gather,
    "reduce_scatter": _reduce_scatter,
    "all_reduce": _all_reduce,
    "broadcast": _broadcast,
    "reduce": _reduce,
    "scatter": _scatter,
}

_HELPED_FROM = {
    "all_gather": 2,
    "all_reduce": 2,
    "broadcast": 2,
    "reduce_scatter": 3,
    "reduce": 3,
}
"""Devices per server from which helper streams have something to do."""


class SuperpodRings:
    """Rings inside, `op.level1` between servers, `op.level2` between superpods."""

    op: str
    aligned = True
    two_rings = False

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs servers and superpods alike, and SDMA inside the servers."""
        joined = op.level1 in JOINED and topology.has_equal_servers
        level0 = topology.level0
        return require(
            (topology.is_even or joined, "needs servers alike, and superpods alike"),
            (topology.has_sdma_inside, "needs SDMA between all devices of a server"),
            (
                level0 == "double_ring" or not self.two_rings,
                f"needs two rings in a server, not {level0}",
            ),
        )

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """Links on all planes; a sub stream for every ring but one, and a helper for every ring."""
        between = [(rank.plane(name), word) for name, word in _between(op, rank)]
        inside = [(ring.name, "ring") for ring in rank.rings]
        least = _HELPED_FROM.get(op.name)
        helped = op.mode is Mode.OP_BASE and least is not None and rank.level0.size >= least
        asked = request(
            op,
            rank,
            *inside,
            *links(op.name, between, op.root or 0),
            sub_streams=len(inside) - 1 + (len(inside) if helped else 0),
        )
        parts = rank.size if OPS[op.name].has_slots else 1
        return replace(asked, max_count=rank.ccl_bytes // (parts * op.unit))

    def orchestrate(self, op: OpParam, rank: Rank[Any, Any]) -> None:
        """Go through the planes in the op's order."""
        _ORDERS[op.name](Superpods(op, rank, aligned=self.aligned))


def _levels(level0: str, op: str, *, without: Sequence[str] = ()) -> str:
    level1 = words(op, *STEPS.get(op, ()), without=without)
    joined = "".join(f"|{word}" for word in JOINED) if op == "all_reduce" else ""
    return f"level0:{level0};level1:{level1}{joined};level2:{choices(op, *JOINED)}"


_ONE_BY_ONE = ("H-D_R",)
"""These take slots one by one, not in sets as they go between servers."""


class AllReduceRingFor91093Executor(SuperpodRings):
    """AllReduce over all levels. With AHC, level1 and level2 are one plane, where superpods may
    differ.
    """

    op = "all_reduce"
    algorithm = _levels("ring", "all_reduce")


class AllGatherRingFor91093Executor(SuperpodRings):
    """AllGather over all levels, level2 first."""

    op = "all_gather"
    algorithm = _levels("ring", "all_gather", without=_ONE_BY_ONE)


class ReduceScatterRingFor91093Executor(SuperpodRings):
    """ReduceScatter over all levels, level0 first. With several servers and without inline reduce,
    rings are not aligned, and all streams share the copies to the CCL buffer.
    """

    op = "reduce_scatter"
    algorithm = _levels("ring", "reduce_scatter", without=_ONE_BY_ONE)


class BroadCastRingFor91093Executor(SuperpodRings):
    """Broadcast over all levels."""

    op = "broadcast"
    algorithm = _levels("ring", "broadcast")


class ReduceRingFor91093Executor(SuperpodRings):
    """Reduce over all levels."""

    op = "reduce"
    algorithm = _levels("ring", "reduce")


class ScatterRingFor91093Executor(SuperpodRings):
    """Scatter over all levels, level2 first; rings have no helpers."""

    op = "scatter"
    algorithm = _levels("ring", "scatter")


class AlignedAllReduceDoubleRingFor91093Executor(SuperpodRings):
    """AllReduce where there are two rings."""

    op = "all_reduce"
    algorithm = _levels("double_ring", "all_reduce")
    two_rings = True


class AlignedAllGatherDoubleRingFor91093Executor(SuperpodRings):
    """AllGather where there are two rings."""

    op = "all_gather"
    algorithm = _levels("double_ring", "all_gather", without=_ONE_BY_ONE)
    two_rings = True


class AlignedReduceScatterDoubleRingFor91093Executor(SuperpodRings):
    """ReduceScatter where there are two rings; see ReduceScatterRingFor91093Executor."""

    op = "reduce_scatter"
    algorithm = _levels("double_ring", "reduce_scatter", without=_ONE_BY_ONE)
    two_rings = True


class AllReduceFastDoubleRingFor91093Executor(SuperpodRings):
    """AllReduce where there are two rings that do not wait for each other in every step; in op-base
    mode all streams share the copies from and to user memory. HCCL takes its own for servers with
    seven HCCS ports; how it differs is not public, so this form of it is ours.
    """

    op = "all_reduce"
    algorithm = _levels("double_ring", "all_reduce")
    two_rings = True
    aligned = False


class ReduceScatterFastDoubleRingFor91093Executor(SuperpodRings):
    """ReduceScatter likewise."""

    op = "reduce_scatter"
    algorithm = _levels("double_ring", "reduce_scatter", without=_ONE_BY_ONE)
    two_rings = True
    aligned = False
