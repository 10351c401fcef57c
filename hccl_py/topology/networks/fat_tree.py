"""k-ary fat-trees: three levels of switches with k ports each, for k³/4 ranks.

    core      c0  c1  c2  c3              (k/2)² switches, port i of each goes to pod i
               │╲ ╱│   │╲ ╱│
    agg       a0   a1  a2   a3   ...      k/2 in each of k pods
               │ ╳ │    │ ╳ │
    edge      e0   e1  e2   e3   ...      k/2 in each pod
              ╱╲   ╱╲
    ranks    0  1 2  3           ...      k/2 at each edge switch

Routes go up as far as needed and down again. Which way up is chosen by the target, rank d: the agg
with number d mod k/2 in its pod, then its core switch with number (d div k/2) mod k/2, so that
what goes to different ranks comes down over different links wherever there are as many. With
oversubscription r all links between switches have a rate r times lower.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hccl_py.topology.networks.cuts import Partition
from hccl_py.topology.networks.generated import PLAIN, Generated, Speed
from hccl_py.topology.networks.paths import Visited
from hccl_py.values import Floats, IntArray

if TYPE_CHECKING:
    from hccl_py.clocks.cost import CostModel


class FatTree(Generated):
    """k pods of k/2 edge and k/2 agg switches; k is even."""

    def __init__(self, ports: int, speed: Speed = PLAIN, oversubscription: float = 1.0) -> None:
        half = ports // 2
        over = "" if oversubscription == 1 else f", oversubscription {oversubscription:g}"
        switches = ("edge", ports * half), ("agg", ports * half), ("core", half * half)
        super().__init__(f"fat-tree {ports}{over}", ports * half * half, switches, speed)
        self._half, self._over = half, oversubscription
        self._edge = self.ranks
        self._agg = self._edge + ports * half
        self._core = self._agg + ports * half

    def visited(self, source: IntArray, target: IntArray) -> Visited:
        """Up to where the two have a switch in common, and down."""
        half = self._half
        apart = source // half != target // half
        far = source // half**2 != target // half**2
        way = target % half
        up = self._agg + source // half**2 * half + way
        top = self._core + way * half + target // half % half
        down = self._agg + target // half**2 * half + way
        return Visited.by_hop(
            self._edge + source // half,
            np.where(apart, up, -1),
            np.where(far, top, -1),
            np.where(far, down, -1),
            np.where(apart, self._edge + target // half, -1),
            target,
        )

    def neighbours(self, node: int) -> list[int]:
        """Return those below, then those above."""
        half, agg, core = self._half, self._agg, self._core
        if node < self._edge:
            return [self._edge + node // half]
        if node < agg:
            edge = node - self._edge
            return [*_row(0, edge, half), *_row(agg, edge // half, half)]
        if node < core:
            pod, way = divmod(node - agg, half)
            return [*_row(self._edge, pod, half), *_row(core, way, half)]
        return [agg + pod * half + (node - core) // half for pod in range(2 * half)]

    def thinned(self, source: IntArray, target: IntArray) -> Floats:
        """Links between switches are."""
        return np.where(np.minimum(source, target) >= self.ranks, self._over, 1.0)

    def groups(self, cost: CostModel) -> list[Partition]:
        """Ranks by their one link, the others by the links up from them."""
        gbps, _ = self.speed.of(cost)
        half, up = self._half, gbps / self._over
        ranks = np.arange(self.ranks)
        return [
            Partition.alike("rank", ranks, gbps),
            Partition.alike("edge switch", ranks // half, half * up),
            Partition.alike("pod", ranks // half**2, half**2 * up),
            Partition.alike("half", ranks // half**3, half**3 * up),
        ]


def _row(first: int, row: int, length: int) -> range:
    return range(first + row * length, first + (row + 1) * length)
