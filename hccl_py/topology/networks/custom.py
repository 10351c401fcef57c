"""Networks that a user drew: nodes with names, links with rates, shortest or declared routes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hccl_py.topology.networks.cuts import Partition
from hccl_py.topology.networks.generated import memory_of
from hccl_py.topology.networks.network import Floats, Network, Ports, Rates, Routes
from hccl_py.topology.networks.paths import Visited, ends
from hccl_py.topology.networks.shortest import Graph, Shortest
from hccl_py.values import IntArray

if TYPE_CHECKING:
    from hccl_py.cost import CostModel

__all__ = ["CustomNetwork", "CustomNodes", "DeclaredRoutes", "LinkTable"]

PICOSECONDS = 1e6
"""In a microsecond."""


class CustomNodes(NamedTuple):
    """Names of ranks, then of switches; `gbps` is what each node lets through as a whole (inf:
    anything); `areas` are names of ways to group the ranks, with the group of each rank.
    """

    names: Sequence[str]
    ranks: int
    gbps: Floats
    areas: dict[str, IntArray]


class LinkTable(NamedTuple):
    """Directed links; NaN where the cost model says rate or latency."""

    source: IntArray
    target: IntArray
    gbps: Floats
    latency_us: Floats

    def sorted(self, order: IntArray) -> LinkTable:
        """Return the links in another order."""
        return LinkTable(
            self.source[order], self.target[order], self.gbps[order], self.latency_us[order]
        )


class DeclaredRoutes(NamedTuple):
    """Declared routes: sources, targets, and what is visited."""

    source: IntArray
    target: IntArray
    visited: Visited


class CustomNetwork(Network):
    """Any graph. A link without a latency counts none where routes are chosen."""

    def __init__(
        self, name: str, nodes: CustomNodes, links: LinkTable, declared: DeclaredRoutes
    ) -> None:
        self.name = name
        self.ranks, self.nodes = nodes.ranks, len(nodes.names)
        self._about, self._declared = nodes, declared
        order = np.argsort(self.number(links.source, links.target))
        self._table = links.sorted(order)
        self._links = self.number(self._table.source, self._table.target)
        length = np.rint(np.nan_to_num(self._table.latency_us) * PICOSECONDS).astype(np.int64)
        self.graph = Graph.of(self.nodes, self._table.source, self._table.target, length)
        self._shortest = Shortest(self.graph)

    def routes(self, source: IntArray, target: IntArray, ports: Ports) -> Routes:
        """Declared routes where there are any, else shortest ones; switches that let through so
        much only are links of their routes.
        """
        place = self._declared_places(source, target)
        rest, known = np.flatnonzero(place < 0), np.flatnonzero(place >= 0)
        visited = Visited.put_together(
            [
                (rest, self._shortest.visited(source[rest], target[rest])),
                (known, self._declared.visited.some(place[known])),
            ]
        )
        return self._with_switches(visited).routes(source, self.nodes)

    def rates(self, links: IntArray, cost: CostModel) -> Rates:
        """Return what the file says; for the rest HCCS and `hop_us` of the cost model."""
        source, target = self.ends(links)
        own = source == target
        gbps = np.where(source < self.ranks, memory_of(cost), self._about.gbps[source])
        latency = np.zeros(len(links))
        at = np.searchsorted(self._links, links[~own])
        gbps[~own] = _filled(self._table.gbps[at], cost.hccs.gbps)
        latency[~own] = _filled(self._table.latency_us[at], cost.hop_us)
        return Rates(gbps, latency)

    def joins(self, source: int, target: int) -> bool:
        """Whether the file has such a link."""
        number = source * self.nodes + target
        at = int(np.searchsorted(self._links, number))
        return at < len(self._links) and int(self._links[at]) == number

    def groups(self, cost: CostModel) -> list[Partition]:
        """Every rank by its links, and the servers and superpods that the file states by the links
        of their ranks, and of switches whose ranks are all in one, to all other nodes.
        """
        ways = {"rank": np.arange(self.ranks), **self._about.areas}
        return [Partition(name, of, self._leaving(of, cost)) for name, of in ways.items()]

    def node_name(self, node: int) -> str:
        """Return the name in the file."""
        return self._about.names[node]

    def _leaving(self, of: IntArray, cost: CostModel) -> Floats:
        """Return what goes out of each group, or in where that is more."""
        count = int(of.max()) + 1
        area = self._with_own_switches(of, count)
        source, target = area[self._table.source], area[self._table.target]
        gbps = self.rates(self._links, cost).gbps
        across = source != target
        leaves, enters = across & (source < count), across & (target < count)
        out = np.bincount(source[leaves], gbps[leaves], count)
        into = np.bincount(target[enters], gbps[enters], count)
        return np.maximum(out, into)

    def _with_own_switches(self, of: IntArray, groups: int) -> IntArray:
        """Return the group of every node; `groups` for switches whose ranks are not all in one."""
        low = np.full(self.nodes, groups)
        high = np.full(self.nodes, -1)
        low[: self.ranks] = high[: self.ranks] = of
        is_port = (self._table.source < self.ranks) & (self._table.target >= self.ranks)
        switch, group = self._table.target[is_port], of[self._table.source[is_port]]
        np.minimum.at(low, switch, group)
        np.maximum.at(high, switch, group)
        return np.where(low == high, low, groups)

    def _declared_places(self, source: IntArray, target: IntArray) -> IntArray:
        """Return which declared route each pair takes; -1 for none."""
        if not len(self._declared.source):
            return np.full(len(source), -1)
        keys, order = self._declared_keys
        wanted = self.number(source, target)
        at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.where(keys[at] == wanted, order[at], -1)

    @cached_property
    def _declared_keys(self) -> tuple[IntArray, IntArray]:
        keys = self.number(self._declared.source, self._declared.target)
        order = np.argsort(keys)
        return keys[order], order

    def _with_switches(self, visited: Visited) -> Visited:
        """Visit twice in a row what lets through so much only: its link is from itself to itself,
        after the one that leads to it.
        """
        times = 1 + (np.isfinite(self._about.gbps[visited.node])).astype(np.int64)
        return Visited(ends(times)[visited.first], np.repeat(visited.node, times))


def _filled(values: Floats, otherwise: float | None) -> Floats:
    return np.where(np.isnan(values), np.inf if otherwise is None else otherwise, values)
