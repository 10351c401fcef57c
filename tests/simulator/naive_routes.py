"""Routes and capacities by their description in docs/networks.md and docs/simulation.md.

A link is a pair of nodes; a node is a rank's number or a name. Links of a product's route are of
one sort (hccs, sio, pcie, roce). Generated networks are taken sprayed alone: of them the graph of
neighbours is read, and paths are counted here. A `Tangle` states its own links.
"""

import math
import re
from collections import deque
from collections.abc import Hashable
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from hccl_py.simulator import CostModel, LinkCost, Stragglers
from hccl_py.topology import Topology
from hccl_py.topology.networks import Network
from hccl_py.topology.networks.spray import Sprayed
from tests.simulator.moves import Tangle

Node = Hashable
Link = tuple[Node, Node]


class Way(NamedTuple):
    """A route: its sort of links, links with the share of the data that each carries, the latency
    that links add, and whether a link of their own joins the two ranks.
    """

    sort: str
    shares: dict[Link, float]
    latency_us: float = 0.0
    is_direct: bool = False


class NaiveRoutes:
    """The links of a topology; those that never fill have no capacity."""

    def __init__(self, topology: Topology, cost: CostModel, slow: Stragglers) -> None:
        self.topology, self.cost, self.slow = topology, cost, slow
        self.shape, self.network = topology.product.shape, topology.network
        self.has_host_switch = self.shape == "pcie" or topology.product.modules > 1
        self.sorts: dict[Link, str] = {}

    def way(self, source: int, target: int, plane: str, *, is_rdma: bool) -> Way:
        """Return the route of what goes from one rank to another over a plane's transport."""
        if isinstance(self.network, Tangle):
            return self._tangled(self.network, source, target)
        if isinstance(self.network, Sprayed):
            return self._sprayed(self.network, source, target, is_rdma)
        assert self.network is None, self.network
        leaves = is_rdma or (self.shape == "clos" and plane == "level1")
        sort = "roce" if leaves else self._sort(source, target, switched=plane == "hccs")
        nodes = [source, *self._between(source, target, sort), target]
        links: list[Link] = list(pairwise(nodes))
        ports: dict[Link, float] = {}
        for number, (sorts, _) in enumerate(self._ports()):
            if sort in sorts:
                port = f"port {number}"
                ports |= {(a, port): 1.0 for a, _ in links if isinstance(a, int)}
                ports |= {(port, b): 1.0 for _, b in links if isinstance(b, int)}
        self.sorts.update(dict.fromkeys(links, sort))
        return Way(sort, ports | dict.fromkeys(links, 1.0), is_direct=len(links) == 1)

    def capacity(self, link: Link) -> float:
        """Return the bytes a µs of a link; inf for one that never fills."""
        return 1e3 * self._gbps(link) / self.slowness(link)

    def slowness(self, link: Link) -> float:
        """Return the product of the factors of a link."""
        ends = set(map(str, link))
        return math.prod(factor for *names, factor in self.slow.links if set(names) == ends)

    def pair_slowness(self, source: int, target: int) -> float:
        """Return the factor of two ranks that no link of their own joins."""
        server = self.topology.server
        joined = server[source] == server[target] and self.network is None
        joined = joined and self.way(source, target, "", is_rdma=False).is_direct
        return 1.0 if joined else self.slowness((source, target))

    def _sort(self, source: int, target: int, *, switched: bool) -> str:
        of, is_near = self.topology, self.topology.server[source] == self.topology.server[target]
        if self.shape == "pcie" or (self.has_host_switch and not is_near):
            return "pcie"
        if self.shape == "clos" and not is_near:
            return "roce"
        package = of.device_id[source] // 2 == of.device_id[target] // 2
        dies = self.shape == "dies" and is_near and package and not switched
        return "sio" if dies else "hccs"

    def _between(self, source: int, target: int, sort: str) -> list[Node]:
        """Return the nodes between two ranks."""
        of = self.topology
        if sort == "roce":
            return ["outside"]
        if sort == "pcie" and self.has_host_switch:
            return [f"host {of.host[source]}"]
        if sort == "hccs" and self.shape == "dies":
            return [f"superpod {of.superpod[source]}"]
        if self.shape == "ring":
            return self._around(source, target)
        return self._opposite(source, target) if self.shape == "8p" else []

    def _around(self, source: int, target: int) -> list[Node]:
        """Return the devices passed on the shorter way round, upwards where both are equal."""
        of = self.topology
        members = [r for r in range(of.size) if of.server[r] == of.server[source]]
        members.sort(key=lambda rank: int(of.device[rank]))
        at, size = members.index(source), len(members)
        up = (members.index(target) - at) % size
        steps = range(1, up) if up <= size - up else range(-1, up - size, -1)
        return [members[(at + step) % size] for step in steps]

    def _opposite(self, source: int, target: int) -> list[Node]:
        """Return the device by which an 8p server's groups of four are joined, if one is needed."""
        of = self.topology
        mine, far = int(of.device_id[source]), int(of.device_id[target])
        if mine // 4 == far // 4 or mine % 4 == far % 4:
            return []
        where = {
            int(of.device_id[r]): r for r in range(of.size) if of.server[r] == of.server[source]
        }
        found = where.get((mine + 4) % 8, where.get((far + 4) % 8))
        return [] if found is None else [found]

    def _ports(self) -> list[tuple[tuple[str, ...], float]]:
        """Return the sorts of links and the rate of each port that links of a device share: those
        stated, and one where links from device to device have a rate of the device.
        """
        direct = [name for name in ("hccs", "sio", "pcie") if not self._ends_in_a_switch(name)]
        rates = [((name,), self._link(name).device_gbps) for name in direct]
        stated = [(port.links, port.gbps) for port in self.cost.shared_ports]
        return [*stated, *((sorts, gbps) for sorts, gbps in rates if gbps)]

    def _ends_in_a_switch(self, sort: str) -> bool:
        return (sort == "hccs" and self.shape == "dies") or (
            sort == "pcie" and self.has_host_switch
        )

    def _link(self, sort: str) -> LinkCost:
        found: LinkCost = getattr(self.cost, sort)
        return found

    def _gbps(self, link: Link) -> float:
        one, other = link
        if one == other and isinstance(one, int):
            return self.cost.memory_gbps or math.inf
        if isinstance(self.network, Tangle):
            return float(self.network.gbps[int(str(one).removeprefix("any "))])
        if isinstance(self.network, Sprayed):
            return _generated_gbps(self.network, self.cost, link)
        for end in map(str, link):
            if end.startswith("port "):
                return self._ports()[int(end.removeprefix("port "))][1]
        of = self._link(self.sorts[link])
        widest = max((of.read_gbps or of.gbps or math.inf), (of.write_gbps or of.gbps or math.inf))
        if isinstance(one, int) and isinstance(other, int):
            return widest
        return of.device_gbps or widest * of.ports

    def _tangled(self, network: Tangle, source: int, target: int) -> Way:
        routes = network.routes(np.array([source]), np.array([target]), np.zeros(1, np.int8))
        numbers = routes.link % network.nodes - network.ranks
        return Way("hccs", {(f"any {k}", f"any {k}"): 1.0 for k in numbers.tolist()})

    def _sprayed(self, network: Sprayed, source: int, target: int, is_rdma: bool) -> Way:
        """Spread data over all routes with the fewest links, in equal shares."""
        here, there = _paths(network, source), _paths(network, target)
        hops, ways = here[target]
        shares: dict[Link, float] = {}
        for node, (far, paths) in here.items():
            for other in _neighbours(network)[node]:
                left, further = there[other]
                if far + 1 + left == hops:
                    shares[node, other] = paths * further / ways
        late = re.search(r"([0-9.]+) us a link", network.name)
        latency = float(late[1]) if late else self.cost.hop_us
        return Way("roce" if is_rdma else "hccs", shares, hops * latency)


def _generated_gbps(network: Sprayed, cost: CostModel, link: Link) -> float:
    """Return the rate of HCCS, which links between switches have thinned where they are fewer."""
    assert "GB/s" not in network.name, "no test states a rate of its own"
    thinned = re.search("oversubscription ([0-9.]+)", network.name)
    is_inner = all(isinstance(node, int) and node >= network.ranks for node in link)
    return (cost.hccs.gbps or math.inf) / (float(thinned[1]) if thinned and is_inner else 1.0)


@lru_cache
def _neighbours(network: Network) -> list[list[int]]:
    every = range(network.nodes)
    return [[b for b in every if b != a and network.joins(a, b)] for a in every]


@lru_cache
def _paths(network: Network, source: int) -> dict[int, tuple[int, int]]:
    """Return the links to every node, and by how many ways of so few links it is reached."""
    hops, ways = {source: 0}, {source: 1}
    queue = deque([source])
    while queue:
        node = queue.popleft()
        for other in _neighbours(network)[node]:
            if other not in hops:
                hops[other], ways[other] = hops[node] + 1, 0
                queue.append(other)
            if hops[other] == hops[node] + 1:
                ways[other] += ways[node]
    return {node: (hops[node], ways[node]) for node in hops}
