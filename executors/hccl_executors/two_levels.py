"""Compositions of two levels: a mesh or rings inside the servers, any algorithm between them.

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

Cost: inside that of the mesh or the rings with n, and between servers that of the algorithm for N/n
bytes (all_reduce, broadcast, reduce) or all N bytes (the others). Source: HCCL's public documents.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from hccl_executors.outer_levels import OuterLevel, holds_root
from hccl_py.orchestration import Chunks, Plane, Region
from hccl_py.values import RankInt


class Inside(Protocol):
    """Algorithms among the devices of a server, in place, with one slot per device. A root stands
    for the device of its index in every server.
    """

    def all_gather(self, slots: Chunks) -> None:
        """Leave in every device all slots; device d starts with slot d."""

    def reduce_scatter(self, slots: Chunks) -> None:
        """Leave in slot d of device d the reduction of all slots d."""

    def scatter(self, slots: Chunks, root: int) -> None:
        """Leave slot d of the root's device in slot d of device d."""

    def gather(self, slots: Chunks, root: int) -> None:
        """Leave slot d of device d in slot d of the root's device."""


@dataclass(frozen=True)
class TwoLevels:
    """A rank's server, what happens in it, and the plane between servers."""

    server: Plane
    inside: Inside
    between: OuterLevel

    def in_slots(self, work: Region) -> Chunks:
        """Return one slot of `work` per device."""
        return work.split(self.server.size)

    def own(self, slots: Chunks) -> Chunks:
        """Return the slots of this server."""
        n = int(self.server.size)
        return slots.taken(self.between.plane.id * n, n)

    def by_server(self, slots: Chunks) -> Chunks:
        """Return the slots of every server as one chunk."""
        return slots.joined(int(self.server.size))

    def is_roots_server(self, root: int) -> bool:
        """True if the root is in this server."""
        return holds_root([self.between.plane], root)

    def is_roots_plane(self, root: int) -> bool:
        """True if the root is on this rank's plane between servers."""
        return holds_root([self.server], root)


def column(slots: Chunks, device: RankInt, n: int) -> Chunks:
    """Return the slots of a device's number in every server of n devices."""
    servers = len(slots) // n
    by_device = tuple(server * n + d for d in range(n) for server in range(servers))
    return slots.renumbered(by_device).taken(device * servers, servers)


def _all_gather(levels: TwoLevels, slots: Chunks, root: int) -> None:
    levels.inside.all_gather(levels.own(slots))
    levels.between.run("all_gather", levels.by_server(slots))


def _reduce_scatter(levels: TwoLevels, slots: Chunks, root: int) -> None:
    levels.between.run("reduce_scatter", levels.by_server(slots))
    levels.inside.reduce_scatter(levels.own(slots))


def _all_reduce(levels: TwoLevels, work: Region, root: int) -> None:
    slots = levels.in_slots(work)
    levels.inside.reduce_scatter(slots)
    levels.between.run("all_reduce", slots[levels.server.id])
    levels.inside.all_gather(slots)


def _broadcast(levels: TwoLevels, work: Region, root: int) -> None:
    slots = levels.in_slots(work)
    if levels.is_roots_server(root):
        levels.inside.scatter(slots, root)
    levels.between.run("broadcast", slots[levels.server.id], root)
    levels.inside.all_gather(slots)


def _reduce(levels: TwoLevels, work: Region, root: int) -> None:
    slots = levels.in_slots(work)
    levels.inside.reduce_scatter(slots)
    levels.between.run("reduce", slots[levels.server.id], root)
    if levels.is_roots_server(root):
        levels.inside.gather(slots, root)


def _scatter(levels: TwoLevels, slots: Chunks, root: int) -> None:
    if levels.is_roots_plane(root):
        levels.between.run("scatter", levels.by_server(slots), root)
    levels.inside.scatter(levels.own(slots), root)


def _gather(levels: TwoLevels, slots: Chunks, root: int) -> None:
    levels.inside.gather(levels.own(slots), root)
    if levels.is_roots_plane(root):
        levels.between.run("gather", levels.by_server(slots), root)


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
