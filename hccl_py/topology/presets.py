"""Products, and topologies by name.

Sources: HCCL's public documents for what a product's hardware reduces inline, how its servers are
built and how much one task moves; the documents of aclrtCreateStream for streams; Huawei's product
page for memory (64 GB of HBM per NPU). `ring` and `mesh` are networks for study: one kind of link,
any number of ranks, devices as in Atlas 800T A2 but for their memory, which nobody states.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hccl_py.enums import DataType, ReduceOp
from hccl_py.errors import ParameterError, did_you_mean

if TYPE_CHECKING:
    from hccl_py.topology.topology import Topology

__all__ = ["DEFAULT_PRESET", "PRESETS", "Product", "topology_of"]

MAX_RANKS = 65536

_INLINE_TYPES = frozenset(map(DataType, ("fp32", "fp16", "int8", "int16", "int32", "bf16")))
_INLINE_OPS = frozenset((ReduceOp.SUM, ReduceOp.MAX, ReduceOp.MIN))
_REDUCE_TYPES = _INLINE_TYPES | {DataType.INT64}


@dataclass(frozen=True)
class Product:
    """What selection and orchestration must know of a product.

    `level0` is the shape of the links inside a server. Inline reduce: what SDMA and RDMA add while
    they copy.

    Limits of one device: `notifies`, `streams`, `contexts` (FFTS: tasks of one round), `sdma_bytes`
    and `rdma_bytes` (one task), `memory_bytes` where it is known. DMA engines work best where
    source and destination begin at multiples of `slice_align` bytes.
    """

    name: str
    title: str
    device: str
    devices_per_server: int
    level0: str
    inline_types: frozenset[DataType]
    inline_ops: frozenset[ReduceOp]
    reduce_types: frozenset[DataType]
    prod_excluded: frozenset[DataType]
    copy_types: frozenset[DataType] = frozenset(DataType)
    notifies: int = 8192
    streams: int = 1984
    contexts: int = 65535
    sdma_bytes: int = 4 << 30
    rdma_bytes: int = 2 << 30
    slice_align: int = 128
    memory_bytes: int | None = None

    def reduces_inline(self, dtype: DataType, op: ReduceOp | None) -> bool:
        """Whether copies can reduce this data type with this op on their way."""
        return dtype in self.inline_types and op in self.inline_ops


def _product(
    name: str, title: str, devices: int, level0: str, memory_bytes: int | None = None
) -> Product:
    return Product(
        name=name,
        title=title,
        device="910B",
        devices_per_server=devices,
        level0=level0,
        inline_types=_INLINE_TYPES,
        inline_ops=_INLINE_OPS,
        reduce_types=_REDUCE_TYPES,
        prod_excluded=frozenset((DataType.INT16, DataType.BF16)),
        memory_bytes=memory_bytes,
    )


DEFAULT_PRESET = "atlas-800t-a2"

PRESETS = {
    product.name: product
    for product in (
        _product("atlas-800t-a2", "Atlas 800T A2", 8, "mesh", memory_bytes=64 << 30),
        _product("mesh", "full mesh", MAX_RANKS, "mesh"),
        _product("ring", "ring", MAX_RANKS, "ring"),
    )
}


def topology_of(
    ranks: int | None = None,
    *,
    servers: int | None = None,
    devices: int | None = None,
    preset: str = DEFAULT_PRESET,
) -> Topology:
    """Return a topology of a preset: as few servers as hold `ranks`, or `servers` of `devices`
    each.

    Raises ParameterError for an unknown preset, for numbers below 1, and where both ways are mixed.
    """
    from hccl_py.topology.topology import Topology

    if preset not in PRESETS:
        raise ParameterError(f"Topology {preset!r} is unknown.", did_you_mean(preset, PRESETS))
    product = PRESETS[preset]
    for name, number in (("ranks", ranks), ("servers", servers), ("devices", devices)):
        if number is not None and (isinstance(number, bool) or not isinstance(number, int)):
            raise ParameterError(f"{name} is {number!r}.", f"Give a whole number of {name}.")
        if number is not None and not 1 <= number <= MAX_RANKS:
            raise ParameterError(f"{name} is {number}.", f"Give 1 to {MAX_RANKS} {name}.")
    if servers is None and devices is None:
        ranks = 4 if ranks is None else ranks
        full, rest = divmod(ranks, product.devices_per_server)
        return Topology(product, (product.devices_per_server,) * full + ((rest,) if rest else ()))
    servers = 1 if servers is None else servers
    devices = min(product.devices_per_server, 8) if devices is None else devices
    if servers * devices > MAX_RANKS:
        raise ParameterError(
            f"{servers} servers x {devices} devices are {servers * devices} ranks.",
            f"At most {MAX_RANKS}.",
        )
    if ranks is not None and ranks != servers * devices:
        raise ParameterError(
            f"{servers} servers x {devices} devices are {servers * devices} ranks, not {ranks}.",
            "Give ranks alone, or servers and devices.",
        )
    return Topology(product, (devices,) * servers)
