"""The planes that hierarchical algorithms work on.

A plane is a small communicator: every rank has an index in it.

    flat            all ranks
    level0          the ranks of one server
    level1          the ranks with the same index in every server of one superpod
    level2          the ranks with the same index in every superpod
    level12         the ranks with the same index in every server of all superpods: both in one
    hccs            the ranks of one server once more, by the switch of HCCS: the two dies of a
                    package of A3, which SIO joins on the other planes, meet there, too
    mesh0           the ranks of a server that HCCS joins to each other: four of the eight of an
                    Atlas 800 (model 9000), elsewhere all
    mesh1           the ranks with the same index in every mesh0
    ring0 .. ring3  the ranks of one server in the orders of its rings, each with links of its own
    back            all ranks once more, with links of its own: for data that goes the other way at
                    the same time, on another stream
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hccl_py.errors import ParameterError
from hccl_py.topology.placement import MAX_DEVICE_ID, dense, grouped
from hccl_py.values import IntArray

if TYPE_CHECKING:
    from hccl_py.topology.topology import Topology

RINGS = ("ring0", "ring1", "ring2", "ring3")

PLANES = ("flat", "level0", "level1", "level2", "level12", *RINGS, "back", "hccs", "mesh0", "mesh1")

MESH_OF_8P = 4
"""Devices of an Atlas 800 (model 9000) that HCCS joins to each other."""

_8P_RINGS = (
    (0, 1, 2, 6, 5, 4, 7, 3),
    (0, 3, 7, 4, 5, 6, 2, 1),
    (0, 2, 3, 1, 5, 7, 6, 4),
    (0, 4, 6, 7, 5, 1, 3, 2),
)
"""The four rings through the two meshes of four of an Atlas 800 (model 9000)."""

PlaneColumns = tuple[IntArray, IntArray, IntArray]
"""By rank: the number of its plane, its index in it, and the plane's size."""


def plane_of(topology: Topology, name: str) -> PlaneColumns:
    """Return for every rank: the number of its plane, its index in it, and the plane's size.

    Raises ParameterError for a ring that servers of the product do not have.
    """
    n = topology.size
    if name in ("flat", "back"):
        return np.zeros(n, np.int64), np.arange(n), np.full(n, n)
    if name in ("level0", "hccs"):
        return grouped(topology.server)
    if name in ("mesh0", "mesh1"):
        mesh, place, devices = grouped(_meshes(topology))
        return (mesh, place, devices) if name == "mesh0" else grouped(place)
    if name == "level1":
        return grouped(topology.superpod * n + topology.device)
    if name == "level12":
        return grouped(topology.device)
    if name == "level2":
        return grouped(grouped(topology.superpod)[1])
    return _ring_plane(topology, name)


def _meshes(topology: Topology) -> IntArray:
    """Return a number for every rank, the same for those that HCCS joins inside a server."""
    if topology.product.shape != "8p":
        return topology.server
    return dense(topology.server * MAX_DEVICE_ID + topology.device_id // MESH_OF_8P)


def _ring_plane(topology: Topology, name: str) -> PlaneColumns:
    number, index, size = topology.plane("level0")
    at = np.empty(topology.size, np.int64)
    for devices in set(topology.servers):
        orders = ring_orders(topology.level0, devices)
        if RINGS.index(name) >= len(orders):
            raise ParameterError(
                f"Servers of {topology.product.title} with {devices} devices have "
                f"{len(orders)} ring{'s' if len(orders) > 1 else ''}, so there is no {name}.",
                f"Use {', '.join(RINGS[: len(orders)])}.",
            )
        position = np.argsort(orders[RINGS.index(name)])
        mine = size == devices
        at[mine] = position[index[mine]]
    return number, at, size


def ring_orders(level0: str, devices: int) -> tuple[tuple[int, ...], ...]:
    """Return the orders of the rings inside a server of so many devices."""
    forward = tuple(range(devices))
    if level0 == "8p_ring":
        return _8P_RINGS
    if level0 == "double_ring":
        return forward, (0, *forward[:0:-1])
    return (forward,)
