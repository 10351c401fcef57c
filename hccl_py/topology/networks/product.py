"""The links of products, as HCCL's public documents describe them.

    mesh   every pair of a server by an HCCS link of its own
    ring   neighbours; what goes further passes those in between, the shorter way round
    dies   every die by HCCS to the switch of its superpod, the two dies of a package by SIO, too
    8p     two groups of four, each fully linked by HCCS, and device i with i + 4
    pcie   every device by PCIe to the switch of its server; so do devices of a mesh whose host has
           several modules, to those of the other ones
    clos   every pair of a row or a column of a server's grid by a link of its own

Every device has a RoCE port to one switch that never blocks; with `clos` it is a port to the Clos
network of all servers, which SDMA goes over, too: between servers always, inside a server where a
transport is of the plane level1. Two dies of a package meet over the switch where a transport is of
the plane hccs.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hccl_py.topology.networks.cuts import Partition
from hccl_py.topology.networks.generated import memory_of
from hccl_py.topology.networks.network import (
    NEAREST,
    OUT,
    SWITCHED,
    Bools,
    Network,
    Ports,
    Rates,
    Routes,
)
from hccl_py.topology.networks.paths import Visited, around, ends, times, with_taken
from hccl_py.topology.placement import MAX_DEVICE_ID
from hccl_py.topology.topology import Topology
from hccl_py.values import Floats, IntArray

if TYPE_CHECKING:
    from hccl_py.clocks.cost import CostModel

MEDIA = ("hccs", "sio", "pcie", "roce")
"""Sorts of links; the cost model has a field for each."""

HCCS, SIO, PCIE, ROCE = range(len(MEDIA))


def network_of(topology: Topology, cost: CostModel | None = None) -> Network:
    """Return the network of a topology; devices of products share ports as a cost model says, other
    networks state their own.
    """
    return topology.network or ProductNetwork(topology, cost)


class ProductNetwork(Network):
    """Devices, the switches inside of servers or superpods, the RoCE switch, and a node for each
    port that links share at every device, in this order.
    """

    def __init__(self, topology: Topology, cost: CostModel | None = None) -> None:
        self.name = topology.product.title
        self.topology = topology
        self.ranks = topology.size
        self.shape = topology.product.shape
        self._has_pcie = self.shape == "pcie" or topology.product.modules > 1
        owner = topology.superpod if self.shape == "dies" else np.zeros(self.ranks, np.int64)
        self._switch = self.ranks + (topology.host if self._has_pcie else owner)
        self.roce = int(self._switch.max()) + 1
        ports = () if cost is None else cost.device_ports(self._direct_sorts)
        self.nodes = self.roce + 1 + len(ports)
        self._ports = ports
        if ports:
            self.further = "switches and ports"

    def media(self, source: IntArray, target: IntArray, ports: Ports) -> npt.NDArray[np.int8]:
        """Return the sort of link between each pair of ranks."""
        t = self.topology
        found = np.full(len(source), PCIE if self.shape == "pcie" else HCCS, np.int8)
        together = t.server[source] == t.server[target]
        if t.product.has_ub:
            row = t.product.row or MAX_DEVICE_ID
            a, b = t.device_id[source], t.device_id[target]
            has_columns = not t.product.bus.ubx
            together &= (a // row == b // row) | (has_columns & (a % row == b % row))
            found[~together] = ROCE
        elif self._has_pcie:
            found[~together] = PCIE
        if self.shape == "dies":
            package = t.device_id[source] // 2 == t.device_id[target] // 2
            found[together & package & (ports != SWITCHED)] = SIO
        found[ports == OUT] = ROCE
        return found

    def routes(self, source: IntArray, target: IntArray, ports: Ports) -> Routes:
        """One link, or two by way of a switch, or of the other group of an 8p server; round the
        ring of a server. Ports that devices share are links of their own.
        """
        return self._with_ports(self._direct(source, target, ports))

    def _direct(self, source: IntArray, target: IntArray, ports: Ports) -> Routes:
        """Return routes without the ports that devices share."""
        if self.shape == "ring":
            return self._ring_routes(source, target, ports == OUT)
        media = self.media(source, target, ports)
        by_switch = media == (PCIE if self._has_pcie else HCCS)
        by_switch &= self._has_pcie or self.shape == "dies"
        via = np.where(by_switch, self._switch[source], target)
        via[media == ROCE] = self.roce
        if self.shape == "8p":
            via = np.where(ports == OUT, via, self._across(source, target))
        by_hop = Visited.by_hop(np.where(via == target, -1, via), target)
        return by_hop.routes(source, self.nodes)

    def rates(self, links: IntArray, cost: CostModel) -> Rates:
        """Rates are those of the cost model, times the ports where a link ends in a switch."""
        source, target = self.ends(links)
        further = np.maximum(source, target)
        media = self._media_of(links)
        table = [getattr(cost, name) for name in MEDIA]
        alone = np.array([m.widest_gbps for m in table])
        switched = np.array([m.switched_gbps for m in table])
        gbps = np.where(further >= self.ranks, switched[media], alone[media])
        gbps[source == target] = memory_of(cost)
        shared = further > self.roce
        of_port = np.array([port.gbps for port in self._ports])
        gbps[shared] = of_port[further[shared] - self.roce - 1]
        return Rates(gbps, np.zeros(len(links)))

    @property
    def _direct_sorts(self) -> tuple[str, ...]:
        """The sorts of links that lead from device to device."""
        switched = {"roce", "hccs"} if self.shape == "dies" else {"roce"}
        switched |= {"pcie"} if self._has_pcie else set()
        return tuple(name for name in MEDIA if name not in switched)

    def _media_of(self, links: IntArray) -> npt.NDArray[np.int8]:
        """Return the sort of each link."""
        source, target = self.ends(links)
        further = np.maximum(source, target)
        inside = further < self.ranks
        media = np.full(len(links), PCIE if self._has_pcie else HCCS, np.int8)
        media[inside] = self.media(source[inside], target[inside], _nearest(inside.sum()))
        media[further == self.roce] = ROCE
        return media

    def _with_ports(self, routes: Routes) -> Routes:
        """Put the ports that devices share before links that leave them, and behind those that
        enter them.
        """
        if not self._ports:
            return routes
        source, target = self.ends(routes.link)
        media = self._media_of(routes.link)
        out, into = [], []
        for number, port in enumerate(self._ports, self.roce + 1):
            uses = np.isin(media, [MEDIA.index(name) for name in port.links])
            out.append(np.where(uses & (source < self.ranks), source * self.nodes + number, -1))
            into.append(np.where(uses & (target < self.ranks), number * self.nodes + target, -1))
        return with_taken(routes, Visited.by_hop(*out, routes.link, *into))

    def groups(self, cost: CostModel) -> list[Partition]:
        """Ranks by all their links; packages, servers and superpods by their ports; inside one
        server, two halves of it.
        """
        t, roce = self.topology, np.zeros(self.ranks)
        if t.has_rdma or t.product.has_ub:
            roce += cost.roce.switched_gbps
        hccs = np.full(self.ranks, cost.hccs.switched_gbps if self.shape == "dies" else 0.0)
        if self.shape == "mesh":
            outside = self._meshed - np.bincount(t.server)[t.server]
            hccs = times(outside, cost.hccs.widest_gbps)
        within = np.zeros(self.ranks)
        if t.product.modules > 1 and not t.intra_roce:
            within += cost.pcie.switched_gbps
        switched = self._together({"roce": roce, "hccs": hccs, "pcie": within})
        own = self._inside(cost)
        own |= {"roce": roce, "pcie": own.get("pcie", 0.0) + within}
        found = [Partition("rank", np.arange(self.ranks), self._together(own))]
        if self.shape == "dies":
            package = self._packages[0]
            found.append(Partition.summed("package", package, switched))
        if not t.is_single_server:
            found.append(Partition.summed("server", t.server, switched))
        elif self.shape in ("mesh", "clos", "ring", "8p"):
            found.append(self._halves(cost.hccs.widest_gbps, roce))
        if t.product.modules > 1 and len(set(t.hosts)) > 1:
            found.append(Partition.summed("host", t.host, roce))
        if len(t.superpods) > 1:
            found.append(Partition.summed("superpod", t.superpod, roce))
        return found

    def joins(self, source: int, target: int) -> bool:
        """Return True if a link, a port of a switch or a RoCE port lies between two nodes."""
        low, high = sorted((source, target))
        if high >= self.ranks:
            return (high >= self.roce and low < self.ranks) or (
                (self._has_pcie or self.shape == "dies") and int(self._switch[low]) == high
            )
        pair = np.array([low]), np.array([high])
        if self.topology.server[low] != self.topology.server[high]:
            return False
        return len(self._direct(*pair, _nearest(1)).link) == 1

    def node_name(self, node: int) -> str:
        """Return a rank's number, `roce`, `clos`, `hccs0`, `pcie0` for group 0's switch, or `port0`
        for the first port that links share.
        """
        if node > self.roce:
            return f"port{node - self.roce - 1}"
        if node == self.roce:
            return "clos" if self.topology.product.has_ub else "roce"
        kind = "pcie" if self._has_pcie else "hccs"
        return str(node) if node < self.ranks else f"{kind}{node - self.ranks}"

    def _inside(self, cost: CostModel) -> dict[str, Floats]:
        """Return the GB/s of each rank's links by their sort, RoCE left out."""
        others = self._meshed - 1
        if self.shape == "dies":
            sio = np.where(self._packages[1], cost.sio.widest_gbps, 0.0)
            return {"sio": sio, "hccs": np.full(self.ranks, cost.hccs.switched_gbps)}
        if self.shape == "pcie":
            return {"pcie": np.full(self.ranks, cost.pcie.switched_gbps)}
        if self.shape == "ring":
            others = np.minimum(others, 2)
        elif self.shape == "8p":
            others = np.bincount(self._linked_8p[0], minlength=self.ranks)
        return {"hccs": times(others, cost.hccs.widest_gbps)}

    def _together(self, by_sort: dict[str, Floats]) -> Floats:
        """Add up the GB/s of each rank's links, those that share a port no more than that; of
        several ports the first counts.
        """
        left = dict(by_sort)
        for number, port in enumerate(self._ports):
            shared = [left.pop(name) for name in port.links if name in left]
            left[f"port{number}"] = np.minimum(
                np.sum([np.zeros(self.ranks), *shared], 0), port.gbps
            )
        whole: Floats = np.sum(list(left.values()), axis=0)
        return whole

    @property
    def _meshed(self) -> IntArray:
        """The ranks of each rank's server; of its superpod where that is one mesh (950)."""
        t = self.topology
        group = t.superpod if self.shape == "mesh" and t.joins_servers else t.server
        return np.bincount(group)[group]

    def _halves(self, hccs: float, roce: Floats) -> Partition:
        """Return the two halves of a single server; each has its ports to RoCE, too."""
        t, few = self.topology, self.ranks // 2
        half = t.device_id // 4 if self.shape == "8p" else (t.device >= few).astype(np.int64)
        links = few * (self.ranks - few)
        if self.shape == "ring":
            links = min(2, self.ranks - 1)
        elif self.shape == "8p":
            one, other = self._linked_8p
            links = int((half[one] > half[other]).sum())
        across = times(np.array([links]), hccs)[0]
        return Partition.summed("half", half, roce).faster(across)

    @cached_property
    def _packages(self) -> tuple[IntArray, Bools]:
        """The package of every die, and whether the other die takes part."""
        t = self.topology
        key = t.server * (int(t.device_id.max()) + 1) + t.device_id // 2
        _, package, dies = np.unique(key, return_inverse=True, return_counts=True)
        return package.reshape(-1), dies[package.reshape(-1)] == 2

    @cached_property
    def _linked_8p(self) -> tuple[IntArray, IntArray]:
        """Pairs of ranks of 8p servers that have a link, both ways."""
        t = self.topology
        one = np.repeat(np.arange(self.ranks), 8)
        other = self._rank_at(t.server[one], np.tile(np.arange(8), self.ranks))
        there = (other >= 0) & (other != one)
        one, other = one[there], other[there]
        linked = self._across(one, other) == other
        return one[linked], other[linked]

    def _ring_routes(self, source: IntArray, target: IntArray, is_rdma: Bools) -> Routes:
        """Pass the devices of the server in between, or the RoCE switch."""
        t = self.topology
        near, far = np.flatnonzero(~is_rdma), np.flatnonzero(is_rdma)
        server = t.server[source[near]]
        sizes = np.array(t.servers)[server]
        ring = around(t.device[source[near]], t.device[target[near]], sizes)
        passed = t.members("level0")[server[ring.pair], ring.place]
        visited = Visited.put_together(
            [
                (near, Visited(ends(ring.hops), passed)),
                (far, Visited.by_hop(np.full(len(far), self.roce), target[far])),
            ]
        )
        return visited.routes(source, self.nodes)

    def _across(self, source: IntArray, target: IntArray) -> IntArray:
        """Return the device that an 8p server's route between its groups goes through: the one
        opposite of the source, or of the target where that is no rank; the target where they are
        linked, and where neither is a rank.
        """
        t = self.topology
        mine, far = t.device_id[source], t.device_id[target]
        linked = (mine // 4 == far // 4) | (mine % 4 == far % 4)
        opposite = self._rank_at(t.server[source], (mine + 4) % 8)
        other = self._rank_at(t.server[target], (far + 4) % 8)
        opposite = np.where(opposite < 0, other, opposite)
        return np.where(linked | (opposite < 0), target, opposite)

    def _rank_at(self, server: IntArray, device: IntArray) -> IntArray:
        """Return the rank on a device of a server; -1 for none."""
        t = self.topology
        place = t.server * 8 + t.device_id % 8
        order = np.argsort(place)
        wanted = server * 8 + device
        at = np.minimum(np.searchsorted(place, wanted, sorter=order), self.ranks - 1)
        return np.where(place[order[at]] == wanted, order[at], -1)


def _nearest(pairs: int) -> Ports:
    return np.full(pairs, NEAREST, np.int8)
