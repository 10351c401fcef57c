"""The rank graph of an Ascend 950: its network layers, as HCCL's selection asks hcomm for them.

Layer 0 joins the devices of a server, layer 1 the servers of a superpod, layer 2 superpods. Layer 0
consists of topologies: meshes of a row and of a column of devices, numbered row by row, and a Clos
network that joins all devices of a server that has several rows and columns (UBX: of every server).
HCCL calls their combination the shape of layer 0.

Source: hicann/hccl @09300b7, `op_common/topo/topo_host.cc:577-990`; the grid of devices is the one
of its system tests, `test/st/.../topo_model.cc`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import gcd
from typing import Literal

import numpy as np

from hccl_py.topology.placement import grouped
from hccl_py.topology.topology import Topology

Shape0 = Literal["mesh", "clos", "mesh+clos", ""]


@dataclass(frozen=True)
class RankGraph:
    """Numbers of a rank graph, from the first rank where ranks differ.

    `levels` is how many layers it takes to join all ranks, `layers` how many there are. `servers`
    and `pods` are the ranks of each instance of layers 0 and 1. `shape` is that of layer 0, empty
    where a mesh of `mesh` ranks joins a part of a server that nothing else joins. `dies`: links of
    the mesh go to one die, or to two, `regular` where their numbers differ by one.
    """

    levels: int
    layers: int
    servers: tuple[int, ...]
    pods: tuple[int, ...]
    shape: Shape0
    mesh: int
    dies: Literal["one", "regular", "irregular"]

    @staticmethod
    def of(topology: Topology) -> RankGraph:
        """Return the rank graph of a topology."""
        return _graph_of(topology)

    @property
    def server(self) -> int:
        """Ranks of the first rank's server."""
        return self.servers[0]

    @property
    def pod(self) -> int:
        """Ranks of the first rank's superpod."""
        return self.pods[0]

    @property
    def divisor(self) -> int:
        """The largest number of ranks into which all servers can be cut."""
        return gcd(*self.servers)


@lru_cache(maxsize=16)
def _graph_of(topology: Topology) -> RankGraph:
    bus = topology.product.bus
    levels = 1 if len(topology.servers) == 1 else 2 if len(topology.superpods) == 1 else 3
    pods = np.bincount(topology.superpod)
    servers = np.asarray(topology.servers)
    columns = int(topology.device_id.max()) + 1
    width = topology.product.row or columns
    row = grouped(topology.server * columns + topology.device_id // width)[2]
    column = grouped(topology.server * columns + topology.device_id % width)[2]
    if bus.ubx:
        column = np.ones_like(row)
    shapes = [
        _shape(int(r), int(c), int(n), ubx=bus.ubx)
        for r, c, n in np.unique(np.stack([row, column, servers[topology.server]]), axis=1).T
    ]
    first = _shape(int(row[0]), int(column[0]), int(servers[topology.server[0]]), ubx=bus.ubx)
    size = int(servers[topology.server[0]])
    return RankGraph(
        levels=levels,
        layers=max(levels, 2 if bus.lone_clos else 1),
        servers=tuple(servers.tolist()),
        pods=tuple(pods.tolist()),
        shape="" if "" in shapes else first,
        mesh=int(row[0]),
        dies=bus.dies if first == "mesh" and size > 2 else "one",
    )


def _shape(row: int, column: int, size: int, *, ubx: bool) -> Shape0:
    """Return the shape that a device sees: its row and its column, of a server of this size."""
    if ubx:
        return "mesh+clos" if row > 1 else "clos" if size > 1 else "mesh"
    if row > 1 and column > 1:
        return "clos"
    return "mesh" if max(row, column) == size else ""
