"""Ranks on servers and superpods, their links, and their planes (planes.py).

Usually ranks are numbered server by server. Sub-communicators and rank tables may place them
anyhow: then a server has its ranks in rank order.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hccl_py.enums import DataType, LinkKind, ReduceOp
from hccl_py.errors import ParameterError
from hccl_py.topology.placement import (
    MAX_DEVICE_ID,
    Placement,
    check_placement,
    check_servers,
    dense,
    grouped,
)
from hccl_py.topology.planes import RINGS, PlaneColumns, plane_of, ring_orders
from hccl_py.topology.presets import ROUTED, Product
from hccl_py.values import IntArray

if TYPE_CHECKING:
    from hccl_py.topology.networks.network import Network


class Topology:
    """Servers of one product, each with a number of devices; a rank is a device (a die on A3).

    `servers` has the devices of each server, `superpods` the servers of each superpod, by default
    one superpod of all. A server is a module where hosts have several: `hosts` has the number of
    each server's host. `inter_hccs` says whether HCCS joins the servers of a superpod,
    `intra_roce` whether RoCE replaces PCIe inside a server. `placement` is given where ranks do not
    fill servers one after the other, `network` where ranks are not joined by the product's own
    links. Raises ParameterError where the product has no such servers or superpods.

    `size` is the number of ranks; `server`, `superpod`, `device_id` and `device` have a number for
    each of them, shape [size].
    """

    def __init__(
        self,
        product: Product,
        servers: tuple[int, ...],
        superpods: tuple[int, ...] | None = None,
        *,
        inter_hccs: bool = True,
        intra_roce: bool = False,
        hosts: tuple[int, ...] | None = None,
        placement: Placement | None = None,
        network: Network | None = None,
    ) -> None:
        superpods = (len(servers),) if superpods is None else superpods
        check_servers(product, servers, superpods)
        placement = Placement.filled(servers, superpods) if placement is None else placement
        self.product = product
        self.servers, self.superpods = servers, superpods
        filled = tuple(number // product.modules for number in range(len(servers)))
        self.hosts = filled if hosts is None else hosts
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
        host: Sequence[int] | IntArray | None = None,
    ) -> Topology:
        """Return a topology from each rank's server, device id and superpod, and the network that
        joins the ranks where that is not the product's. `host` is that of each rank, where a host
        has several modules.

        Any numbers will do as long as different servers have different ones; a server lies in one
        superpod, and no two ranks on one device. Raises ParameterError where that is not so, and
        for lists of different lengths.
        """
        servers, devices = np.asarray(server, np.int64), np.asarray(device, np.int64)
        superpods = np.zeros_like(servers) if superpod is None else np.asarray(superpod, np.int64)
        if not len(servers) or not servers.shape == devices.shape == superpods.shape:
            raise ParameterError(
                f"{len(servers)} servers, {len(devices)} devices and {len(superpods)} superpods "
                "do not place ranks.",
                "Give one of each for every rank.",
            )
        placement = Placement(dense(servers), devices, dense(superpods))
        check_placement(placement)
        hosts = None
        if host is not None:
            first = np.unique(placement.server, return_index=True)[1]
            hosts = tuple(dense(np.asarray(host, np.int64)[first]).tolist())
        return cls(
            product,
            placement.servers,
            placement.superpods,
            hosts=hosts,
            placement=placement,
            network=network,
        )

    @classmethod
    def routed(cls, network: Network) -> Topology:
        """Return the ranks of a network that has no servers: one server for study."""
        ranks = np.arange(network.ranks)
        return cls.placed(ROUTED, np.zeros_like(ranks), ranks, network=network)

    def subset(self, ranks: Sequence[int]) -> Topology:
        """Return the topology of some of the ranks, in the order given: its rank k is `ranks[k]`.
        ParameterError for one that is given twice.
        """
        at = np.asarray(ranks, np.int64)
        network = None if self.network is None else self.network.subset(at)
        columns = self.server[at], self.device_id[at], self.superpod[at]
        part = Topology.placed(self.product, *columns, network, self.host[at])
        return part.linked(inter_hccs=self.inter_hccs, intra_roce=self.intra_roce)

    def linked(self, *, inter_hccs: bool, intra_roce: bool) -> Topology:
        """Return the same ranks with other links: HCCS between the servers of a superpod or not,
        RoCE instead of PCIe inside a server or not.
        """
        if (inter_hccs, intra_roce) == (self.inter_hccs, self.intra_roce):
            return self
        return self._with(self.product, inter_hccs, intra_roce)

    def reducing(self, inline: Collection[tuple[DataType, ReduceOp]]) -> Topology:
        """Return the same ranks with links that reduce on their way no more than this."""
        if self.product.inline <= set(inline):
            return self
        product = replace(self.product, inline=self.product.inline & set(inline))
        return self._with(product, self.inter_hccs, self.intra_roce)

    def _with(self, product: Product, inter_hccs: bool, intra_roce: bool) -> Topology:
        return Topology(
            product,
            self.servers,
            self.superpods,
            inter_hccs=inter_hccs,
            intra_roce=intra_roce,
            hosts=self.hosts,
            placement=self._placement,
            network=self.network,
        )

    @cached_property
    def host(self) -> IntArray:
        """Every rank's host: its server, where a host has one module."""
        numbers: IntArray = np.asarray(self.hosts, np.int64)[self.server]
        return numbers

    @cached_property
    def device(self) -> IntArray:
        """Every rank's index among the ranks of its server, in rank order."""
        return grouped(self.server)[1]

    @cached_property
    def is_even(self) -> bool:
        """True if all servers have as many devices and all superpods as many servers, and ranks are
        numbered server by server, as hierarchical algorithms need.
        """
        pods_in_order = bool((np.diff(self.superpod) >= 0).all())
        return self.has_equal_servers and len(set(self.superpods)) == 1 and pods_in_order

    @cached_property
    def has_equal_servers(self) -> bool:
        """True if all servers have as many devices, and ranks are numbered server by server."""
        return len(set(self.servers)) == 1 and self.is_in_server_order

    @cached_property
    def is_in_server_order(self) -> bool:
        """True if ranks are numbered server by server."""
        return bool((np.diff(self.server) >= 0).all())

    @property
    def is_single_server(self) -> bool:
        """True if all ranks are in one server."""
        return len(self.servers) == 1

    @property
    def has_mesh(self) -> bool:
        """True if the devices of a server reach each other directly."""
        return self.product.shape != "ring"

    @cached_property
    def level0(self) -> str:
        """HCCL's name for the links inside a server: `mesh`, `ring`, `double_ring`, `8p_ring`,
        `4p_mesh`, or `whole_ring`, one ring through all servers. Two dies of A3 are a ring: their
        switch joins no pair (`alg_configurator.cc`, IsHCCSSWNumEqualToTwiceSIONum).
        """
        if len(set(self.servers)) > 1 or len(set(self.superpods)) > 1:
            return "whole_ring"
        devices = self.servers[0]
        if self.product.shape == "8p":
            known = {8: "8p_ring", 4: "4p_mesh", 2: "ring", 1: "ring"}
            return known.get(devices, "whole_ring")
        if self.product.shape == "dies":
            return "double_ring" if devices > 2 and self.has_whole_packages else "ring"
        if self.product.has_ub:
            return "mesh"
        return self.product.shape if self.product.shape in ("mesh", "ring") else "whole_ring"

    @cached_property
    def rings(self) -> tuple[str, ...]:
        """The planes of the rings inside a server."""
        return RINGS[: len(ring_orders(self.level0, self.servers[0]))]

    def reduces_inline(self, dtype: DataType, op: ReduceOp | None) -> bool:
        """Return True if all links that the ranks have can reduce on their way."""
        return self.product.reduces_inline(dtype, op) and (
            not self.has_rdma or self.product.reduces_over_rdma(dtype, op)
        )

    @cached_property
    def has_rdma(self) -> bool:
        """True if some pair of ranks is linked by RDMA."""
        return bool((self.sdma_groups != self.sdma_groups[0]).any())

    @cached_property
    def has_sdma_inside(self) -> bool:
        """True if all devices of a server reach each other by SDMA."""
        first = np.unique(self.server, return_index=True)[1]
        return bool((self.sdma_groups == self.sdma_groups[first[self.server]]).all())

    @cached_property
    def sdma_groups(self) -> IntArray:
        """The number of every rank's group: SDMA reaches those of the same group, RDMA the others.

        A group is a superpod, a server, or what RoCE leaves of a server: it can only replace PCIe.
        Where a Clos network joins servers, UB reaches all ranks, of other superpods, too.
        """
        if self.product.has_ub:
            return np.zeros(self.size, np.int64)
        if self.joins_servers:
            return self.superpod
        if self.intra_roce and self.product.shape == "pcie":
            return np.arange(self.size)
        if self.intra_roce and self.product.shape == "8p":  # HCCS joins the devices of a four
            return self.plane("mesh0")[0]
        return self.server if self.intra_roce else self.host

    def is_apart(self, ranks: IntArray, peers: IntArray) -> npt.NDArray[np.bool_]:
        """Return True for pairs of ranks on different servers or, of UBX, on different boards."""
        apart = np.asarray(self.server[ranks] != self.server[peers])
        if self.product.bus.ubx:
            boards = self.device_id // self.product.row
            apart |= boards[ranks] != boards[peers]
        return apart

    @property
    def joins_servers(self) -> bool:
        """True if a switch joins the servers of a superpod, so that SDMA reaches across them."""
        return self.product.superpod_servers > 0 and self.inter_hccs

    def plane(self, name: str) -> PlaneColumns:
        """Return for every rank, shape [size]: the number of its plane, its index in it, and the
        plane's size. `name` is one of `PLANES`; ParameterError for a ring that its servers lack.
        """
        if name not in self._planes:
            self._planes[name] = plane_of(self, name)
        return self._planes[name]

    def members(self, name: str) -> IntArray:
        """Return a table [plane, index] of ranks; -1 where a plane has fewer members than the
        largest. Raises what `plane` does.
        """
        if name not in self._members:
            number, index, size = self.plane(name)
            table = np.full((int(number.max()) + 1, int(size.max())), -1, np.int64)
            table[number, index] = np.arange(self.size)
            self._members[name] = table
        return self._members[name]

    def groups(self, name: str, number: int) -> tuple[int, ...]:
        """Return the sizes of the groups of a plane's members by server (flat) or superpod
        (level12); on other planes all are one group.
        """
        ranks = self.members(name)[number]
        ranks = ranks[ranks >= 0]
        owner = {"flat": self.server, "level12": self.superpod}.get(name)
        if owner is None:
            return (len(ranks),)
        return tuple(np.bincount(dense(owner[ranks])).tolist())

    def link_kinds(self, ranks: IntArray, peers: IntArray) -> npt.NDArray[np.int8]:
        """Return the LinkKind from each of `ranks` to its peer: SDMA inside a group, else RDMA."""
        rdma = self.sdma_groups[ranks] != self.sdma_groups[peers]
        return np.where(rdma, int(LinkKind.RDMA), int(LinkKind.SDMA)).astype(np.int8)

    @property
    def has_whole_packages(self) -> bool:
        """True if both dies of every package take part."""
        package = self.server * MAX_DEVICE_ID + self.device_id // 2
        return bool((np.unique(package, return_counts=True)[1] == 2).all())

    @cached_property
    def _planes(self) -> dict[str, PlaneColumns]:
        return {}

    @cached_property
    def _members(self) -> dict[str, IntArray]:
        return {}

    def __repr__(self) -> str:
        pods = f", superpods={self.superpods}" if len(self.superpods) > 1 else ""
        network = f"{self.network.name!r}, " if self.network else ""
        return f"Topology({network}{self.product.name}, servers={self.servers}{pods})"

    def _repr_html_(self) -> str:
        """Return its servers and ranks as a picture, for notebooks."""
        from html import escape

        from hccl_py.trace.notebook import topology_picture

        return f"<div><p>{escape(self.description)}</p>{topology_picture(self)}</div>"

    @property
    def description(self) -> str:
        """One phrase for people: network, product, superpods, servers and devices."""
        if self.network is None:
            return self._servers_in_words
        is_routed = self.product.shape == ROUTED.shape and len(self.servers) == 1
        return self.network.name if is_routed else f"{self.network.name}, {self._servers_in_words}"

    @property
    def _servers_in_words(self) -> str:
        pods = f"{len(self.superpods)} superpods, " if len(self.superpods) > 1 else ""
        if len(set(self.servers)) > 1:
            each = ", ".join(map(str, self.servers))
            return f"{self.product.title}, {pods}servers of {each} devices"
        noun = "module" if self.product.modules > 1 else "server"
        count = len(self.servers)
        servers = f"{count} {noun}" if count == 1 else f"{count} {noun}s"
        count = self.servers[0]
        devices = f"{count} device" if count == 1 else f"{count} devices"
        return f"{self.product.title}, {pods}{servers} x {devices}"
