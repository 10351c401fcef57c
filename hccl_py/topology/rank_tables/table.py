"""Rank tables of all versions, as columns by rank."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TYPE_CHECKING

from hccl_py.errors import ParameterError, RankTableError, did_you_mean
from hccl_py.topology.presets import PRESETS, Product
from hccl_py.topology.rank_tables.kind import CLUSTER, TABLE

if TYPE_CHECKING:
    from hccl_py.topology.rank_tables.network import RankTableNetwork
    from hccl_py.topology.topology import Topology

ATLAS_950 = replace(
    PRESETS["atlas-800t-a2"],
    name="950",
    title="950",
    device="950",
    devices_per_server=65,
    superpod_servers=65536,
    inline=frozenset(),
    rdma_inline=frozenset(),
    memory_bytes=None,
)
"""The product of rank tables v2.0, as far as its files describe it: selection does not know it."""

_USUAL = {
    "1.0": PRESETS["atlas-800t-a2"],
    "1.2": PRESETS["atlas-900-a3"],
    "template 2": PRESETS["atlas-800-9000"],
    "2.0": ATLAS_950,
}


@dataclass(frozen=True, repr=False)
class RankTable:
    """The ranks of a job. `server`, `device`, `superpod` and the rest have an entry for each rank.

    `version` is "1.0", "1.2", "2.0" or "template 2". Servers and superpods are numbered in the
    order of their first rank; `server_ids` and `superpod_ids` are their names. `device` is the id
    of the device inside its server. Without superpods, `superpod_ids` is empty and `superpod` 0.
    `device_ips` are the addresses of each device, `device_ip` the first one, which HCCL uses.
    `super_device` is empty where the table has none. `network` are the levels and links of a table
    v2.0. `notes` says what is unusual but legal.
    """

    version: str
    server_ids: tuple[str, ...]
    server: tuple[int, ...]
    device: tuple[int, ...]
    superpod_ids: tuple[str, ...]
    superpod: tuple[int, ...]
    device_ips: tuple[tuple[str, ...], ...]
    super_device: tuple[int, ...] = ()
    network: RankTableNetwork | None = None
    notes: tuple[str, ...] = field(default=(), compare=False)
    name: str = field(default="rank table", compare=False)
    paths: tuple[str, ...] = field(default=(), compare=False)

    @property
    def size(self) -> int:
        """The number of ranks."""
        return len(self.server)

    @property
    def device_ip(self) -> tuple[str | None, ...]:
        """The address of each device that HCCL uses; None where it has none."""
        return tuple(next(iter(addresses), None) for addresses in self.device_ips)

    def topology(
        self, product: Product | str | None = None, *, inter_hccs: bool = True
    ) -> Topology:
        """Return the topology of the ranks, on a product or the one that the version is usual for.

        `inter_hccs` as in HCCL_INTER_HCCS_DISABLE: true if HCCS joins the servers of a superpod.
        Raises RankTableError where the product has no such devices, or demands an address that
        the table lacks.
        """
        from hccl_py.topology.topology import Topology

        chosen = self._product(product)
        size = chosen.devices_per_server
        for rank, device in enumerate(self.device):
            if device >= size * chosen.modules:
                most = size * chosen.modules - 1
                what = f"a device id from 0 to {most} of {chosen.title}"
                raise self._defect(rank, "device_id", what, str(device), "Name another product.")
        if self.version != "2.0":
            self._check_addresses(chosen, inter_hccs)
        modules = [device // size for device in self.device]
        if len(set(modules)) == 1:  # one half of all hosts: HCCL sees no modules
            modules = [0] * self.size
        found = Topology.placed(
            chosen,
            [host * chosen.modules + m for host, m in zip(self.server, modules, strict=True)],
            [device % size for device in self.device],
            self.superpod,
            host=self.server,
        )
        return found.linked(inter_hccs=inter_hccs, intra_roce=False)

    def check_device(self, rank: int, device_id: int, device_ip: str | None = None) -> None:
        """Raise RankTableError (EI0014) unless the table puts a rank on this device."""
        if not 0 <= rank < self.size:
            raise ParameterError(
                f"{self.name}: there is no rank {rank}.", f"Ranks go from 0 to {self.size - 1}."
            )
        hint = "Start the rank on the device that the table names, or mend the table."
        if device_id != self.device[rank]:
            found = str(self.device[rank])
            raise self._defect(rank, "device_id", f"{device_id}, as here", found, hint, CLUSTER)
        listed = self.device_ips[rank]
        if device_ip and listed and _address(device_ip) not in map(ip_address, listed):
            found = ",".join(listed)
            raise self._defect(rank, "device_ip", f"{device_ip}, as here", found, hint, CLUSTER)

    def _product(self, product: Product | str | None) -> Product:
        if isinstance(product, str):
            if product not in PRESETS:
                hint = did_you_mean(product, PRESETS)
                raise ParameterError(f"Topology {product!r} is unknown.", hint)
            product = PRESETS[product]
        chosen = product or _USUAL[self.version]
        if self.version == "2.0" and chosen.device != "950":
            raise ParameterError(
                f"{self.name}: rank tables v2.0 place devices 950, not {chosen.device}.",
                "Leave the product out.",
            )
        return chosen

    def _check_addresses(self, product: Product, inter_hccs: bool) -> None:
        """Refuse ranks without an address where the product reaches others over the network."""
        apart = len(self.server_ids) > 1 and not inter_hccs
        if product.device != "910B" and not apart:
            return
        for rank, address in enumerate(self.device_ip):
            if address is None:
                why = "without HCCS between servers" if apart else f"on {product.title}"
                hint = "Every device has one: the address of its own network card."
                raise self._defect(rank, "device_ip", f"an address {why}", "nothing", hint)

    def _defect(
        self, rank: int, key: str, what: str, found: str, hint: str, code: str = TABLE
    ) -> RankTableError:
        place = f"{self.paths[rank]}.{key}"
        message = f"{self.name}: {place}: expected {what}, found {found} ({code})."
        return RankTableError(message, hint, code)

    def __repr__(self) -> str:
        parts = [(self.size, "rank"), (len(self.server_ids), "server")]
        parts += [(len(self.superpod_ids), "superpod")] if self.superpod_ids else []
        phrase = ", ".join(f"{n} {thing}{'s' if n > 1 else ''}" for n, thing in parts)
        return f"RankTable(version {self.version}, {phrase})"


def _address(text: str) -> IPv4Address | IPv6Address:
    try:
        return ip_address(text)
    except ValueError:
        hint = 'Give an IPv4 or IPv6 address such as "192.168.1.1".'
        raise ParameterError(f"device_ip is {text!r}.", hint) from None
