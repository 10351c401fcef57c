"""Order of the phases of A3's rings on their three planes, by op; superpods.py has the executors.

Rings are aligned where an executor is named for that. Others go each by themselves, in op-base mode
with a helper each, but for reduce and scatter, whose rings have none. A broadcast's scatter over
two rings is aligned, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property

from hccl_executors.outer_levels import OuterLevel, all_reduce, broadcast, holds_root, reduce
from hccl_executors.rings.inside import Rings
from hccl_executors.rings.places import blocks, sets
from hccl_executors.staging import delivered, staged
from hccl_executors.templates.aligned_rings import (
    aligned_all_gather,
    aligned_reduce_scatter,
    aligned_scatter,
)
from hccl_executors.templates.direct_ring import (
    direct_all_gather,
    direct_reduce_scatter,
    direct_scatter,
    helped_scatter,
)
from hccl_executors.templates.double_ring import Cut, parts_of_rings, reducible_parts_of_rings
from hccl_executors.two_levels import column
from hccl_py.orchestration import Chunks, Plane, Region
from hccl_py.orchestration.region import SLICE_ALIGN, pieces
from hccl_py.plugins.executor import AnyRank, Mode, OpParam, RankView

JOINED = ("AHC", "AHC_BROKE")
"""Algorithms over the servers of all superpods, which may then differ in their servers."""


class Superpods:
    """A rank's three planes and the memory that its rings work on. Two rings may be aligned, and
    then serial.
    """

    def __init__(
        self, op: OpParam, rank: AnyRank, *, aligned: bool = False, serial: bool = False
    ) -> None:
        self.op, self.rank, self.aligned, self.serial = op, rank, aligned, serial
        self.root = op.root or 0
        self.inside = Rings(rank)
        self.planes: tuple[Plane, ...] = (rank.level0, rank.level1, rank.level2)
        if op.level1 in JOINED:
            self.planes = (rank.level0, rank.level12)

    @cached_property
    def outer_levels(self) -> list[OuterLevel]:
        """The planes between servers that have several members, from inside to outside."""
        return [
            OuterLevel(self.rank.main, self.rank.plane(n), w, meeting=True)
            for n, w in between(self.op, self.rank)
        ]

    @property
    def cut(self) -> Cut:
        """The part of every slot that each ring reduces."""
        scatters = self.op.name in ("reduce_scatter", "reduce_scatter_v")
        return reducible_parts_of_rings if scatters else parts_of_rings

    @property
    def is_direct(self) -> bool:
        """True if rings move data from and to user memory themselves."""
        return self.op.mode is Mode.OP_BASE

    @property
    def has_root(self) -> bool:
        """True if this is the root's server."""
        return holds_root([outer.plane for outer in self.outer_levels], self.root)

    @property
    def scatterer(self) -> int:
        """The index in level0 of the device that scatters in a broadcast: the first one where the
        root is in another server. All of HCCL's servers scatter, though the result is read only in
        the root's.
        """
        return self.rank.level0.index_of(self.root) if self.has_root else 0

    def reduced_inside(self) -> Chunks:
        """Reduce the input inside the server; return the work's slots, one per device."""
        rank, n = self.rank, self.rank.level0.size
        if self.is_direct:
            slots = rank.ccl_in.head(rank.user_in.size).split(n)
            self.reduce_scatter(rank.user_in.split(n), slots)
        else:
            slots = rank.stage_in().split(n)
            self.reduce_scatter(slots, slots)
        return slots

    def slots(self) -> Chunks:
        """Return a slot for every block of the input, side by side in memory that peers reach."""
        rank = self.rank
        if self.op.name == "reduce_scatter":
            return rank.slots(rank.user_out.size)
        memory = rank.ccl_in if self.is_direct else rank.scratch
        blocks: Chunks = rank.user_in
        ends = blocks.sizes.cumsum(axis=1)
        return Chunks(memory.buffer, ends - blocks.sizes, blocks.sizes, blocks.row)

    def reduce_scatter(self, inputs: Chunks, slots: Chunks, out: Region | None = None) -> None:
        """Leave in slot d of device d, or in `out`, the reduction of all `inputs` d of its
        server.
        """
        rings = self.inside.rings
        if self.aligned:
            with self._apart(slots):
                aligned_reduce_scatter(
                    self.rank, rings, inputs, slots, out, serial=self.serial, cut=self.cut
                )
        elif self.is_direct:
            direct_reduce_scatter(self.rank, rings, inputs, slots, out)
        else:
            self.inside.reduce_scatter(slots)

    def all_gather(self, slots: Chunks, out: Chunks, source: Region | None = None) -> None:
        """Leave in `out` of every device all slots of its server; its own one may lie in `source`
        yet.
        """
        rings = self.inside.rings
        if self.aligned:
            with self._apart(slots):
                aligned_all_gather(self.rank, rings, slots, out, source)
        elif self.is_direct:
            direct_all_gather(self.rank, rings, slots, out, source)
        else:
            self.inside.all_gather(slots)

    @contextmanager
    def _apart(self, slots: Chunks) -> Iterator[None]:
        """Record copies of no bytes before and after aligned rings: HCCL's."""
        none = pieces(slots[0])[0].head(0)
        self.rank.main.copy(none, none)
        yield
        self.rank.main.copy(none, none)


def between(op: OpParam, rank: RankView | AnyRank) -> list[tuple[str, str]]:
    """Return the planes between servers that have several members, and the algorithm on each."""
    if op.level1 in JOINED:
        named = [("level12", op.level1)]
    else:
        named = [("level1", op.level1), ("level2", op.level2)]
    return [(name, word) for name, word in named if rank.plane(name).size > 1]


def _all_gather(levels: Superpods) -> None:
    rank = levels.rank
    slots = rank.stage_out()
    alone = levels.is_direct and not levels.outer_levels
    if not alone:
        rank.main.copy(slots[rank.id], rank.user_in)
    for outer in reversed(levels.outer_levels):
        outer.run("all_gather", _between_slots(levels, outer, slots))
    mine = sets(slots, levels.planes, 0)
    out = sets(rank.user_out, levels.planes, 0) if levels.is_direct else mine
    levels.all_gather(mine, out, rank.user_in if alone else None)


def _reduce_scatter(levels: Superpods) -> None:
    rank = levels.rank
    slots = levels.slots()
    if levels.is_direct and not levels.outer_levels:
        levels.reduce_scatter(rank.user_in, slots, rank.user_out)
        return
    mine = inputs = sets(slots, levels.planes, 0)
    if levels.is_direct:
        inputs = sets(rank.user_in, levels.planes, 0)
    else:
        rank.main.copy(slots, rank.user_in)
    levels.reduce_scatter(inputs, mine)
    for outer in levels.outer_levels:
        outer.run("reduce_scatter", _between_slots(levels, outer, slots))
    rank.main.copy(rank.user_out, slots[rank.id])


def _all_reduce(levels: Superpods) -> None:
    rank = levels.rank
    slots = levels.reduced_inside()
    all_reduce(levels.outer_levels, slots[rank.level0.id])
    if not levels.is_direct:
        levels.all_gather(slots, slots)
        return
    gathered = slots
    if not levels.outer_levels:  # an all-reduce of one server is a copy to the other buffer
        gathered = rank.ccl_out.head(rank.user_in.size).split(len(slots))
        rank.main.copy(gathered[rank.level0.id], slots[rank.level0.id])
    levels.all_gather(gathered, rank.user_out.split(len(slots)))


def _broadcast(levels: Superpods) -> None:
    rank, n = levels.rank, levels.rank.level0.size
    work = rank.ccl_in.head(rank.user_in.size) if levels.is_direct else rank.user_out
    slots = work.split(n)
    _scatter_in_servers(levels, slots)
    broadcast(levels.outer_levels, slots[rank.level0.id], levels.root)
    levels.all_gather(slots, rank.user_out.split(n) if levels.is_direct else slots)


def _scatter_in_servers(levels: Superpods, slots: Chunks) -> None:
    rank, rings, at = levels.rank, levels.inside.rings, levels.scatterer
    inputs = rank.user_in.split(len(slots)) if levels.is_direct else slots
    if not levels.is_direct and not levels.op.in_place and rank.level0.id == at:
        rank.main.copy(rank.user_out, rank.user_in)
    if len(rings) > 1:
        aligned_scatter(rank, rings, inputs, slots, at)
    elif levels.is_direct:
        helped_scatter(rank, rings[0], inputs, slots, at)
    else:
        levels.inside.scatter(slots, levels.root if levels.has_root else 0)


def _reduce(levels: Superpods) -> None:
    work = staged(levels.op, levels.rank)
    slots = work.split(levels.rank.level0.size)
    levels.inside.reduce_scatter(slots)
    reduce(levels.outer_levels, slots[levels.rank.level0.id], levels.root)
    if levels.has_root and len(slots) > 1:
        levels.inside.gather(slots, levels.root)
    delivered(levels.op, levels.rank, work)


def _scatter(levels: Superpods) -> None:
    rank, planes = levels.rank, levels.planes
    slots = staged(levels.op, rank)
    for outer in reversed(levels.outer_levels):
        at = planes.index(outer.plane)
        if holds_root(planes[:at], levels.root):
            outer.run("scatter", blocks(slots, planes, at), levels.root)
    own = blocks(slots, planes, 0)
    if levels.is_direct and rank.user_out.size % SLICE_ALIGN == 0:
        root = rank.level0.index_of(levels.root)
        direct_scatter(rank, levels.inside.rings, own, rank.user_out, root)
        return
    levels.inside.scatter(own, levels.root)
    if levels.is_direct:
        beside = rank.ccl_out.head(rank.user_out.size)
        rank.main.copy(beside, slots[rank.id])
        rank.main.copy(rank.user_out, beside)
    else:
        delivered(levels.op, rank, slots)


def _between_slots(levels: Superpods, outer: OuterLevel, slots: Chunks) -> Chunks:
    """Return one slot of each member of a plane, or a bundle where planes are outside of it."""
    if outer.word in JOINED:
        return column(slots, levels.rank.level0.id, int(levels.rank.level0.size))
    return sets(slots, levels.planes, levels.planes.index(outer.plane))


ORDERS: dict[str, Callable[[Superpods], None]] = {
    "all_gather": _all_gather,
    "reduce_scatter": _reduce_scatter,
    "all_reduce": _all_reduce,
    "broadcast": _broadcast,
    "reduce": _reduce,
    "scatter": _scatter,
}
