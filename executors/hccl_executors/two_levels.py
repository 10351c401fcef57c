"""Compositions of two levels: a mesh inside the servers, any algorithm between them.

In HCCL's order, which keeps what goes between servers in one piece of the user's buffer:

                     first                 then                  last
    all_gather       all-gather inside     all-gather between
    reduce_scatter   reduce-scatter betw.  reduce-scatter inside
    all_reduce       reduce-scatter inside all-reduce between    all-gather inside
    broadcast        scatter inside        broadcast between     all-gather inside
    reduce           reduce-scatter inside reduce between        gather inside
    scatter          scatter between       scatter inside
    gather           gather inside         gather between

For n devices in each of S servers. Between servers, device i of every server has a plane of its
own; slots are numbered server by server, so a server's n slots are one chunk there. Only the root's
server scatters and gathers inside in broadcast and reduce, only the root's plane takes part between
servers in scatter and gather.

With one server nothing goes between, with one device per server nothing inside.

Cost: the mesh's with n, and between servers that of the algorithm for N/n bytes (all_reduce,
broadcast, reduce) or all N bytes (the others). Source: HCCL's public documents.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hccl_executors.levels import Level
from hccl_executors.templates.mesh_in_place import (
    mesh_all_gather_in_place,
    mesh_gather,
    mesh_scatter,
)
from hccl_executors.templates.mesh_reduce import (
    mesh_reduce_scatter_atomic,
    mesh_reduce_scatter_in_turn,
)
from hccl_py.orchestration import Chunks, Plane, Rank, Region

__all__ = ["COMPOSITIONS", "TwoLevels"]


@dataclass(frozen=True)
class TwoLevels:
    """A rank's two planes, the algorithm between servers, and the order in which a mesh reduces."""

    rank: Rank[Any, Any]
    inside: Plane
    between: Plane
    algorithm: Level
    atomic: bool

    def run(self, work: Region | Chunks, *root: int) -> None:
        """Run the algorithm between servers."""
        self.algorithm.run(self.rank.main, self.between, work, *root)

    def reduce_scatter(self, chunks: Chunks) -> None:
        """Reduce every device's chunk inside this server."""
        template = mesh_reduce_scatter_atomic if self.atomic else mesh_reduce_scatter_in_turn
        template(self.rank, self.inside, chunks)

    def blocks(self, work: Region) -> Chunks:
        """Return one block of `work` per device."""
        return work.split(self.inside.size)

    def own(self, slots: Chunks) -> Chunks:
        """Return the slots of this server."""
        n = int(self.inside.size)
        return slots.taken(self.between.id * n, n)

    def by_server(self, slots: Chunks) -> Chunks:
        """Return the slots of every server as one chunk."""
        return slots.joined(int(self.inside.size))


def _all_gather(levels: TwoLevels, slots: Chunks, root: int) -> None:
    mesh_all_gather_in_place(levels.rank, levels.inside, levels.own(slots))
    levels.run(levels.by_server(slots))


def _reduce_scatter(levels: TwoLevels, slots: Chunks, root: int) -> None:
    levels.run(levels.by_server(slots))
    levels.reduce_scatter(levels.own(slots))


def _all_reduce(levels: TwoLevels, work: Region, root: int) -> None:
    blocks = levels.blocks(work)
    levels.reduce_scatter(blocks)
    levels.run(blocks[levels.inside.id])
    mesh_all_gather_in_place(levels.rank, levels.inside, blocks)


def _broadcast(levels: TwoLevels, work: Region, root: int) -> None:
    blocks, server = levels.blocks(work), levels.between.index_of(root)
    if levels.between.id == server:
        mesh_scatter(levels.rank, levels.inside, blocks, levels.inside.index_of(root))
    levels.run(blocks[levels.inside.id], server)
    mesh_all_gather_in_place(levels.rank, levels.inside, blocks)


def _reduce(levels: TwoLevels, work: Region, root: int) -> None:
    blocks, server = levels.blocks(work), levels.between.index_of(root)
    levels.reduce_scatter(blocks)
    levels.run(blocks[levels.inside.id], server)
    if levels.between.id == server:
        mesh_gather(levels.rank, levels.inside, blocks, levels.inside.index_of(root))


def _scatter(levels: TwoLevels, slots: Chunks, root: int) -> None:
    device = levels.inside.index_of(root)
    if levels.inside.id == device:
        levels.run(levels.by_server(slots), levels.between.index_of(root))
    mesh_scatter(levels.rank, levels.inside, levels.own(slots), device)


def _gather(levels: TwoLevels, slots: Chunks, root: int) -> None:
    device = levels.inside.index_of(root)
    mesh_gather(levels.rank, levels.inside, levels.own(slots), device)
    if levels.inside.id == device:
        levels.run(levels.by_server(slots), levels.between.index_of(root))


COMPOSITIONS: dict[str, Callable[[TwoLevels, Any, int], None]] = {
    "all_gather": _all_gather,
    "reduce_scatter": _reduce_scatter,
    "all_reduce": _all_reduce,
    "broadcast": _broadcast,
    "reduce": _reduce,
    "scatter": _scatter,
    "gather": _gather,
}
"""By op; called with the levels, the work (a Region, or one slot per rank), and the root's rank."""
