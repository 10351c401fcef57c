"""All-to-all over servers and inside them: which parts meet where on their way.

A server is here what HCCL calls a mesh aggregation: of eight 910A, which HCCS joins by four, half
of a server. With S servers of n ranks, rank (s, d) is device d of server s. Its part for (t, e)
goes to (s, e) first, inside the server, and from there to server t. There are two kinds of places
in between:

    regrouped[(s, e)]   what (s, e) hands on: for server t, one block of the parts of (s, 0..n-1)
    landed[(t, e)]      what (t, e) gets: from server s, one block of the parts of (s, 0..n-1)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hccl_executors.all_to_all.layout import PartTable
from hccl_executors.outer_levels import all_servers
from hccl_executors.templates.pairwise import Received, Sent
from hccl_py.orchestration import Stream
from hccl_py.plugins.executor import AnyRank, OpParam, RankView, Topology, Unsuitable, require
from hccl_py.values import IntArray, RankInt


class ServerGrid(NamedTuple):
    """Servers, devices of each, and this rank's place: server s, device d, and the rank itself."""

    servers: int
    devices: int
    s: RankInt
    d: RankInt
    me: RankInt

    def rank(self, server: RankInt, device: RankInt) -> RankInt:
        """Return a rank by its place."""
        found: RankInt = server * self.devices + device
        return found


def even(op: OpParam, topology: Topology) -> bool | Unsuitable:
    """Demand servers of equal sizes, with ranks numbered server by server."""
    mesh, _, devices = topology.plane("mesh0")
    is_even = len(set(devices.tolist())) == 1 and bool((np.diff(mesh) >= 0).all())
    sizes = "needs servers and superpods of equal sizes, and groups of devices that HCCS joins"
    return require((topology.is_even and is_even, sizes))


def levels_of(rank: RankView | AnyRank) -> tuple[str, str]:
    """Return the planes inside servers and between them."""
    if rank.topology.product.shape == "8p":
        return "mesh0", "mesh1"
    return "level0", all_servers(rank)


def shape_of(rank: RankView | AnyRank) -> ServerGrid:
    """Return servers and devices as a rank sees them."""
    inner, outer = map(rank.plane, levels_of(rank))
    return ServerGrid(int(outer.size), int(inner.size), outer.id, inner.id, rank.id)


def regrouped(sizes: IntArray, servers: int) -> IntArray:
    """Return the sizes [(s, e), (t, d)] of what (s, e) hands on: of (s, d) for (t, e)."""
    n = len(sizes) // servers
    table = sizes.reshape(servers, n, servers, n).transpose(0, 3, 2, 1)
    return table.reshape(len(sizes), len(sizes))


class Blocks:
    """Parts between servers: one block to each, one from each, part by part."""

    def __init__(self, shape: ServerGrid, regrouped: PartTable, landed: PartTable) -> None:
        self._shape = shape
        self._regrouped = regrouped
        self._landed = landed

    def sent(self, to: RankInt) -> Sent:
        """Return the block for a server."""
        shape, n = self._shape, self._shape.devices
        there = self._landed.run(shape.rank(to, shape.d), shape.s * n, n, merge=False)
        return Sent(self._regrouped.run(shape.me, to * n, n, merge=False), there)

    def received(self, frm: RankInt) -> Received:
        """Return the block from a server."""
        shape, n = self._shape, self._shape.devices
        there = self._regrouped.run(shape.rank(frm, shape.d), shape.s * n, n, merge=False)
        return Received(there, self._landed.run(shape.me, frm * n, n, merge=False))

    def keep(self, stream: Stream) -> None:
        """Copy the block of this rank's own server."""
        shape, n = self._shape, self._shape.devices
        here = self._regrouped.run(shape.me, shape.s * n, n, merge=False)
        stream.copy(self._landed.run(shape.me, shape.s * n, n, merge=False), here)
