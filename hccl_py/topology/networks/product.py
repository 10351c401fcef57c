"""The links of products, as HCCL's public documents describe them.

    mesh   every pair of a server by an HCCS link of its own
    ring   neighbours
    dies   every die by HCCS to the switch of its superpod, the two dies of a package by SIO
    8p     two groups of four, each fully linked by HCCS, and device i with i + 4
    pcie   every device by PCIe to the switch of its server

Every device has a RoCE port to one switch that never blocks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hccl_py.topology.networks.network import Network, Rates, Routes, routes_of
from hccl_py.topology.topology import Topology
from hccl_py.values import IntArray

if TYPE_CHECKING:
    from hccl_py.simulate.cost import CostModel

__all__ = ["MEDIA", "ProductNetwork", "network_of"]

MEDIA = ("hccs", "sio", "pcie", "roce")
"""Sorts of links; the cost model has a field for each."""

HCCS, SIO, PCIE, ROCE = range(len(MEDIA))

Bools = npt.NDArray[np.bool_]


def network_of(topology: Topology) -> Network:
    """Return what joins the ranks of a topology."""
    return topology.network or ProductNetwork(topology)


class ProductNetwork(Network):
    """Devices, the switches inside of servers or superpods, and the RoCE switch, in this order."""

    def __init__(self, topology: Topology) -> None:
        self.name = topology.product.title
        self.topology = topology
        self.ranks = topology.size
        self.shape = topology.product.shape
        owner = {"dies": topology.superpod, "pcie": topology.server}
        self._switch = self.ranks + owner.get(self.shape, np.zeros(self.ranks, np.int64))
        self.roce = int(self._switch.max()) + 1
        self.nodes = self.roce + 1

    def media(self, source: IntArray, target: IntArray, is_rdma: Bools) -> npt.NDArray[np.int8]:
        """Return which sort of link each pair of ranks uses."""
        t = self.topology
        found = np.full(len(source), PCIE if self.shape == "pcie" else HCCS, np.int8)
        if self.shape == "dies":
            together = t.server[source] == t.server[target]
            found[together & (t.device_id[source] // 2 == t.device_id[target] // 2)] = SIO
        found[is_rdma] = ROCE
        return found

    def routes(self, source: IntArray, target: IntArray, is_rdma: Bools) -> Routes:
        """One link, or two by way of a switch, or of the other group of an 8p server."""
        media = self.media(source, target, is_rdma)
        by_switch = media == (PCIE if self.shape == "pcie" else HCCS)
        by_switch &= self.shape in ("dies", "pcie")
        via = np.where(by_switch, self._switch[source], target)
        via[is_rdma] = self.roce
        if self.shape == "8p":
            via = np.where(is_rdma, via, self._across(source, target))
        one = self.number(source, via)
        other = np.where(via == target, -1, self.number(via, target))
        return routes_of([one, other])

    def rates(self, links: IntArray, cost: CostModel) -> Rates:
        """Rates are those of the cost model, times the ports where a link ends in a switch."""
        source, target = self.ends(links)
        at_switch = np.maximum(source, target) >= self.ranks
        is_rdma = np.maximum(source, target) == self.roce
        inside = ~at_switch
        media = np.full(len(links), PCIE if self.shape == "pcie" else HCCS, np.int8)
        media[inside] = self.media(source[inside], target[inside], np.zeros(inside.sum(), bool))
        media[is_rdma] = ROCE
        table = [getattr(cost, name) for name in MEDIA]
        alone = np.array([np.inf if m.gbps is None else m.gbps for m in table])
        ports = np.array([m.ports for m in table])
        gbps = alone[media] * np.where(at_switch, ports[media], 1)
        own = source == target
        gbps[own] = np.inf if cost.memory_gbps is None else cost.memory_gbps
        return Rates(gbps, np.zeros(len(links)))

    def joins(self, source: int, target: int) -> bool:
        """Whether a link, a port of a switch or a RoCE port lies between."""
        low, high = sorted((source, target))
        if high >= self.ranks:
            return high == self.roce or (
                self.shape in ("dies", "pcie") and int(self._switch[low]) == high
            )
        pair = np.array([low]), np.array([high])
        t = self.topology
        if t.server[low] != t.server[high]:
            return False
        return len(self.routes(*pair, np.zeros(1, bool)).link) == 1

    def node_name(self, node: int) -> str:
        """Return a rank's number, `roce`, or `hccs0`, `pcie0` for the switch of group 0."""
        if node == self.roce:
            return "roce"
        kind = "pcie" if self.shape == "pcie" else "hccs"
        return str(node) if node < self.ranks else f"{kind}{node - self.ranks}"

    def _across(self, source: IntArray, target: IntArray) -> IntArray:
        """Return the device that an 8p server's route between its groups goes through: the one
        opposite of the source; the target where they are linked.
        """
        t = self.topology
        mine, far = t.device_id[source], t.device_id[target]
        linked = (mine // 4 == far // 4) | (mine % 4 == far % 4)
        opposite = self._rank_at(t.server[source], (mine + 4) % 8)
        return np.where(linked | (opposite < 0), target, opposite)

    def _rank_at(self, server: IntArray, device: IntArray) -> IntArray:
        """Return who sits on a device of a server; -1 where nobody does."""
        t = self.topology
        place = t.server * 8 + t.device_id % 8
        order = np.argsort(place)
        wanted = server * 8 + device
        at = np.minimum(np.searchsorted(place, wanted, sorter=order), self.ranks - 1)
        return np.where(place[order[at]] == wanted, order[at], -1)
