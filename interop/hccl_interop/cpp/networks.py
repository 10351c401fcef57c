"""The networks of a cluster, as host code asks HCCL's rank graph for them.

    layer 0    the mesh of a server, or of a board of UBX; of UBX, the Clos network of a server, too
    layer 1    the Clos network of all servers, and of a lone one beside its mesh

A mesh has die 0 of an Ascend 950, the Clos network of layer 1 has die 1. Of UBX both networks of
layer 0 have die 0, since HCCL's all_to_all uses both in one kernel there. Where the links of a mesh
lie on both dies, that of two devices lies on the same die at both.

Source: hicann/hccl @09300b7, `op_common/topo/topo_host.cc:577-1165`. Which link lies on which die
is not published: the numbers of links of each die are HCCL's, the choice among the links is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from hccl_py.topology.topology import Topology
from hccl_py.values import IntArray

_UB_CTP, _HCCS, _ROCE = 4, 0, 1
"""Numbers of CommProtocol."""

_PORT = 4
"""Links of the mesh as wide as a port to the Clos network of layer 1, in a contest's cluster."""

Dies = Literal["die 0", "die 1", "regular", "irregular"]
_DIES: tuple[Dies, ...] = ("die 0", "die 1", "regular", "irregular")


@dataclass(frozen=True)
class CppNetwork:
    """A network of a layer: it joins the ranks of each of its groups. `width` is that of a port, in
    links of the mesh.
    """

    layer: int
    is_clos: bool
    dies: Dies
    width: int
    protocol: int
    groups: IntArray


def networks_of(topology: Topology) -> tuple[CppNetwork, ...]:
    """Return the networks of a topology, lower layers first."""
    product, bus = topology.product, topology.product.bus
    is_950 = product.device == "950"
    near, far = (_UB_CTP, _UB_CTP) if is_950 else (_HCCS, _ROCE if topology.has_rdma else _HCCS)
    boards = topology.server
    if bus.ubx:
        columns = int(topology.device_id.max()) // product.row + 1
        boards = topology.server * columns + topology.device_id // product.row
    dies: Dies = "die 0" if bus.ubx or bus.dies == "one" else bus.dies
    found = [CppNetwork(0, False, dies, 1, near, boards)]
    if bus.ubx:
        found.append(CppNetwork(0, True, "die 0", bus.clos_ports[0], near, topology.server))
    if len(topology.servers) > 1 or bus.lone_clos:
        everywhere = np.zeros(topology.size, np.int64)
        found.append(CppNetwork(1, True, "die 1", _PORT, far, everywhere))
    return tuple(found)


def options_of(networks: Sequence[CppNetwork]) -> dict[str, str]:
    """Return the recorder's options for networks."""
    columns = {
        "layer": [one.layer for one in networks],
        "clos": [int(one.is_clos) for one in networks],
        "dies": [_DIES.index(one.dies) for one in networks],
        "width": [one.width for one in networks],
        "protocol": [one.protocol for one in networks],
        "group": np.concatenate([one.groups for one in networks]).tolist(),
    }
    return {f"network_{name}": " ".join(map(str, found)) for name, found in columns.items()}
