"""Routes from what they visit: lists of different lengths, one behind the other, as columns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hccl_py.topology.networks.network import Routes
from hccl_py.values import IntArray


class Visited(NamedTuple):
    """Route k visits, after its source, `node[first[k]] .. node[first[k + 1] - 1]`."""

    first: IntArray
    node: IntArray

    @staticmethod
    def by_hop(*columns: IntArray) -> Visited:
        """Return routes from one column per hop, in order; -1 where a route has no such hop."""
        hops = np.stack(columns, axis=1)
        used = hops >= 0
        return Visited(ends(used.sum(axis=1)), hops[used])

    @staticmethod
    def put_together(parts: list[tuple[IntArray, Visited]]) -> Visited:
        """Return routes from parts, each with the places of its routes in the whole."""
        count = np.concatenate([np.diff(part.first) for _, part in parts])
        node = np.concatenate([part.node for _, part in parts])
        order = np.argsort(np.concatenate([place for place, _ in parts]))
        return Visited(ends(count), node).some(order)

    def some(self, places: IntArray) -> Visited:
        """Return some of the routes, in the order given."""
        start, count = self.first[places], self.first[places + 1] - self.first[places]
        first = ends(count)
        return Visited(
            first, self.node[np.repeat(start - first[:-1], count) + np.arange(first[-1])]
        )

    def routes(self, source: IntArray, nodes: int) -> Routes:
        """Return the links that join what is visited, in a network of so many nodes."""
        before = np.empty_like(self.node)
        before[1:] = self.node[:-1]
        before[self.first[:-1]] = source
        return Routes(self.first, before * nodes + self.node)


def with_taken(routes: Routes, taken: Visited) -> Routes:
    """Return routes that take, for each of their links in turn, all those of a list."""
    found = Routes(taken.first[routes.first], taken.node)
    if routes.share is None:
        return found
    return merged(found._replace(share=np.repeat(routes.share, np.diff(taken.first))))


def merged(routes: Routes) -> Routes:
    """Let every link of a route stand there once, with the sum of its shares."""
    pairs = len(routes.first) - 1
    pair = np.repeat(np.arange(pairs), np.diff(routes.first))
    order = np.lexsort((routes.link, pair))
    pair, link = pair[order], routes.link[order]
    starts = np.flatnonzero((np.diff(pair, prepend=-1) != 0) | (np.diff(link, prepend=-1) != 0))
    share = np.add.reduceat(np.asarray(routes.share)[order], starts)
    return Routes(ends(np.bincount(pair[starts], minlength=pairs)), link[starts], share)


def together(parts: list[tuple[IntArray, Routes]]) -> Routes:
    """Return routes from parts, each with the places of its routes in the whole."""
    begin = ends(np.array([len(part.link) for _, part in parts])).tolist()
    entries = [
        (places, Visited(part.first, first + np.arange(len(part.link))))
        for (places, part), first in zip(parts, begin[:-1], strict=True)
    ]
    first, order = Visited.put_together(entries)
    link = np.concatenate([part.link for _, part in parts])[order]
    if all(part.share is None for _, part in parts):
        return Routes(first, link)
    share = np.concatenate([part.shares * np.ones(len(part.link)) for _, part in parts])
    return Routes(first, link, share[order])


class Ring(NamedTuple):
    """Ways round rings: `hops` of each pair; hop by hop, `pair` says whose it is,
    `step` how many hops of the pair come before it, `place` where it ends.
    """

    hops: IntArray
    pair: IntArray
    step: IntArray
    place: IntArray


def around(start: IntArray, end: IntArray, size: IntArray | int) -> Ring:
    """Return the shorter ways round rings of places 0 .. size - 1; upwards where both are equal."""
    up = (end - start) % size
    is_up = 2 * up <= size
    hops = np.where(is_up, up, size - up)
    pair = np.repeat(np.arange(len(start)), hops)
    step = np.arange(len(pair)) - np.repeat(ends(hops)[:-1], hops)
    sizes: IntArray | int = size if isinstance(size, int) else size[pair]
    way: IntArray = np.where(is_up, 1, -1)
    place = start[pair] + way[pair] * (step + 1)
    place += sizes * (place < 0)
    place -= sizes * (place >= sizes)
    return Ring(hops, pair, step, place)


def ends(count: IntArray) -> IntArray:
    """Return the places at which lists of these lengths begin, and the end of the last one."""
    first = np.zeros(len(count) + 1, np.int64)
    np.cumsum(count, out=first[1:])
    return first


def times(links: IntArray, gbps: float) -> npt.NDArray[np.float64]:
    """Return the GB/s of so many links of one rate; 0 for none, even where the rate is inf."""
    return np.where(links > 0, np.maximum(links, 1) * gbps, 0.0)
