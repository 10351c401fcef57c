"""Products, and topologies by name.

Sources: HCCL's public documents for what a product's hardware reduces inline, which data types its
ops take and how its servers are built; the documents of aclrtCreateStream for streams; Huawei's
product page for memory (64 GB of HBM per NPU of an Atlas 800T A2). `ring` and `mesh` are networks
for study: one kind of link, any number of ranks, devices as in Atlas 800T A2 but for their memory,
which nobody states. Networks that have routes (`torus:4x4`, files) are in `networks/`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product as choices
from typing import TYPE_CHECKING

from hccl_py.enums import DataType, ReduceOp
from hccl_py.errors import ParameterError

if TYPE_CHECKING:
    from hccl_py.topology.topology import Topology

__all__ = ["DEFAULT_PRESET", "MAX_RANKS", "PRESETS", "ROUTED", "Product", "topology_of"]

MAX_RANKS = 65536

Reduction = tuple[DataType, ReduceOp]


def _types(*names: str) -> frozenset[DataType]:
    return frozenset(map(DataType, names))


def _reductions(types: frozenset[DataType], *ops: ReduceOp) -> frozenset[Reduction]:
    return frozenset(choices(types, ops))


_NO_PROD = (ReduceOp.SUM, ReduceOp.MAX, ReduceOp.MIN)
_ALL_TYPES = frozenset(DataType)
_SIX_TYPES = _types("fp32", "fp16", "int8", "int16", "int32", "bf16")


@dataclass(frozen=True)
class Product:
    """What selection and orchestration must know of a product.

    `shape` is how the devices of a server are linked: `mesh` (every pair), `ring` (neighbours
    only), `dies` (a switch, and pairs of dies in a package), `8p` (two groups of four), `pcie`,
    `routed` (a network whose routes join everybody).

    `inline` and `rdma_inline` are the reductions that SDMA and RDMA do while they copy,
    `reductions` all that the product's ops take, `copy_types` what the other ops take.

    `superpod_servers` is how many servers a superpod joins, 0 where there are none. `hccs_ports`
    is HCCL's hccsPortNum where it is known, `rdma_lite` whether RDMA work requests are cheap.

    Limits of one device: `notifies`, `streams`, `contexts` (FFTS: tasks of one round), `sdma_bytes`
    and `rdma_bytes` (one task), `memory_bytes` where it is known. DMA engines work best where
    source and destination begin at multiples of `slice_align` bytes.
    """

    name: str
    title: str
    device: str
    devices_per_server: int
    shape: str
    inline: frozenset[Reduction]
    rdma_inline: frozenset[Reduction]
    reductions: frozenset[Reduction]
    copy_types: frozenset[DataType] = _ALL_TYPES
    superpod_servers: int = 0
    hccs_ports: int = 0
    rdma_lite: bool = True
    notifies: int = 8192
    streams: int = 1984
    contexts: int = 65535
    sdma_bytes: int = 4 << 30
    rdma_bytes: int = 2 << 30
    slice_align: int = 128
    memory_bytes: int | None = None

    def reduces_inline(self, dtype: DataType, op: ReduceOp | None) -> bool:
        """Whether SDMA copies can reduce this data type with this op on their way."""
        return (dtype, op) in self.inline

    def reduces_over_rdma(self, dtype: DataType, op: ReduceOp | None) -> bool:
        """Whether RDMA writes can."""
        return (dtype, op) in self.rdma_inline

    @property
    def reduce_types(self) -> frozenset[DataType]:
        """The data types that some reduction takes."""
        return frozenset(dtype for dtype, _ in self.reductions)


_A2_INLINE = _reductions(_SIX_TYPES, *_NO_PROD)
_A2_REDUCTIONS = _reductions(_SIX_TYPES | _types("int64"), *ReduceOp) - _reductions(
    _types("int16", "bf16"), ReduceOp.PROD
)

_A2 = Product(
    name="atlas-800t-a2",
    title="Atlas 800T A2",
    device="910B",
    devices_per_server=8,
    shape="mesh",
    inline=_A2_INLINE,
    rdma_inline=_A2_INLINE,
    reductions=_A2_REDUCTIONS,
    memory_bytes=64 << 30,
)

_A3 = replace(
    _A2,
    name="atlas-900-a3",
    title="Atlas 900 A3 SuperPoD",
    device="910_93",
    devices_per_server=16,
    shape="dies",
    superpod_servers=48,
)

_910A = Product(
    name="atlas-800-9000",
    title="Atlas 800 (model 9000)",
    device="910A",
    devices_per_server=8,
    shape="8p",
    inline=_reductions(_types("fp32"), ReduceOp.SUM),
    rdma_inline=frozenset(),
    reductions=_reductions(_types("int8", "int32", "int64", "fp16", "fp32"), *ReduceOp),
    copy_types=_ALL_TYPES - _types("bf16"),
    memory_bytes=32 << 30,
)

_DUO = Product(
    name="300i-duo",
    title="Atlas 300I Duo",
    device="310P3",
    devices_per_server=32,
    shape="pcie",
    inline=_reductions(_types("fp32", "int16", "fp16"), ReduceOp.SUM),
    rdma_inline=frozenset(),
    reductions=_reductions(_types("int8", "int32", "fp16", "fp32"), *ReduceOp)
    | _reductions(_types("int16"), ReduceOp.SUM),
    copy_types=_ALL_TYPES - _types("bf16"),
)

_STUDY = replace(_A2, devices_per_server=MAX_RANKS, memory_bytes=None)

ROUTED = replace(_STUDY, name="routed", title="network", shape="routed")
"""The product whose one server is a network with routes."""

DEFAULT_PRESET = _A2.name

PRESETS = {
    product.name: product
    for product in (
        _A2,
        _910A,
        _A3,
        _DUO,
        replace(_STUDY, name="mesh", title="full mesh", shape="mesh"),
        replace(_STUDY, name="ring", title="ring", shape="ring"),
    )
}


def topology_of(
    ranks: int | None = None,
    *,
    servers: int | None = None,
    devices: int | None = None,
    superpods: int | None = None,
    preset: str = DEFAULT_PRESET,
) -> Topology:
    """Return a topology of a preset: as few servers as hold `ranks`, or `servers` of `devices`
    each, in each of `superpods`.

    `preset` may also be a generated network, such as `torus:4x4`, or the file of one; it says
    itself where its ranks are, and `ranks` takes the first ones only.

    Raises ParameterError for an unknown preset, for numbers below 1, and where both ways are mixed.
    """
    from hccl_py.topology.topology import Topology

    _check_numbers(ranks=ranks, servers=servers, devices=devices, superpods=superpods)
    if preset not in PRESETS:
        _check_left_out(preset, servers=servers, devices=devices, superpods=superpods)
        return _of_network(preset, ranks)
    product = PRESETS[preset]
    if superpods is not None and not product.superpod_servers:
        raise ParameterError(
            f"{product.title} has no superpods.", "Leave superpods out: atlas-900-a3 has them."
        )
    if servers is None and devices is None and superpods is None:
        ranks = 4 if ranks is None else ranks
        full, rest = divmod(ranks, product.devices_per_server)
        filled = (product.devices_per_server,) * full + ((rest,) if rest else ())
        return Topology(product, filled, _filled_superpods(product, len(filled)))
    servers = 1 if servers is None else servers
    devices = min(product.devices_per_server, 8) if devices is None else devices
    pods = 1 if superpods is None else superpods
    total = pods * servers * devices
    spelled = f"{servers} servers x {devices} devices"
    spelled = spelled if superpods is None else f"{superpods} superpods x {spelled}"
    if total > MAX_RANKS:
        raise ParameterError(f"{spelled} are {total} ranks.", f"At most {MAX_RANKS}.")
    if ranks is not None and ranks != total:
        raise ParameterError(
            f"{spelled} are {total} ranks, not {ranks}.",
            "Give ranks alone, or servers and devices.",
        )
    sizes = (servers,) * pods if superpods else _filled_superpods(product, servers)
    return Topology(product, (devices,) * servers * pods, sizes)


def _of_network(spelling: str, ranks: int | None) -> Topology:
    """Return the topology of a network that is not a product's, or its first ranks."""
    from hccl_py.topology.networks import find_network

    found = find_network(spelling)
    if ranks is None or ranks == found.size:
        return found
    if ranks > found.size:
        raise ParameterError(
            f"{spelling} has {found.size} ranks, not {ranks}.", f"Give at most {found.size} ranks."
        )
    return found.subset(range(ranks))


def _check_left_out(spelling: str, **numbers: int | None) -> None:
    for name, number in numbers.items():
        if number is not None:
            raise ParameterError(
                f"Topology {spelling!r} says where the ranks are.", f"Leave {name} out."
            )


def _check_numbers(**numbers: int | None) -> None:
    for name, number in numbers.items():
        if number is not None and (isinstance(number, bool) or not isinstance(number, int)):
            raise ParameterError(f"{name} is {number!r}.", f"Give a whole number of {name}.")
        if number is not None and not 1 <= number <= MAX_RANKS:
            raise ParameterError(f"{name} is {number}.", f"Give 1 to {MAX_RANKS} {name}.")


def _filled_superpods(product: Product, servers: int) -> tuple[int, ...]:
    """Return the servers of each superpod when they are filled one after the other."""
    if not product.superpod_servers:
        return (servers,)
    full, rest = divmod(servers, product.superpod_servers)
    return (product.superpod_servers,) * full + ((rest,) if rest else ())
