"""A topology as HCCL's selection sees it: how many of everything, and the links of a server."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hccl_py.topology.topology import Topology

__all__ = ["WHOLE_RING", "TopologyShape"]

WHOLE_RING = "whole_ring"
MOST_CARDS = 8


@dataclass(frozen=True)
class TopologyShape:
    """Numbers of a topology.

    `devices` is that of the first server and `pod_servers` of the first superpod. Without symmetry
    HCCL takes all ranks for one ring, except where it can concatenate superpods: `unequal_pods`
    says that only their numbers of servers differ; `pod_level0` are the links inside a server then.
    """

    device: str
    ranks: int
    servers: int
    superpods: int
    devices: int
    pod_servers: int
    symmetric: bool
    unequal_pods: bool
    level0: str
    pod_level0: str
    cards: bool
    rdma_lite: bool
    contexts: int

    @staticmethod
    def of(topology: Topology) -> TopologyShape:
        """Return the shape of a topology."""
        product = topology.product
        equal_servers = len(set(topology.servers)) == 1
        equal_pods = len(set(topology.superpods)) == 1
        cards = product.shape == "pcie" and product.device != "310P3"
        return TopologyShape(
            device=product.device,
            ranks=topology.size,
            servers=len(topology.servers),
            superpods=len(topology.superpods),
            devices=topology.servers[0],
            pod_servers=topology.superpods[0],
            symmetric=equal_servers and equal_pods,
            unequal_pods=equal_servers and not equal_pods,
            level0=_cards(topology) if cards else topology.level0,
            pod_level0=topology.level0 if equal_pods else _first_pod(topology).level0,
            cards=cards,
            rdma_lite=product.rdma_lite,
            contexts=product.contexts,
        )


def _first_pod(topology: Topology) -> Topology:
    return topology.subset(np.flatnonzero(topology.superpod == topology.superpod[0]).tolist())


def _cards(topology: Topology) -> str:
    """Return what HCCL takes PCIe cards for."""
    if topology.size == 2:
        return "ring" if topology.product.device == "910B" else "2p_mesh"
    one = topology.is_single_server and topology.size <= MOST_CARDS
    return "ring" if one else WHOLE_RING
