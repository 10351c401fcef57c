"""Networks: nodes, directed links with rates and latencies, and routes, computed when asked for.

Nodes 0 .. ranks - 1 are the ranks, further ones switches. A directed link is a number,
`source · nodes + target`; so a network of any size needs no table of links. A link from a node to
itself stands for the node as a whole: the memory of a rank, the backplane of a switch.
Every link is full duplex: the two directions are two links. A port that several links of a node
share is a node of its own that only this one is joined to, and a link more of their routes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from hccl_py.errors import ParameterError
from hccl_py.topology.networks.cuts import Cut, Partition, slowest
from hccl_py.values import Floats, IntArray

if TYPE_CHECKING:
    from hccl_py.clocks.cost import CostModel

Bools = npt.NDArray[np.bool_]

NEAREST, OUT, SWITCHED = range(3)
"""Where data leaves a rank: over what joins it most directly with its peer, by the port of RoCE or
of a Clos network, or by the switch of HCCS even where a link of their own joins the two.
"""

Ports = npt.NDArray[np.int8] | Bools
"""One of these for each pair; of booleans, which take the port out."""


class Routes(NamedTuple):
    """Route k goes over links `link[first[k]] .. link[first[k + 1] - 1]`, each of them once.

    Where data is spread over several ways, `share` is how much of it goes over each of the links;
    None: all of it goes over all of them.
    """

    first: IntArray
    link: IntArray
    share: Floats | None = None

    @property
    def shares(self) -> Floats | float:
        """The share of a route's data that each of its links carries."""
        return 1.0 if self.share is None else self.share


class Rates(NamedTuple):
    """Capacities of links in GB/s (inf: no limit), and the latency that each adds, in µs."""

    gbps: Floats
    latency_us: Floats


class Network(ABC):
    """The links that join ranks; subclasses say which routes data takes and how fast links are."""

    name: str
    ranks: int
    nodes: int
    further: str = "switches"

    @abstractmethod
    def routes(self, source: IntArray, target: IntArray, ports: Ports) -> Routes:
        """Return the route of each pair of different ranks, always the same one, or all links of
        its routes where data is spread over several; `ports` count on products, which have several
        ways.
        """

    def latency_us(
        self, source: IntArray, target: IntArray, ports: Ports, cost: CostModel
    ) -> Floats:
        """Return the latency of each pair's route, in µs; that of the longest of several routes."""
        routes = self.routes(source, target, ports)
        found: Floats = np.add.reduceat(self.rates(routes.link, cost).latency_us, routes.first[:-1])
        return found

    @abstractmethod
    def rates(self, links: IntArray, cost: CostModel) -> Rates:
        """Return rates and latencies of links; the cost model says what the network leaves open."""

    @abstractmethod
    def groups(self, cost: CostModel) -> list[Partition]:
        """Return the natural ways to cut the network, each rank alone first."""

    def cuts(self, cost: CostModel) -> list[Cut]:
        """Return the cuts that bind, each with ranks on both sides: of the groups of one kind with
        equally many ranks, the slowest.
        """
        return slowest(self.groups(cost))

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
        """Return True if there is a link from one node to another one."""

    def node_name(self, node: int) -> str:
        """Return the name of a node: a rank's number, or a switch's name."""
        return str(node) if node < self.ranks else f"switch{node - self.ranks}"

    def node(self, name: str) -> int:
        """Return the node of a name, or of a rank's number; ParameterError where there is none."""
        found = self._nodes.get(name)
        if found is None:
            switches = (
                f" and {self.nodes - self.ranks} {self.further}" if self.nodes > self.ranks else ""
            )
            last = f", the last of them {self.node_name(self.nodes - 1)}" if switches else ""
            raise ParameterError(
                f"{self.name} has no node {name!r}.",
                f"It has ranks 0 to {self.ranks - 1}{switches}{last}.",
            )
        return found

    def joined_names(self, name: str) -> list[str]:
        """Return the names of the nodes that a link joins with one."""
        node = self.node(name)
        return [self.node_name(n) for n in range(self.nodes) if n != node and self.joins(node, n)]

    @property
    def rank_nodes(self) -> IntArray:
        """The node of every rank."""
        return np.arange(self.ranks)

    @cached_property
    def _nodes(self) -> dict[str, int]:
        numbered = {str(rank): node for rank, node in enumerate(self.rank_nodes.tolist())}
        return numbered | {self.node_name(node): node for node in range(self.nodes)}


class Subset(Network):
    """Some ranks of a network, numbered anew; nodes and links keep their numbers, and the other
    ranks are idle.
    """

    def __init__(self, whole: Network, ranks: IntArray) -> None:
        self._whole, self._at = whole, ranks
        self.name, self.nodes, self.ranks = whole.name, whole.nodes, len(ranks)
        self.further = whole.further

    def routes(self, source: IntArray, target: IntArray, ports: Ports) -> Routes:
        """Return the routes of the whole network."""
        return self._whole.routes(self._at[source], self._at[target], ports)

    def latency_us(
        self, source: IntArray, target: IntArray, ports: Ports, cost: CostModel
    ) -> Floats:
        """Return the latencies of the whole network."""
        return self._whole.latency_us(self._at[source], self._at[target], ports, cost)

    def rates(self, links: IntArray, cost: CostModel) -> Rates:
        """Return the rates of the whole network."""
        return self._whole.rates(links, cost)

    def groups(self, cost: CostModel) -> list[Partition]:
        """Return the groups of the whole network, with the ranks that take part."""
        return [group.of_some(self._at) for group in self._whole.groups(cost)]

    def subset(self, ranks: IntArray) -> Network:
        """Return some of these ranks, of the whole network."""
        return Subset(self._whole, self._at[ranks])

    def joins(self, source: int, target: int) -> bool:
        """Return True if the whole network has such a link."""
        return self._whole.joins(source, target)

    def node_name(self, node: int) -> str:
        """Return the number that a rank has here; ranks that do not take part are in brackets, and
        names other than numbers stay.
        """
        name = self._whole.node_name(node)
        if node >= self._whole.ranks or name != str(node):
            return name
        return str(self._place[node]) if node in self._place else f"({name})"

    @property
    def rank_nodes(self) -> IntArray:
        """The node of every rank: its number in the whole network."""
        return self._whole.rank_nodes[self._at]

    @cached_property
    def _place(self) -> dict[int, int]:
        return {node: place for place, node in enumerate(self.rank_nodes.tolist())}
