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

from hccl_py.program.kernels import kernel, reading
from hccl_py.topology.networks.cuts import Partition
from hccl_py.topology.networks.generated import PLAIN, Generated, Speed
from hccl_py.topology.networks.paths import Visited, ends
from hccl_py.values import IntArray

if TYPE_CHECKING:
    from hccl_py.clocks.cost import CostModel


class Torus(Generated):
    """Ranks on a grid that is closed to a ring in every dimension; the first varies fastest."""

    def __init__(self, sizes: tuple[int, ...], speed: Speed = PLAIN, name: str = "") -> None:
        phrase = name or f"torus {' x '.join(map(str, sizes))}"
        super().__init__(phrase, prod(sizes), (), speed)
        self.sizes = sizes
        self._axes = [(size, prod(sizes[:axis])) for axis, size in enumerate(sizes)]

    def visited(self, source: IntArray, target: IntArray) -> Visited:
        """Go round the ring of each dimension in turn."""
        hops = np.zeros(len(source), np.int64)
        for size, stride in self._axes:
            up = (target // stride - source // stride) % size
            hops += np.minimum(up, size - up)
        first = ends(hops)
        node = np.empty(first[-1], np.int64)
        axes = np.array(self._axes, np.int64)
        _visit.sized(len(node))(reading(source), reading(target), axes, node)
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


@kernel
def _visit(source: IntArray, target: IntArray, axes: IntArray, node: IntArray) -> None:
    """List what routes visit, one behind the other; axes have sizes and strides."""
    at = 0
    for pair in range(len(source)):
        here = source[pair]
        for axis in range(len(axes)):
            size, stride = axes[axis]
            place, end = here // stride % size, target[pair] // stride % size
            up = (end - place) % size
            way = 1 if 2 * up <= size else -1
            origin = here - place * stride
            while place != end:
                place += way
                if place < 0:
                    place += size
                elif place == size:
                    place = 0
                here = origin + place * stride
                node[at] = here
                at += 1


def hypercube(dimensions: int, speed: Speed = PLAIN) -> Torus:
    """Return 2^dimensions ranks, joined where their numbers differ in one bit."""
    return Torus((2,) * dimensions, speed, f"hypercube of {dimensions} dimensions")
