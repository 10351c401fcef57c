"""Tori of any dimensions, and hypercubes: tori of size 2 in every dimension.

    0 ── 1 ── 2 ── 3 ──╮        torus 4 x 3: rank = x + 4·y
    │    │    │    │   ╰─ 0     every rank is joined to the next and the previous one in each
    4 ── 5 ── 6 ── 7 ──╮        dimension, the last to the first; a dimension of size 2 has one
    │    │    │    │   ╰─ 4     link, one of size 1 none
    8 ── 9 ── 10 ─ 11 ─╮
    ╰─ 0 ...           ╰─ 8

Dimension-order routing: first along x, then y, then z, each the shorter way round, upwards where
both are equally long. On a hypercube that is e-cube routing from the lowest bit.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from hccl_py.topology.networks.cuts import Partition
from hccl_py.topology.networks.generated import PLAIN, Generated, Speed
from hccl_py.topology.networks.paths import Visited, around, ends
from hccl_py.values import IntArray

if TYPE_CHECKING:
    from hccl_py.cost import CostModel

__all__ = ["Torus", "hypercube"]


class Torus(Generated):
    """Ranks on a grid that is closed to a ring in every dimension; the first varies fastest."""

    def __init__(self, sizes: tuple[int, ...], speed: Speed = PLAIN, name: str = "") -> None:
        phrase = name or f"torus {' x '.join(map(str, sizes))}"
        super().__init__(phrase, prod(sizes), (), speed)
        self._axes = [(size, prod(sizes[:axis])) for axis, size in enumerate(sizes)]

    def visited(self, source: IntArray, target: IntArray) -> Visited:
        """Go round the ring of each dimension in turn."""
        rings = [
            around(source // stride % size, target // stride % size, size)
            for size, stride in self._axes
        ]
        first = ends(np.sum([ring.hops for ring in rings], axis=0))
        node = np.empty(first[-1], np.int64)
        here, done = source.copy(), first[:-1].copy()
        for (size, stride), ring in zip(self._axes, rings, strict=True):
            origin = here - here // stride % size * stride
            node[done[ring.pair] + ring.step] = origin[ring.pair] + ring.place * stride
            here, done = origin + target // stride % size * stride, done + ring.hops
        return Visited(first, node)

    def neighbours(self, node: int) -> list[int]:
        """Return the next and the previous one in each dimension."""
        found = []
        for size, stride in self._axes:
            place = node // stride % size
            around = {(place + 1) % size, (place - 1) % size} - {place}
            found += [node + (other - place) * stride for other in sorted(around)]
        return found

    def groups(self, cost: CostModel) -> list[Partition]:
        """Every rank has all its links; halves are joined by the rings that are cut, twice each
        unless they have two places only.
        """
        gbps, _ = self.speed.of(cost)
        ranks = np.arange(self.ranks)
        found = [Partition.alike("rank", ranks, len(self.neighbours(0)) * gbps)]
        for axis, (size, stride) in enumerate(self._axes):
            if size > 1:
                half = (ranks // stride % size >= size // 2).astype(np.int64)
                across = min(2, size - 1) * self.ranks // size
                found.append(Partition.alike(f"dimension {axis + 1} half", half, across * gbps))
        return found


def hypercube(dimensions: int, speed: Speed = PLAIN) -> Torus:
    """Return 2^dimensions ranks, joined where their numbers differ in one bit."""
    return Torus((2,) * dimensions, speed, f"hypercube of {dimensions} dimensions")
