"""Networks: nodes, directed links with rates and latencies, and routes, computed when asked for.

Nodes 0 .. ranks - 1 are the ranks, further ones switches. A directed link is a number,
`source · nodes + target`; so a network of any size needs no table of links. A link from a node to
itself is what the node as a whole lets through: the memory of a rank, the backplane of a switch.
Every link is full duplex: the two directions are two links.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from hccl_py.errors import ParameterError, did_you_mean
from hccl_py.values import IntArray

if TYPE_CHECKING:
    from hccl_py.simulate.cost import CostModel

__all__ = ["Network", "Rates", "Routes", "routes_of"]

Floats = npt.NDArray[np.float64]


class Routes(NamedTuple):
    """Route k goes over links `link[first[k]] .. link[first[k + 1] - 1]`."""

    first: IntArray
    link: IntArray


class Rates(NamedTuple):
    """What links let through in GB/s (inf: anything) and the latency that each adds, in µs."""

    gbps: Floats
    latency_us: Floats


class Network(ABC):
    """What joins the ranks; subclasses say which routes data takes and how fast links are."""

    name: str
    ranks: int
    nodes: int

    @abstractmethod
    def routes(self, source: IntArray, target: IntArray, is_rdma: npt.NDArray[np.bool_]) -> Routes:
        """Return the route of each pair of different ranks, always the same one; `is_rdma` says
        which take RoCE on products that have both.
        """

    @abstractmethod
    def rates(self, links: IntArray, cost: CostModel) -> Rates:
        """Return rates and latencies of links; the cost model says what the network leaves open."""

    def subset(self, ranks: IntArray) -> Network:
        """Return the same network with some of its ranks only, in the order given."""
        return Subset(self, ranks)

    def number(self, source: IntArray, target: IntArray) -> IntArray:
        """Return the links between pairs of nodes that are joined."""
        return source * self.nodes + target

    def ends(self, links: IntArray) -> tuple[IntArray, IntArray]:
        """Return the two nodes of links."""
        source, target = np.divmod(links, self.nodes)
        return source, target

    @abstractmethod
    def joins(self, source: int, target: int) -> bool:
        """Whether there is a link from one node to another one."""

    def node_name(self, node: int) -> str:
        """Return how people spell a node: a rank's number, or a switch's name."""
        return str(node) if node < self.ranks else f"switch{node - self.ranks}"

    def node(self, name: str) -> int:
        """Return the node of a name; ParameterError where there is none."""
        for node in range(self.nodes):
            if self.node_name(node) == name:
                return node
        names = [self.node_name(node) for node in range(min(self.nodes, 10_000))]
        raise ParameterError(f"{self.name} has no node {name!r}.", did_you_mean(name, names))


def routes_of(columns: list[IntArray]) -> Routes:
    """Return routes from one column per hop, in order; -1 where a route has no such hop."""
    if not columns:
        return Routes(np.zeros(1, np.int64), np.zeros(0, np.int64))
    hops = np.stack(columns, axis=1)
    used = hops >= 0
    first = np.zeros(len(hops) + 1, np.int64)
    np.cumsum(used.sum(axis=1), out=first[1:])
    return Routes(first, hops[used])


class Subset(Network):
    """Some ranks of a network, numbered anew; nodes and links keep their numbers, and the other
    ranks are idle.
    """

    def __init__(self, whole: Network, ranks: IntArray) -> None:
        self._whole, self._at = whole, ranks
        self.name, self.nodes, self.ranks = whole.name, whole.nodes, len(ranks)

    def routes(self, source: IntArray, target: IntArray, is_rdma: npt.NDArray[np.bool_]) -> Routes:
        """Return the routes of the whole network."""
        return self._whole.routes(self._at[source], self._at[target], is_rdma)

    def rates(self, links: IntArray, cost: CostModel) -> Rates:
        """Return the rates of the whole network."""
        return self._whole.rates(links, cost)

    def joins(self, source: int, target: int) -> bool:
        """Whether the whole network has such a link."""
        return self._whole.joins(source, target)

    def node_name(self, node: int) -> str:
        """Return the number that a rank has here; ranks that do not take part are in brackets."""
        place = np.flatnonzero(self._at == node)
        if len(place):
            return str(int(place[0]))
        name = self._whole.node_name(node)
        return f"({name})" if node < self._whole.ranks else name
