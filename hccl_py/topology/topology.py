"""Ranks on servers, and the planes that hierarchical algorithms work on.

Ranks are numbered server by server. Planes: `flat` holds everybody, `level0` the ranks of one
server, `level1` the ranks with the same index in every server that has one. A plane is a small
communicator: every rank has an index in it.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from hccl_py.enums import LinkKind
from hccl_py.errors import ParameterError
from hccl_py.topology.presets import Product
from hccl_py.values import IntArray

__all__ = ["PLANES", "Topology"]

PLANES = ("flat", "level0", "level1")


class Topology:
    """Servers of one product, each with a number of devices; a rank is a device."""

    def __init__(self, product: Product, servers: tuple[int, ...]) -> None:
        for number, devices in enumerate(servers):
            if devices < 1:
                raise ParameterError(
                    f"Server {number} has {devices} devices.", "Every server has at least one."
                )
            if devices > product.devices_per_server:
                raise ParameterError(
                    f"Server {number} has {devices} devices, "
                    f"but {product.name} has {product.devices_per_server}.",
                    "Use more servers or another topology.",
                )
        if not servers:
            raise ParameterError(
                "A topology needs at least one server.", "Give --servers 1 or more."
            )
        self.product = product
        self.servers = servers
        self.size = sum(servers)

    @cached_property
    def server(self) -> IntArray:
        """The server of every rank."""
        return np.repeat(np.arange(len(self.servers)), self.servers)

    @cached_property
    def device(self) -> IntArray:
        """The index of every rank inside its server."""
        return np.concatenate([np.arange(devices) for devices in self.servers])

    @property
    def is_even(self) -> bool:
        """Whether all servers have the same number of devices."""
        return len(set(self.servers)) == 1

    @property
    def is_single_server(self) -> bool:
        """Whether all ranks are in one server."""
        return len(self.servers) == 1

    def plane(self, name: str) -> tuple[IntArray, IntArray, IntArray]:
        """Return for every rank: the number of its plane, its index in it, and the plane's size."""
        return self._planes[name]

    def members(self, name: str) -> IntArray:
        """Return a table [plane, index] of ranks; -1 where a plane has fewer members than the
        largest.
        """
        if name not in self._members:
            number, index, size = self.plane(name)
            table = np.full((int(number.max()) + 1, int(size.max())), -1, np.int64)
            table[number, index] = np.arange(self.size)
            self._members[name] = table
        return self._members[name]

    def link_kinds(self, ranks: IntArray, peers: IntArray) -> npt.NDArray[np.int8]:
        """Return how each rank reaches its peer: SDMA inside a server, RDMA between servers."""
        between = self.server[ranks] != self.server[peers]
        return np.where(between, LinkKind.RDMA, LinkKind.SDMA).astype(np.int8)

    @cached_property
    def _planes(self) -> dict[str, tuple[IntArray, IntArray, IntArray]]:
        n = self.size
        devices = np.array(self.servers)
        # Of the servers that have a device of this index: how many there are, how many before.
        holds = devices[:, None] > np.arange(devices.max())
        before: IntArray = np.cumsum(holds, axis=0) - holds
        return {
            "flat": (np.zeros(n, np.int64), np.arange(n), np.full(n, n)),
            "level0": (self.server, self.device, devices[self.server]),
            "level1": (self.device, before[self.server, self.device], holds.sum(0)[self.device]),
        }

    @cached_property
    def _members(self) -> dict[str, IntArray]:
        return {}

    def __repr__(self) -> str:
        return f"Topology({self.product.name}, servers={self.servers})"

    @property
    def description(self) -> str:
        """One phrase for people: product, servers and devices."""
        if not self.is_even:
            return f"{self.product.title}, servers of {', '.join(map(str, self.servers))} devices"
        servers = f"{len(self.servers)} server{'s' if len(self.servers) > 1 else ''}"
        devices = f"{self.servers[0]} device{'s' if self.servers[0] > 1 else ''}"
        return f"{self.product.title}, {servers} x {devices}"
