"""Packet spraying: data of a pair goes over all of its shortest paths at once, in equal shares, or
by the rates of the links.

          ┌─ c0 ─┐        four paths from a to b: half of the data takes each of the links around
    a ─ e ┤      ├ f ─ b  c0 and c1, all of it a ─ e and f ─ b; a link between levels, of which
          └─ c1 ─┘        there may be many, carries (paths to it) x (paths from it) / (all paths)

Where the rates of links count, a node with two that lead on, of 30 and 10 GB/s, sends three
quarters over the first one: it knows its own links, not those behind.

So paths are counted, never listed: forwards from the source and backwards from the target, over the
links that lie on any of them. Shortest is what it is for one path: latency, then hops.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from hccl_py.errors import ParameterError
from hccl_py.program.kernels import kernel, reading
from hccl_py.topology.networks.cuts import Partition
from hccl_py.topology.networks.generated import Generated
from hccl_py.topology.networks.network import Network, Ports, Rates, Routes
from hccl_py.topology.networks.paths import ends
from hccl_py.topology.networks.shortest import Graph, PathTree
from hccl_py.values import Floats, IntArray

if TYPE_CHECKING:
    from hccl_py.clocks.cost import CostModel

MOST_PATHS = 1 << 20
"""Paths over which the data of a pair may be spread."""

KEPT = 1 << 22
"""Nodes for which distances are kept: 84 MB."""

_ROOM = 1 << 16
"""Links of pairs for which there is room at once, at least."""


class Spread(NamedTuple):
    """The links of pair k's paths are `edge[first[k]] .. edge[first[k + 1] - 1]` of a graph, from
    the source on, each with its share of the data; `late` is the latency of the longest path.
    """

    first: IntArray
    edge: IntArray
    share: Floats
    late: Floats


class Spreading:
    """All shortest paths between the nodes of a graph; `name` is that of the network, `gbps` has
    the rates of the graph's edges where these count. A node whose edges all state one (NaN: none)
    splits data by the rates of those that lead on, times the paths behind them.
    """

    def __init__(self, name: str, graph: Graph, gbps: Floats | None = None) -> None:
        nodes = len(graph.first) - 1
        self._name, self._graph = name, graph
        self.tail = np.repeat(np.arange(nodes), np.diff(graph.first))
        self._edge = np.lexsort((self.tail, graph.head))
        self._into = ends(np.bincount(graph.head, minlength=nodes))
        self._columns = (
            reading(self._into),
            reading(self.tail[self._edge]),
            reading(graph.head[self._edge]),
            reading(self._edge),
            reading(graph.length[self._edge]),
        )
        self._weight = np.ones(len(graph.head)) if gbps is None else _weights(self.tail, gbps)
        self._kept: OrderedDict[int, PathTree] = OrderedDict()

    @property
    def head(self) -> IntArray:
        """The node that each edge leads to."""
        return self._graph.head

    def spread(
        self, source: IntArray, target: IntArray, latency_us: Floats | None = None
    ) -> Spread:
        """Return the links of pairs, and by the latency of every edge that of their longest path.

        ParameterError for pairs of too many paths.
        """
        latency = np.zeros(len(self.tail)) if latency_us is None else latency_us
        groups = _by_source(source)
        parts = [
            part
            for pairs in groups
            for part in self._from(int(source[pairs[0]]), target[pairs], latency[self._edge])
        ]
        if not parts:
            return Spread(np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0))
        order = np.concatenate(groups)
        count, edge, share, late = map(np.concatenate, zip(*parts, strict=True))
        begin = ends(count)
        if (order[1:] > order[:-1]).all():
            return Spread(begin, edge, share, late)
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        first = ends(count[place])
        entry = np.repeat(begin[place] - first[:-1], count[place]) + np.arange(first[-1])
        return Spread(first, edge[entry], share[entry], late[place])

    def hops(self, source: IntArray, target: IntArray) -> IntArray:
        """Return the number of links on the paths of each pair."""
        found = np.zeros(len(source), np.int64)
        for pairs in _by_source(source):
            targets = target[pairs]
            found[pairs] = self._found(int(source[pairs[0]]), targets).hops[targets]
        return found

    def _from(
        self, source: int, targets: IntArray, latency: Floats
    ) -> list[tuple[IntArray, IntArray, Floats, Floats]]:
        """Return for some targets at a time how many links they have, the links, their shares, and
        latencies.
        """
        found, nodes, edges = self._found(source, targets), len(self._into) - 1, len(self.tail)
        graph = *self._columns, reading(latency)
        scratch = np.zeros((3, nodes)), np.zeros(nodes, np.int64)
        parts, at = [], 0
        while at < len(targets):
            left = reading(targets[at:])
            edge = np.empty(max(edges, _ROOM), np.int64)
            share, late, count = np.empty(len(edge)), np.empty(len(left)), np.zeros_like(left)
            run = _spread.sized(len(left) * edges)
            ways = *graph, *found[1:], source, left, MOST_PATHS, *scratch
            done, paths = run(*ways, edge, share, late, count)
            if paths > MOST_PATHS:
                raise self._too_many(source, int(left[done]), paths)
            used = int(count[:done].sum())
            if (self._weight != 1).any():
                _weigh.sized(used)(
                    ends(count[:done]),
                    edge[:used],
                    reading(self.tail),
                    reading(self.head),
                    reading(self._weight),
                    np.zeros((2, nodes)),
                    share[:used],
                )
            parts.append((count[:done], edge[:used], share[:used], late[:done]))
            at += done
        return parts

    def _too_many(self, source: int, target: int, paths: float) -> ParameterError:
        return ParameterError(
            f"{self._name}: from rank {source} to rank {target} there are {paths:.7g} shortest "
            "paths.",
            f"Data is sprayed over at most {MOST_PATHS}; leave spray out, or make the network "
            "smaller.",
        )

    def _found(self, source: int, targets: IntArray) -> PathTree:
        """Return distances from a source, the first time as far as the targets, then of all."""
        kept = self._kept.pop(source, None)
        if kept is None or (kept.before[targets] < 0).any():
            wanted = np.full(len(self._into) - 1, kept is not None)
            wanted[targets] = True
            kept = self._graph.search(source, wanted)
        self._kept[source] = kept
        if len(self._kept) * len(kept.before) > KEPT:
            self._kept.popitem(last=False)
        return kept


class Sprayed(Network):
    """A generated network whose data takes all routes with the fewest links."""

    def __init__(self, whole: Generated) -> None:
        self._whole = whole
        self.name, self.ranks, self.nodes = f"{whole.name}, sprayed", whole.ranks, whole.nodes
        self._spreading = Spreading(self.name, whole.graph)
        self._links = self.number(self._spreading.tail, self._spreading.head)

    def routes(self, source: IntArray, target: IntArray, ports: Ports) -> Routes:
        """Return the links of all routes of pairs."""
        found = self._spreading.spread(source, target)
        return Routes(found.first, self._links[found.edge], found.share)

    def latency_us(
        self, source: IntArray, target: IntArray, ports: Ports, cost: CostModel
    ) -> Floats:
        """All routes of a pair have as many links, and all links the same latency."""
        latency = self._whole.rates(self._links[:1], cost).latency_us
        return np.asarray(self._spreading.hops(source, target) * latency)

    def rates(self, links: IntArray, cost: CostModel) -> Rates:
        """Return the rates of the network."""
        return self._whole.rates(links, cost)

    def groups(self, cost: CostModel) -> list[Partition]:
        """Return the groups of the network: no route goes over links that it does not have."""
        return self._whole.groups(cost)

    def joins(self, source: int, target: int) -> bool:
        """Return True if the network has such a link."""
        return self._whole.joins(source, target)

    def node_name(self, node: int) -> str:
        """Return the name in the network."""
        return self._whole.node_name(node)


def _weights(tail: IntArray, gbps: Floats) -> Floats:
    """Return the weight of every edge among those of its tail: its rate by the least one of them, 1
    where one of them states none.
    """
    nodes = int(tail.max(initial=-1)) + 1
    least, is_known = np.full(nodes, np.inf), np.ones(nodes, np.bool_)
    np.fmin.at(least, tail, gbps)
    is_known[tail[np.isnan(gbps)]] = False
    return np.where(is_known[tail], gbps / least[tail], 1.0)


def _by_source(source: IntArray) -> list[IntArray]:
    """Return the places of pairs, those of one source together."""
    order = np.argsort(source, kind="stable")
    starts = np.flatnonzero(np.diff(source[order], prepend=-1))
    return np.split(order, starts[1:]) if len(order) else []


# Edges are numbered by the node that they lead to: those into node k are into[k] .. into[k + 1] -
# 1, from `tail` to `head`; `number` is their number in the graph, `length` in picoseconds,
# `latency` in µs. `far` and `hops` are the distances of nodes from the source. By node, 0 between
# targets: of_node[0] and [1] count paths, [2] is the latest arrival; `queue` lists the nodes that
# paths visit. Of target k: its links are the next count[k] of `edge`, each with its `share`, `late`
# its latency. A target costs the links that lead into nodes on its paths.
@kernel
def _spread(
    into: IntArray,
    tail: IntArray,
    head: IntArray,
    number: IntArray,
    length: IntArray,
    latency: Floats,
    far: IntArray,
    hops: IntArray,
    source: int,
    targets: IntArray,
    most: int,
    of_node: npt.NDArray[np.float64],
    queue: IntArray,
    edge: IntArray,
    share: Floats,
    late: Floats,
    count: IntArray,
) -> tuple[int, float]:
    """List the links of paths from a source to as many targets as there is room for, and up to one
    that has more than `most` paths; return the number of those targets, and of the last one's
    paths.
    """
    to_here, from_here, time = of_node[0], of_node[1], of_node[2]
    used, paths = 0, 0.0
    for k in range(len(targets)):
        if used + len(tail) > len(edge):
            return k, paths
        start, target, size, at = used, targets[k], 1, 0
        queue[0] = target
        from_here[target] = 1.0
        # Backwards by hops. A link is on a path to a node where the node is further than its tail
        # by just that link. Invariant: when a node's turn comes, `from_here` has all its paths to
        # the target, as all nodes one hop further had their turns.
        while at < size:
            node = queue[at]
            at += 1
            for e in range(into[node], into[node + 1]):
                one = tail[e]
                if hops[one] == hops[node] - 1 and far[one] == far[node] - length[e]:
                    if from_here[one] == 0:
                        queue[size] = one
                        size += 1
                    from_here[one] += from_here[node]
                    edge[used] = e
                    used += 1
        paths = from_here[source]
        to_here[source] = 1.0
        # Forwards, in the opposite order. Invariant: when a link's turn comes, `to_here` has all
        # paths from the source to its tail. Its share is that of the paths through it.
        for j in range(used - 1, start - 1, -1):
            e = edge[j]
            to_here[head[e]] += to_here[tail[e]]
            time[head[e]] = max(time[head[e]], time[tail[e]] + latency[e])
            share[j] = to_here[tail[e]] * from_here[head[e]] / paths
        for j in range((used - start) // 2):  # from the source on
            one, other = start + j, used - 1 - j
            edge[one], edge[other] = edge[other], edge[one]
            share[one], share[other] = share[other], share[one]
        for j in range(start, used):
            edge[j] = number[edge[j]]
        late[k] = time[target]
        count[k] = used - start
        for j in range(size):
            to_here[queue[j]] = from_here[queue[j]] = time[queue[j]] = 0.0
        if paths > most:
            return k, paths
    return len(targets), paths


# The links of target k are edge[first[k]] .. edge[first[k + 1] - 1], from the source on, each with
# its `share` if all links weigh the same: among those of one node, as the paths behind them.
# of_node[0] is what comes to a node, [1] what its links weigh, times their shares. Invariant: when
# a link's turn comes, all that comes to its tail is known. A target costs its links, three times.
@kernel
def _weigh(
    first: IntArray,
    edge: IntArray,
    tail: IntArray,
    head: IntArray,
    weight: Floats,
    of_node: npt.NDArray[np.float64],
    share: Floats,
) -> None:
    """Let links of one node share its data by their weights."""
    comes, total = of_node[0], of_node[1]
    for k in range(len(first) - 1):
        for j in range(first[k], first[k + 1]):
            e = edge[j]
            comes[tail[e]] = comes[head[e]] = total[tail[e]] = 0.0
        for j in range(first[k], first[k + 1]):
            total[tail[edge[j]]] += weight[edge[j]] * share[j]
        comes[tail[edge[first[k]]]] = 1.0
        for j in range(first[k], first[k + 1]):
            e = edge[j]
            share[j] = comes[tail[e]] * weight[e] * share[j] / total[tail[e]]
            comes[head[e]] += share[j]
