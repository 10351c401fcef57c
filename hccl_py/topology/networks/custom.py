"""Networks that a user drew: nodes with names, links with rates, shortest or declared routes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hccl_py.topology.networks.cuts import Partition
from hccl_py.topology.networks.generated import memory_of
from hccl_py.topology.networks.network import Bools, Network, Ports, Rates, Routes
from hccl_py.topology.networks.paths import Visited, ends, merged, together, with_taken
from hccl_py.topology.networks.shortest import Graph, Shortest
from hccl_py.topology.networks.spray import Spreading
from hccl_py.values import Floats, IntArray

if TYPE_CHECKING:
    from hccl_py.clocks.cost import CostModel

PICOSECONDS = 1e6
"""In a microsecond."""


class PortTable(NamedTuple):
    """Ports by the nodes that have them, `of`; then, end of a link by end, which port it is in and
    the two nodes, that of the port first.
    """

    of: IntArray
    port: IntArray
    node: IntArray
    neighbour: IntArray


class CustomNodes(NamedTuple):
    """Names of ranks, then of switches, then of ports; `gbps` is what each node lets through as a
    whole, and each port each way (inf: anything); `areas` are names of ways to group the ranks,
    with the group of each rank.
    """

    names: Sequence[str]
    ranks: int
    gbps: Floats
    areas: dict[str, IntArray]
    ports: PortTable


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
    """Declared routes: sources and targets of pairs, the routes `of[k] .. of[k + 1] - 1` of each,
    with their shares of its data and what they visit.
    """

    source: IntArray
    target: IntArray
    of: IntArray
    share: Floats
    visited: Visited


class CustomNetwork(Network):
    """Any graph. A link without a latency counts none where routes are chosen.

    A port is a node that only the one that has it is joined to: a link out of the port takes the
    link from the node to the port before, a link into it that from the port to the node after.
    """

    def __init__(
        self,
        name: str,
        nodes: CustomNodes,
        links: LinkTable,
        declared: DeclaredRoutes,
        *,
        is_sprayed: bool = False,
    ) -> None:
        self.name = name
        self.ranks, self.nodes = nodes.ranks, len(nodes.names)
        self._about, self._declared = nodes, declared
        self._first_port = self.nodes - len(nodes.ports.of)
        if len(nodes.ports.of):
            self.further = "switches and ports"
        order = np.argsort(self.number(links.source, links.target))
        self._table = links.sorted(order)
        self._links = self.number(self._table.source, self._table.target)
        length = np.rint(np.nan_to_num(self._table.latency_us) * PICOSECONDS).astype(np.int64)
        self.graph = Graph.of(self._first_port, self._table.source, self._table.target, length)
        self._shortest = Shortest(self.graph)
        self._spreading = Spreading(name, self.graph, self._table.gbps) if is_sprayed else None

    def routes(self, source: IntArray, target: IntArray, ports: Ports) -> Routes:
        """Declared routes where there are any, else shortest ones; ports, and switches that let
        through so much only, are links of their routes.
        """
        place = self._declared_places(source, target)
        rest, known = np.flatnonzero(place < 0), np.flatnonzero(place >= 0)
        found = together(
            [
                (rest, self._undeclared(source[rest], target[rest])),
                (known, self._of_pairs(place[known])),
            ]
        )
        if self._taken is None:
            return found
        return with_taken(found, self._taken.some(np.searchsorted(self._links, found.link)))

    def latency_us(
        self, source: IntArray, target: IntArray, ports: Ports, cost: CostModel
    ) -> Floats:
        """Return the latency of each pair's longest route; ports add none."""
        place, found = self._declared_places(source, target), np.zeros(len(source))
        rest, known = np.flatnonzero(place < 0), np.flatnonzero(place >= 0)
        latency = self.rates(self._links, cost).latency_us
        if self._spreading is None:
            drawn = self._undeclared(source[rest], target[rest])
            along = latency[np.searchsorted(self._links, drawn.link)]
            found[rest] = np.add.reduceat(along, drawn.first[:-1])
        else:
            found[rest] = self._spreading.spread(source[rest], target[rest], latency).late
        if len(known):
            ways = self._declared_ways
            along = latency[np.searchsorted(self._links, ways.link)]
            longest = np.add.reduceat(along, ways.first[:-1])
            found[known] = np.maximum.reduceat(longest, self._declared.of[:-1])[place[known]]
        return found

    def _undeclared(self, source: IntArray, target: IntArray) -> Routes:
        """Return the shortest route of each pair, or all of them where data is sprayed."""
        if self._spreading is None:
            return self._shortest.visited(source, target).routes(source, self.nodes)
        found = self._spreading.spread(source, target)
        return Routes(found.first, self._links[found.edge], found.share)

    def _of_pairs(self, places: IntArray) -> Routes:
        """Return the declared routes of pairs, all links of those that share the data."""
        whole = self._declared_pairs
        entries = Visited(whole.first, np.arange(len(whole.link))).some(places)
        share = None if whole.share is None else whole.share[entries.node]
        return Routes(entries.first, whole.link[entries.node], share)

    @cached_property
    def _declared_ways(self) -> Routes:
        """The links of every declared route."""
        source = np.repeat(self._declared.source, np.diff(self._declared.of))
        return self._declared.visited.routes(source, self.nodes)

    @cached_property
    def _declared_pairs(self) -> Routes:
        """The links of every pair with declared routes, with shares where one has several."""
        ways, of = self._declared_ways, self._declared.of
        if len(of) == len(ways.first):
            return ways
        share = np.repeat(self._declared.share, np.diff(ways.first))
        return merged(Routes(ways.first[of], ways.link, share))

    def rates(self, links: IntArray, cost: CostModel) -> Rates:
        """Return the rates of the file; for the rest HCCS and `hop_us` of the cost model."""
        source, target = self.ends(links)
        own = source == target
        gbps = np.where(own & (source < self.ranks), memory_of(cost), self._about.gbps[source])
        latency = np.zeros(len(links))
        port = np.maximum(source, target)
        is_port = port >= self._first_port
        gbps[is_port] = self._about.gbps[port[is_port]]
        drawn = ~own & ~is_port
        at = np.searchsorted(self._links, links[drawn])
        gbps[drawn] = _filled(self._table.gbps[at], cost.hccs.gbps)
        latency[drawn] = _filled(self._table.latency_us[at], cost.hop_us)
        return Rates(gbps, latency)

    def joins(self, source: int, target: int) -> bool:
        """True if the file has such a link, or a port of one of the two nodes."""
        low, high = sorted((source, target))
        if high >= self._first_port:
            return int(self._about.ports.of[high - self._first_port]) == low
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
        """Return the GB/s out of each group, or into it where that is more."""
        count = int(of.max()) + 1
        area = self._with_own_switches(of, count)
        source, target = area[self._table.source], area[self._table.target]
        gbps = self.rates(self._links, cost).gbps
        across = source != target
        leaves, enters = across & (source < count), across & (target < count)
        out = self._through(leaves, source, gbps, self._in_port[0], count)
        return np.maximum(out, self._through(enters, target, gbps, self._in_port[1], count))

    def _through(
        self, some: Bools, group: IntArray, gbps: Floats, port: IntArray, count: int
    ) -> Floats:
        """Return the GB/s of some links by the group of each, no port above its rate."""
        is_free = some & (port < 0)
        beside = np.bincount(group[is_free], gbps[is_free], count)
        shared = some & (port >= 0)
        ports = len(self._about.ports.of)
        key, of_link = np.unique(group[shared] * ports + port[shared], return_inverse=True)
        most = self._about.gbps[self._first_port :][key % ports] if len(key) else np.zeros(0)
        together = np.bincount(of_link.reshape(-1), gbps[shared], len(key))
        through = np.bincount(key // max(ports, 1), np.minimum(together, most), count)
        return np.asarray(beside + through, np.float64)

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
        """Return the number of the declared route of each pair; -1 for none."""
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

    @cached_property
    def _taken(self) -> Visited | None:
        """The links that data over each link of the table takes, in order: ports out, itself, ports
        in, and the switch that it leads to, where that has a rate; None where all take only
        themselves.
        """
        ports, places = self._about.ports, np.arange(len(self._links))
        narrow = np.isfinite(self._about.gbps[self._table.target])
        if not len(ports.of) and not narrow.any():
            return None
        to = self._table.target[narrow]
        outward = self.number(ports.node, ports.neighbour)
        inward = self.number(ports.neighbour, ports.node)
        parts = [
            (*self._there(outward), self.number(ports.node, ports.port)),
            (places, places >= 0, self._links),
            (*self._there(inward), self.number(ports.port, ports.node)),
            (places[narrow], to >= 0, self.number(to, to)),
        ]
        place = np.concatenate([at[there] for at, there, _ in parts])
        taken = np.concatenate([links[there] for _, there, links in parts])
        order = np.argsort(place, kind="stable")
        return Visited(ends(np.bincount(place, minlength=len(places))), taken[order])

    @cached_property
    def _in_port(self) -> tuple[IntArray, IntArray]:
        """The first port that each link goes out through, or else in through; and the other way
        round; -1 for none.
        """
        ports, none = self._about.ports, len(self._about.ports.of)
        out, into = np.full((2, len(self._links)), none)
        for found, one, other in (
            (out, ports.node, ports.neighbour),
            (into, ports.neighbour, ports.node),
        ):
            at, there = self._there(self.number(one, other))
            np.minimum.at(found, at[there], ports.port[there] - self._first_port)
        first, last = np.where(out < none, out, into), np.where(into < none, into, out)
        return np.where(first < none, first, -1), np.where(last < none, last, -1)

    def _there(self, links: IntArray) -> tuple[IntArray, Bools]:
        """Return the places of links in the table, and whether they are there."""
        at = np.minimum(np.searchsorted(self._links, links), len(self._links) - 1)
        return at, self._links[at] == links


def _filled(values: Floats, otherwise: float | None) -> Floats:
    return np.where(np.isnan(values), np.inf if otherwise is None else otherwise, values)
