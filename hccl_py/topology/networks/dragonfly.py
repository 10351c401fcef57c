"""Dragonflies: groups of routers, and one link between every two groups.

    dragonfly        a routers a group, each joined to all others of it      ranks ─ router
    dragonfly-plus   a leaves a group, each joined to all of its s spines    ranks ─ leaf ─ spine

A router (a spine in dragonfly-plus) has h links to other groups; so there are a·h + 1 groups at
most (s·h + 1). The link from group i to group j is number q = (j - i - 1) mod groups among those of
i, and belongs to router q mod a (spine q mod s): every router has as many, or one less.

Minimal routing: inside the group to the router that has the link, over it, inside the other group
to the router of the target. Inside a group of dragonfly-plus the spine is target mod s.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from hccl_py.topology.networks.cuts import Partition
from hccl_py.topology.networks.generated import PLAIN, Generated, Speed
from hccl_py.topology.networks.paths import Visited, times
from hccl_py.values import Floats, IntArray

if TYPE_CHECKING:
    from hccl_py.clocks.cost import CostModel


class _Grouped(Generated):
    """Groups of routers with `at_each` ranks; `gates` switches of each group, from node `_gate` on,
    have the links to other groups.
    """

    groups_of: int
    routers: int
    at_each: int
    gates: int
    _gate: int

    @abstractmethod
    def _of_router(self, router: IntArray, gbps: float) -> Floats:
        """Return the GB/s that leave the routers of a group, each with its ranks."""

    def groups(self, cost: CostModel) -> list[Partition]:
        """Ranks by their one link, routers and groups by all that leave them."""
        gbps, _ = self.speed.of(cost)
        ranks = np.arange(self.ranks)
        router = ranks // self.at_each
        group = router // self.routers
        of_router = self._of_router(np.arange(self.groups_of * self.routers) % self.routers, gbps)
        found = [Partition.alike("rank", ranks, gbps), Partition("router", router, of_router)]
        if self.groups_of > 1:
            few, many = self.groups_of // 2, self.groups_of - self.groups_of // 2
            half = (group >= few).astype(np.int64)
            found.append(Partition.alike("group", group, (self.groups_of - 1) * gbps))
            found.append(Partition.alike("half", half, few * many * gbps))
        return found

    def _way(self, group: IntArray, other: IntArray) -> IntArray:
        """Return the gate of one group that has the link to another one."""
        link = (other - group - 1) % self.groups_of
        return self._gate + group * self.gates + link % self.gates

    def _over(self, gate: int) -> list[int]:
        """Return the gates of other groups that a gate is joined to."""
        group, number = divmod(gate - self._gate, self.gates)
        links = np.arange(number, self.groups_of - 1, self.gates)
        others = (group + links + 1) % self.groups_of
        there: list[int] = self._way(others, np.full(len(others), group)).tolist()
        return there

    def _links(self, gate: IntArray) -> IntArray:
        """Return the number of links to other groups of each gate of a group."""
        return (self.groups_of - 1 - gate + self.gates - 1) // self.gates


class Dragonfly(_Grouped):
    """`groups` groups of `routers` routers with `at_each` ranks each; a router has `links` links to
    other groups.
    """

    def __init__(
        self,
        routers: int,
        at_each: int,
        links: int,
        groups: int | None = None,
        speed: Speed = PLAIN,
    ) -> None:
        self.groups_of = routers * links + 1 if groups is None else groups
        self.routers, self.at_each, self.gates = routers, at_each, routers
        count = self.groups_of * routers
        fewer = "" if groups is None else f", {groups} groups"
        name = f"dragonfly {routers},{at_each},{links}{fewer}"
        super().__init__(name, count * at_each, (("router", count),), speed)
        self._gate = self.ranks

    def visited(self, source: IntArray, target: IntArray) -> Visited:
        """One link to the gate, one to the other group, one to the router, where needed."""
        mine, theirs = source // self.at_each, target // self.at_each
        group, other = mine // self.routers, theirs // self.routers
        mine, theirs = mine + self.ranks, theirs + self.ranks
        out, into = self._way(group, other), self._way(other, group)
        far = group != other
        last = np.where(far, into, mine)
        return Visited.by_hop(
            mine,
            np.where(far & (out != mine), out, -1),
            np.where(far, into, -1),
            np.where(theirs != last, theirs, -1),
            target,
        )

    def neighbours(self, node: int) -> list[int]:
        """Return ranks, routers of the group, routers of other groups."""
        if node < self.ranks:
            return [self.ranks + node // self.at_each]
        router = node - self.ranks
        start = self.ranks + router // self.routers * self.routers
        inside = [other for other in range(start, start + self.routers) if other != node]
        ranks = range(router * self.at_each, (router + 1) * self.at_each)
        return [*ranks, *inside, *self._over(node)]

    def _of_router(self, router: IntArray, gbps: float) -> Floats:
        return times(self._links(router) + self.routers - 1, gbps)


class DragonflyPlus(_Grouped):
    """`groups` groups of `leaves` leaves with `at_each` ranks each and `spines` spines; a spine has
    `links` links to other groups.
    """

    def __init__(
        self,
        leaves: int,
        at_each: int,
        spines: int,
        links: int,
        groups: int | None = None,
        speed: Speed = PLAIN,
    ) -> None:
        self.groups_of = spines * links + 1 if groups is None else groups
        self.routers, self.at_each, self.gates = leaves, at_each, spines
        count = self.groups_of * leaves
        switches = ("leaf", count), ("spine", self.groups_of * spines)
        fewer = "" if groups is None else f", {groups} groups"
        name = f"dragonfly-plus {leaves},{at_each},{spines},{links}{fewer}"
        super().__init__(name, count * at_each, switches, speed)
        self._gate = self.ranks + count

    def visited(self, source: IntArray, target: IntArray) -> Visited:
        """Up to a spine, over to the other group's where needed, and down."""
        mine, theirs = source // self.at_each, target // self.at_each
        group, other = mine // self.routers, theirs // self.routers
        far = group != other
        near = self._gate + group * self.gates + target % self.gates
        up = np.where(far, self._way(group, other), near)
        return Visited.by_hop(
            self.ranks + mine,
            np.where(mine != theirs, up, -1),
            np.where(far, self._way(other, group), -1),
            np.where(mine != theirs, self.ranks + theirs, -1),
            target,
        )

    def neighbours(self, node: int) -> list[int]:
        """Return those below, those above, and spines of other groups."""
        if node < self.ranks:
            return [self.ranks + node // self.at_each]
        if node < self._gate:
            leaf = node - self.ranks
            spine = self._gate + leaf // self.routers * self.gates
            below = range(leaf * self.at_each, (leaf + 1) * self.at_each)
            return [*below, *range(spine, spine + self.gates)]
        leaf = self.ranks + (node - self._gate) // self.gates * self.routers
        return [*range(leaf, leaf + self.routers), *self._over(node)]

    def _of_router(self, router: IntArray, gbps: float) -> Floats:
        return times(np.full(len(router), self.gates), gbps)
