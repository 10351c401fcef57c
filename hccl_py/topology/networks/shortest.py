"""Shortest paths in a graph: Dijkstra from the sources that are asked for, kept per source.

What counts is latency, then hops, then the order of nodes: of several paths of the same latency and
hops, the one whose last node but one comes first, and so on backwards. Latencies are whole
picoseconds, so that sums are exact.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hccl_py.program.kernels import kernel
from hccl_py.topology.networks.paths import Visited, ends
from hccl_py.values import IntArray

KEPT = 1 << 25
"""Entries of trees that are kept: 128 MB."""


class Graph(NamedTuple):
    """Links in the order of their sources: those of node k lead to `head[first[k]]` and further,
    each with `length` in picoseconds.
    """

    first: IntArray
    head: IntArray
    length: IntArray

    @staticmethod
    def of(nodes: int, source: IntArray, target: IntArray, length: IntArray) -> Graph:
        """Return the graph of links in any order."""
        order = np.lexsort((target, source))
        first = ends(np.bincount(source, minlength=nodes))
        return Graph(first, target[order], length[order])

    def turned(self) -> Graph:
        """Return the graph with every link turned round."""
        nodes = len(self.first) - 1
        source = np.repeat(np.arange(nodes), np.diff(self.first))
        return Graph.of(nodes, self.head, source, self.length)

    def reached(self, source: int) -> npt.NDArray[np.bool_]:
        """Return a mask of the nodes that a path leads to."""
        every_node = np.ones(len(self.first) - 1, np.bool_)
        found: npt.NDArray[np.bool_] = self.search(source, every_node).before >= 0
        return found

    def search(self, source: int, wanted: npt.NDArray[np.bool_]) -> PathTree:
        """Find the shortest paths from a source to the wanted nodes at least."""
        run = _dijkstra.sized(len(self.head))
        return PathTree(*run(self.first, self.head, self.length, source, wanted, int(wanted.sum())))


class PathTree(NamedTuple):
    """The node before each on its path from a source, -1 for those that were not looked for; how
    long that path is, in picoseconds and in hops.
    """

    before: npt.NDArray[np.int32]
    far: IntArray
    hops: IntArray


class Shortest:
    """Shortest paths between ranks, which are the first nodes."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._nodes = len(graph.first) - 1
        self._trees: OrderedDict[int, npt.NDArray[np.int32]] = OrderedDict()

    def visited(self, source: IntArray, target: IntArray) -> Visited:
        """Return the nodes on the shortest paths of pairs."""
        order = np.argsort(source, kind="stable")
        starts = np.flatnonzero(np.diff(source[order], prepend=-1))
        parts = []
        for pairs in np.split(order, starts[1:]):
            if len(pairs):
                parts.append((pairs, self._paths(int(source[pairs[0]]), target[pairs])))
        return Visited.put_together(parts) if parts else Visited(np.zeros(1, np.int64), order)

    def _paths(self, source: int, targets: IntArray) -> Visited:
        """Follow a source's tree back from the targets."""
        before = self._tree(source, targets)
        hops, here = [targets], targets
        while (here != source).any():
            here = np.where(here == source, source, before[here])
            hops.append(here)
        steps = np.stack(hops[::-1], axis=1)
        used = steps != source
        return Visited(ends(used.sum(axis=1)), steps[used])

    def _tree(self, source: int, targets: IntArray) -> npt.NDArray[np.int32]:
        """Return the node before each on the paths from a source; -1 for what is not known yet.

        The first time as far as the targets, which is all that rings need; then the whole.
        """
        kept = self._trees.pop(source, None)
        if kept is None or (kept[targets] < 0).any():
            wanted = np.full(self._nodes, kept is not None)
            wanted[targets] = True
            kept = self._graph.search(source, wanted).before
        self._trees[source] = kept
        if len(self._trees) * self._nodes > KEPT:
            self._trees.popitem(last=False)
        return kept


# Links of node k are first[k] .. first[k + 1] - 1: they lead to `head`, and are `length`
# picoseconds long. `wanted` marks `left` nodes, and the search ends when all of them are done.
# O(links · log links); a node is in the heap once for every time that a shorter path to it was
# found.
@kernel
def _dijkstra(
    first: IntArray,
    head: IntArray,
    length: IntArray,
    source: int,
    wanted: npt.NDArray[np.bool_],
    left: int,
) -> tuple[npt.NDArray[np.int32], IntArray, IntArray]:
    """Return the node before each on its shortest path from the source, which is its own, the
    path's length and its hops; -1 for nodes that are not reached before all `left` wanted ones are.

    Of paths of the same length and hops, the one whose last node but one has the lowest number.
    """
    # Invariant: nodes that are done have their final distance, hops and node before; the heap has
    # every other node that a link leads to from them, with the best distance found so far. As no
    # path has zero hops, all nodes that may stand before a node are done when it is taken.
    nodes = len(first) - 1
    far = np.full(nodes, np.iinfo(np.int64).max, np.int64)
    hops = np.full(nodes, np.iinfo(np.int64).max, np.int64)
    before = np.full(nodes, -1, np.int32)
    is_done = np.zeros(nodes, np.bool_)
    far[source] = 0
    hops[source] = 0
    before[source] = source
    heap = [(0, 0, source)]
    while len(heap) > 0 and left > 0:
        distance, steps, node = heapq.heappop(heap)
        if is_done[node]:
            continue  # a longer path to it, found earlier
        is_done[node] = True
        if wanted[node]:
            left -= 1
        for k in range(first[node], first[node + 1]):
            other, longer = int(head[k]), int(distance + length[k])
            if longer < far[other] or (longer == far[other] and steps + 1 < hops[other]):
                far[other] = longer
                hops[other] = steps + 1
                before[other] = node
                heapq.heappush(heap, (longer, steps + 1, other))
            elif longer == far[other] and steps + 1 == hops[other] and node < before[other]:
                before[other] = node
    for node in range(nodes):  # the search ended before these had their final paths
        if not is_done[node]:
            before[node] = -1
    return before, far, hops
