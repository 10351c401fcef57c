"""The common base of generated networks: links of one sort, and nodes that numbers describe."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hccl_py.topology.networks.network import Network, Ports, Rates, Routes
from hccl_py.topology.networks.paths import Visited
from hccl_py.topology.networks.shortest import Graph
from hccl_py.values import Floats, IntArray

if TYPE_CHECKING:
    from hccl_py.clocks.cost import CostModel


class Speed(NamedTuple):
    """Rate and latency of a link; None: that of HCCS links, and `hop_us`, of the cost model."""

    gbps: float | None = None
    latency_us: float | None = None

    def of(self, cost: CostModel) -> tuple[float, float]:
        """Return GB/s (inf: anything) and µs."""
        gbps = cost.hccs.gbps if self.gbps is None else self.gbps
        latency = cost.hop_us if self.latency_us is None else self.latency_us
        return np.inf if gbps is None else gbps, latency

    @property
    def spelling(self) -> str:
        """The chosen speed, as a suffix for names."""
        gbps = "" if self.gbps is None else f", {self.gbps:g} GB/s"
        return gbps + ("" if self.latency_us is None else f", {self.latency_us:g} us a link")


PLAIN = Speed()


class Generated(Network):
    """A network whose routes follow from the numbers of nodes.

    `switches` are kinds of switches and how many there are of each, in the order of nodes.
    """

    def __init__(
        self, name: str, ranks: int, switches: tuple[tuple[str, int], ...], speed: Speed
    ) -> None:
        self.name = name + speed.spelling
        self.ranks = ranks
        self.nodes = ranks + sum(count for _, count in switches)
        self.speed = speed
        self._switches = switches

    @abstractmethod
    def visited(self, source: IntArray, target: IntArray) -> Visited:
        """Return the nodes on the routes of pairs of ranks."""

    @abstractmethod
    def neighbours(self, node: int) -> list[int]:
        """Return the nodes that a node has links to, and from."""

    @cached_property
    def graph(self) -> Graph:
        """All links, as long as each other."""
        joined = [self.neighbours(node) for node in range(self.nodes)]
        source = np.repeat(np.arange(self.nodes), [len(others) for others in joined])
        target = np.array([node for others in joined for node in others], np.int64)
        return Graph.of(self.nodes, source, target, np.zeros(len(target), np.int64))

    def routes(self, source: IntArray, target: IntArray, ports: Ports) -> Routes:
        """Return the links between what is visited; there is one sort of them."""
        return self.visited(source, target).routes(source, self.nodes)

    def rates(self, links: IntArray, cost: CostModel) -> Rates:
        """Every link has the same rate, unless it is thinned, and the same latency."""
        source, target = self.ends(links)
        gbps, latency = self.speed.of(cost)
        own = source == target
        rate = np.where(own, memory_of(cost), gbps / self.thinned(source, target))
        return Rates(rate, np.where(own, 0.0, latency))

    def thinned(self, source: IntArray, target: IntArray) -> Floats:
        """Return by what the rate of each link is divided."""
        return np.ones(len(source))

    def joins(self, source: int, target: int) -> bool:
        """True if one node is the other's neighbour."""
        return target in self.neighbours(source)

    def node_name(self, node: int) -> str:
        """Return a rank's number, or a switch's kind and its number among those."""
        if node < self.ranks:
            return str(node)
        number = node - self.ranks
        for kind, count in self._switches:
            if number < count:
                return f"{kind}{number}"
            number -= count
        raise IndexError(node)


def memory_of(cost: CostModel) -> float:
    """Return the GB/s of a rank's memory, which is its link to itself; inf: anything."""
    return np.inf if cost.memory_gbps is None else cost.memory_gbps
