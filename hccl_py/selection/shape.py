"""A topology as HCCL's selection sees it: counts and sizes, and the links of a server."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import gcd

import numpy as np

from hccl_py.topology.topology import Topology

WHOLE_RING = "whole_ring"

_MESH_DEVICES = 8
"""Device ids of 910B count from 0 in every group of this size; other devices' do not begin anew."""

_MOST_CARDS = 8
_MODULE_DEVICES = (1, 2, 4, 8)


@dataclass(frozen=True)
class TopologyShape:
    """Numbers of a topology.

    `modules` are groups of devices that HCCS joins, one or more in every server, and `devices` is
    how many a module of the first server has on average, rounded down; `links` joins these.
    `server_devices` are the sizes of the servers, `module_devices`, `pod_servers` and `pod_devices`
    those of all modules and superpods; HCCL has a flag for each of the three that may differ.
    `cards`: HCCS joins no two devices of the first server, which HCCL calls a standard card.
    `one_plane`: all ranks have the same device number. `duo`: all ranks are in one 300I Duo server;
    `duo_pairs`: they are a whole module of it, or two pairs. `whole_packages`: no package of two
    dies has one of them only.
    """

    device: str
    ranks: int
    servers: int
    modules: int
    superpods: int
    devices: int
    server_devices: tuple[int, ...]
    module_devices: tuple[int, ...]
    pod_servers: tuple[int, ...]
    pod_devices: tuple[int, ...]
    links: str
    cards: bool
    one_plane: bool
    duo: bool
    duo_pairs: bool
    whole_packages: bool
    rdma_lite: bool
    contexts: int

    @staticmethod
    def of(topology: Topology) -> TopologyShape:
        """Return the shape of a topology."""
        return _shape_of(topology)

    @property
    def uneven_servers(self) -> bool:
        """True if servers have different numbers of devices: multiModuleDiffDeviceNumMode."""
        return len(set(self.module_devices)) > 1

    @property
    def uneven_pods(self) -> bool:
        """True if superpods have different numbers of servers: multiSuperPodDiffServerNumMode."""
        return len(set(self.pod_servers)) > 1

    @property
    def uneven_pod_devices(self) -> bool:
        """True if superpods have different numbers of devices: multiSuperPodDiffDeviceNumMode."""
        return len(set(self.pod_devices)) > 1

    @property
    def bad_cards(self) -> bool:
        """True if a server has more PCIe cards than HCCL has algorithms for."""
        return self.cards and self.devices > _MOST_CARDS

    @property
    def bad_module(self) -> bool:
        """True if HCCL makes no communicator, for the devices of the first server: one of 910A that
        HCCS joins has 1, 2, 4 or 8 (`impl/hccl_communicator_attrs_host.cc:621-628`, Check2N).
        """
        devices = self.server_devices[0]
        return self.device == "910A" and not self.cards and devices not in _MODULE_DEVICES

    @property
    def single_mesh(self) -> bool:
        """True if HCCS joins all ranks inside one server: HCCL's isSingleMeshAggregation."""
        return self.modules == 1 and (self.ranks == 1 or not self.cards)

    def with_even_pods(self) -> TopologyShape:
        """Return the shape with superpods cut to the largest number of servers that divides all."""
        servers = gcd(*self.pod_servers)
        pods = sum(self.pod_servers) // servers
        return replace(
            self,
            superpods=pods,
            pod_servers=(servers,) * pods,
            pod_devices=(servers * self.devices,) * pods,
        )


@lru_cache(maxsize=16)
def _shape_of(topology: Topology) -> TopologyShape:
    product = topology.product
    lone = product.shape not in ("clos", "routed") and topology.servers[0] == 1
    cards = product.device != "310P3" and (product.shape == "pcie" or lone)
    modulus = _MESH_DEVICES if product.device == "910B" else int(topology.device_id.max()) + 1
    numbers = topology.device_id % modulus
    duo = "duo" in product.name and len(set(topology.hosts)) == 1
    hosts = np.asarray(topology.hosts, np.int64)[topology.server]
    of_first = int(np.count_nonzero(hosts == topology.hosts[0]))
    return TopologyShape(
        device=product.device,
        ranks=topology.size,
        servers=len(set(topology.hosts)),
        modules=len(topology.servers),
        superpods=len(topology.superpods),
        devices=of_first // topology.hosts.count(topology.hosts[0]),
        server_devices=tuple(np.unique(hosts, return_counts=True)[1].tolist()),
        module_devices=topology.servers,
        pod_servers=topology.superpods,
        pod_devices=tuple(np.bincount(topology.superpod).tolist()),
        links=_cards(topology) if cards else _first_server(topology).level0,
        cards=cards,
        one_plane=bool((numbers == numbers[0]).all()),
        duo=duo,
        duo_pairs=duo and _has_duo_pairs(topology),
        whole_packages=topology.has_whole_packages,
        rdma_lite=product.rdma_lite,
        contexts=product.contexts,
    )


def _first_server(topology: Topology) -> Topology:
    """Return the ranks of the first server; all where servers are alike."""
    if len(set(topology.servers)) == 1 and len(set(topology.superpods)) == 1:
        return topology
    return topology.subset(np.flatnonzero(topology.server == topology.server[0]).tolist())


def _cards(topology: Topology) -> str:
    """Return the links that HCCL assumes between the PCIe cards of a server."""
    if topology.servers[0] == 2:
        return "ring" if topology.product.device == "910B" else "2p_mesh"
    return "ring" if topology.servers[0] <= _MOST_CARDS else WHOLE_RING


def _has_duo_pairs(topology: Topology) -> bool:
    """Return True if the ranks are all eight devices of a module, or two pairs of neighbours."""
    if topology.size == _MESH_DEVICES:
        return True
    ids = np.sort(topology.device_id)
    even, odd = ids[ids % 2 == 0], ids[ids % 2 == 1]
    if topology.size != _MESH_DEVICES // 2 or len(even) != len(odd):
        return False
    return bool(odd[0] - even[0] == 1 and odd[1] != even[1])
