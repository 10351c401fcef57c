"""Ranks on servers and superpods, and the planes that hierarchical algorithms work on.

A plane is a small communicator: every rank has an index in it.

    flat            everybody
    level0          the ranks of one server
    level1          the ranks with the same index in every server of one superpod
    level2          the ranks with the same index in every superpod
    level12         the ranks with the same index in every server of all superpods: both in one
    ring0 .. ring3  the ranks of one server in the orders of its rings, each with links of its own
    back            everybody once more, with links of its own: for what goes the other way at the
                    same time, on another stream

Usually ranks are numbered server by server. Sub-communicators and rank tables may place them
anyhow: then a server has its ranks in rank order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hccl_py.enums import DataType, LinkKind, ReduceOp
from hccl_py.errors import ParameterError
from hccl_py.topology.presets import ROUTED, Product
from hccl_py.values import IntArray, count_up

if TYPE_CHECKING:
    from hccl_py.topology.networks.network import Network

__all__ = ["PLANES", "Topology"]

RINGS = ("ring0", "ring1", "ring2", "ring3")

PLANES = ("flat", "level0", "level1", "level2", "level12", *RINGS, "back")

_8P_RINGS = (
    (0, 1, 2, 6, 5, 4, 7, 3),
    (0, 3, 7, 4, 5, 6, 2, 1),
    (0, 2, 3, 1, 5, 7, 6, 4),
    (0, 4, 6, 7, 5, 1, 3, 2),
)
"""The four rings through the two meshes of four of an Atlas 800 (model 9000)."""

Plane = tuple[IntArray, IntArray, IntArray]


@dataclass(frozen=True, eq=False)
class Placement:
    """Every rank's server and superpod, both numbered from 0, and the id of its device."""

    server: IntArray
    device_id: IntArray
    superpod: IntArray

    @staticmethod
    def filled(servers: tuple[int, ...], superpods: tuple[int, ...]) -> Placement:
        """Return ranks that fill servers of so many devices, and superpods of so many servers."""
        return Placement(
            np.repeat(np.arange(len(servers)), servers),
            np.concatenate([np.arange(devices) for devices in servers]),
            np.repeat(np.repeat(np.arange(len(superpods)), superpods), servers),
        )

    @property
    def servers(self) -> tuple[int, ...]:
        """The devices of each server."""
        return tuple(np.bincount(self.server).tolist())

    @property
    def superpods(self) -> tuple[int, ...]:
        """The servers of each superpod."""
        pods = self.superpod[np.unique(self.server, return_index=True)[1]]
        return tuple(np.bincount(pods).tolist())


class Topology:
    """Servers of one product, each with a number of devices; a rank is a device (a die on A3).

    `servers` has the devices of each server, `superpods` the servers of each superpod, by default
    one superpod of all. `inter_hccs` says whether HCCS joins the servers of a superpod,
    `intra_roce` whether RoCE replaces PCIe inside a server. `placement` is given where ranks do not
    fill servers one after the other, `network` where ranks are not joined by the product's own
    links. Raises ParameterError where the product has no such servers or superpods.
    """

    def __init__(
        self,
        product: Product,
        servers: tuple[int, ...],
        superpods: tuple[int, ...] | None = None,
        *,
        inter_hccs: bool = True,
        intra_roce: bool = False,
        placement: Placement | None = None,
        network: Network | None = None,
    ) -> None:
        superpods = (len(servers),) if superpods is None else superpods
        _check_servers(product, servers, superpods)
        placement = Placement.filled(servers, superpods) if placement is None else placement
        self.product = product
        self.servers, self.superpods = servers, superpods
        self.inter_hccs, self.intra_roce = inter_hccs, intra_roce
        self.network = network
        self._placement = placement
        self.size = len(placement.server)
        self.server = placement.server
        self.superpod = placement.superpod
        self.device_id = placement.device_id

    @classmethod
    def placed(
        cls,
        product: Product,
        server: Sequence[int] | IntArray,
        device: Sequence[int] | IntArray,
        superpod: Sequence[int] | IntArray | None = None,
        network: Network | None = None,
    ) -> Topology:
        """Return a topology from each rank's server, device id and superpod, and the network that
        joins the ranks where that is not the product's.

        Any numbers will do as long as different servers have different ones; a server lies in one
        superpod, and no two ranks on one device.
        """
        servers, devices = np.asarray(server, np.int64), np.asarray(device, np.int64)
        superpods = np.zeros_like(servers) if superpod is None else np.asarray(superpod, np.int64)
        if not len(servers) or not servers.shape == devices.shape == superpods.shape:
            raise ParameterError(
                f"{len(servers)} servers, {len(devices)} devices and {len(superpods)} superpods "
                "do not place ranks.",
                "Give one of each for every rank.",
            )
        placement = Placement(_dense(servers), devices, _dense(superpods))
        _check_placement(placement)
        return cls(
            product, placement.servers, placement.superpods, placement=placement, network=network
        )

    @classmethod
    def routed(cls, network: Network) -> Topology:
        """Return the ranks of a network that has no servers: one server for study."""
        ranks = np.arange(network.ranks)
        return cls.placed(ROUTED, np.zeros_like(ranks), ranks, network=network)

    def subset(self, ranks: Sequence[int]) -> Topology:
        """Return the topology of some of the ranks, in the order given."""
        at = np.asarray(ranks, np.int64)
        network = None if self.network is None else self.network.subset(at)
        part = Topology.placed(
            self.product, self.server[at], self.device_id[at], self.superpod[at], network
        )
        return part.linked(inter_hccs=self.inter_hccs, intra_roce=self.intra_roce)

    def linked(self, *, inter_hccs: bool, intra_roce: bool) -> Topology:
        """Return the same ranks with other links: HCCS between the servers of a superpod or not,
        RoCE instead of PCIe inside a server or not.
        """
        if (inter_hccs, intra_roce) == (self.inter_hccs, self.intra_roce):
            return self
        return Topology(
            self.product,
            self.servers,
            self.superpods,
            inter_hccs=inter_hccs,
            intra_roce=intra_roce,
            placement=self._placement,
            network=self.network,
        )

    @cached_property
    def device(self) -> IntArray:
        """Every rank's index among the ranks of its server, in rank order."""
        return _grouped(self.server)[1]

    @cached_property
    def is_even(self) -> bool:
        """Whether all servers have as many devices and all superpods as many servers, and ranks are
        numbered server by server: what hierarchical algorithms need.
        """
        pods_in_order = bool((np.diff(self.superpod) >= 0).all())
        return self.has_equal_servers and len(set(self.superpods)) == 1 and pods_in_order

    @cached_property
    def has_equal_servers(self) -> bool:
        """Whether all servers have as many devices, and ranks are numbered server by server."""
        return len(set(self.servers)) == 1 and self.is_in_server_order

    @cached_property
    def is_in_server_order(self) -> bool:
        """Whether ranks are numbered server by server."""
        return bool((np.diff(self.server) >= 0).all())

    @property
    def is_single_server(self) -> bool:
        """Whether all ranks are in one server."""
        return len(self.servers) == 1

    @property
    def has_mesh(self) -> bool:
        """Whether the devices of a server reach each other directly."""
        return self.product.shape != "ring"

    @cached_property
    def level0(self) -> str:
        """What HCCL takes the links inside a server for: `mesh`, `ring`, `double_ring`, `8p_ring`,
        `4p_mesh`, or `whole_ring`, one ring through all servers.
        """
        if len(set(self.servers)) > 1 or len(set(self.superpods)) > 1:
            return "whole_ring"
        devices = self.servers[0]
        if self.product.shape == "8p":
            known = {8: "8p_ring", 4: "4p_mesh", 2: "ring", 1: "ring"}
            return known.get(devices, "whole_ring")
        if self.product.shape == "dies":
            return "double_ring" if self._has_whole_packages else "ring"
        shape = self.product.shape
        return shape if shape in ("mesh", "ring") else "whole_ring"

    @cached_property
    def rings(self) -> tuple[str, ...]:
        """The planes of the rings inside a server."""
        return RINGS[: len(_ring_orders(self.level0, self.servers[0]))]

    def reduces_inline(self, dtype: DataType, op: ReduceOp | None) -> bool:
        """Whether all links that the ranks have can reduce on their way."""
        return self.product.reduces_inline(dtype, op) and (
            not self.has_rdma or self.product.reduces_over_rdma(dtype, op)
        )

    @cached_property
    def has_rdma(self) -> bool:
        """Whether some pair of ranks is linked by RDMA."""
        return bool((self.sdma_groups != self.sdma_groups[0]).any())

    @cached_property
    def has_sdma_inside(self) -> bool:
        """Whether all devices of a server reach each other by SDMA."""
        first = np.unique(self.server, return_index=True)[1]
        return bool((self.sdma_groups == self.sdma_groups[first[self.server]]).all())

    @cached_property
    def sdma_groups(self) -> IntArray:
        """The number of every rank's group: SDMA reaches those of the same group, RDMA the others.

        A group is a superpod, a server, or what RoCE leaves of a server: it can only replace PCIe.
        """
        if self.joins_servers:
            return self.superpod
        if self.intra_roce and self.product.shape == "pcie":
            return np.arange(self.size)
        if self.intra_roce and self.product.shape == "8p":  # HCCS joins the devices of a four
            return _dense(self.server * MAX_DEVICE_ID + self.device_id // 4)
        return self.server

    @property
    def joins_servers(self) -> bool:
        """Whether a switch joins the servers of a superpod, so that SDMA reaches across them."""
        return self.product.superpod_servers > 0 and self.inter_hccs

    def plane(self, name: str) -> Plane:
        """Return for every rank: the number of its plane, its index in it, and the plane's size."""
        if name not in self._planes:
            self._planes[name] = self._plane(name)
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

    def groups(self, name: str, number: int) -> tuple[int, ...]:
        """Return how many members of a plane each server (flat) or superpod (level12) has; on other
        planes all are one group.
        """
        ranks = self.members(name)[number]
        ranks = ranks[ranks >= 0]
        owner = {"flat": self.server, "level12": self.superpod}.get(name)
        if owner is None:
            return (len(ranks),)
        return tuple(np.bincount(_dense(owner[ranks])).tolist())

    def link_kinds(self, ranks: IntArray, peers: IntArray) -> npt.NDArray[np.int8]:
        """Return how each rank reaches its peer: SDMA inside a group, else RDMA."""
        rdma = self.sdma_groups[ranks] != self.sdma_groups[peers]
        return np.where(rdma, LinkKind.RDMA, LinkKind.SDMA).astype(np.int8)

    def _plane(self, name: str) -> Plane:
        n = self.size
        if name in ("flat", "back"):
            return np.zeros(n, np.int64), np.arange(n), np.full(n, n)
        if name == "level0":
            return _grouped(self.server)
        if name == "level1":
            return _grouped(self.superpod * n + self.device)
        if name == "level12":
            return _grouped(self.device)
        if name == "level2":
            return _grouped(_grouped(self.superpod)[1])
        return self._ring_plane(name)

    def _ring_plane(self, name: str) -> Plane:
        number, index, size = self.plane("level0")
        at = np.empty(self.size, np.int64)
        for devices in set(self.servers):
            orders = _ring_orders(self.level0, devices)
            if RINGS.index(name) >= len(orders):
                raise ParameterError(
                    f"Servers of {self.product.title} with {devices} devices have "
                    f"{len(orders)} ring{'s' if len(orders) > 1 else ''}, so there is no {name}.",
                    f"Use {', '.join(RINGS[: len(orders)])}.",
                )
            position = np.argsort(orders[RINGS.index(name)])
            mine = size == devices
            at[mine] = position[index[mine]]
        return number, at, size

    @property
    def _has_whole_packages(self) -> bool:
        """Whether both dies of every package take part."""
        package = self.server * MAX_DEVICE_ID + self.device_id // 2
        return bool((np.unique(package, return_counts=True)[1] == 2).all())

    @cached_property
    def _planes(self) -> dict[str, Plane]:
        return {}

    @cached_property
    def _members(self) -> dict[str, IntArray]:
        return {}

    def __repr__(self) -> str:
        pods = f", superpods={self.superpods}" if len(self.superpods) > 1 else ""
        network = f"{self.network.name!r}, " if self.network else ""
        return f"Topology({network}{self.product.name}, servers={self.servers}{pods})"

    @property
    def description(self) -> str:
        """One phrase for people: network, product, superpods, servers and devices."""
        if self.network is None:
            return self._servers_in_words
        is_routed = self.product == ROUTED
        return self.network.name if is_routed else f"{self.network.name}, {self._servers_in_words}"

    @property
    def _servers_in_words(self) -> str:
        pods = f"{len(self.superpods)} superpods, " if len(self.superpods) > 1 else ""
        if len(set(self.servers)) > 1:
            each = ", ".join(map(str, self.servers))
            return f"{self.product.title}, {pods}servers of {each} devices"
        servers = f"{len(self.servers)} server{'s' if len(self.servers) > 1 else ''}"
        devices = f"{self.servers[0]} device{'s' if self.servers[0] > 1 else ''}"
        return f"{self.product.title}, {pods}{servers} x {devices}"


MAX_DEVICE_ID = 1 << 20


def _grouped(key: IntArray) -> Plane:
    """Return for every element: the number of its group of equal keys, its place in it by position,
    and the group's size.
    """
    _, number, count = np.unique(key, return_inverse=True, return_counts=True)
    number = number.reshape(-1)
    order = np.argsort(number, kind="stable")
    index = np.empty(len(key), np.int64)
    index[order] = count_up(count)
    return number, index, count[number]


def _dense(keys: IntArray) -> IntArray:
    """Number keys by first appearance."""
    _, first, number = np.unique(keys, return_index=True, return_inverse=True)
    dense: IntArray = np.argsort(np.argsort(first))[number.reshape(-1)]
    return dense


def _ring_orders(level0: str, devices: int) -> tuple[tuple[int, ...], ...]:
    forward = tuple(range(devices))
    if level0 == "8p_ring":
        return _8P_RINGS
    if level0 == "double_ring":
        return forward, (0, *forward[:0:-1])
    return (forward,)


def _check_servers(product: Product, servers: tuple[int, ...], superpods: tuple[int, ...]) -> None:
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
        raise ParameterError("A topology needs at least one server.", "Give --servers 1 or more.")
    if sum(superpods) != len(servers) or min(superpods) < 1:
        raise ParameterError(
            f"Superpods of {', '.join(map(str, superpods))} servers do not hold "
            f"{len(servers)} servers.",
            "The servers of all superpods add up to all servers.",
        )
    if len(superpods) > 1 and not product.superpod_servers:
        raise ParameterError(
            f"{product.title} has no superpods.", "Leave superpods out: atlas-900-a3 has them."
        )
    if product.superpod_servers and max(superpods) > product.superpod_servers:
        raise ParameterError(
            f"A superpod has {max(superpods)} servers, but {product.name} joins at most "
            f"{product.superpod_servers}.",
            "Use more superpods.",
        )


def _check_placement(placement: Placement) -> None:
    pods = _grouped(placement.server * len(placement.server) + placement.superpod)[2]
    if (pods != _grouped(placement.server)[2]).any():
        rank = int(np.argmax(pods != _grouped(placement.server)[2]))
        raise ParameterError(
            f"The server of rank {rank} lies in two superpods.", "A server lies in one."
        )
    here = placement.server * MAX_DEVICE_ID + placement.device_id
    _, first, count = np.unique(here, return_index=True, return_counts=True)
    if (count > 1).any():
        raise ParameterError(
            f"Rank {int(first[count > 1][0])} shares its device with another rank.",
            "Give every rank a device of its own.",
        )
