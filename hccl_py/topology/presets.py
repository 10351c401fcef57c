"""Products.

Sources: HCCL's public documents for what a product's hardware reduces inline, which data types its
ops take and how its servers are built; the documents of aclrtCreateStream for streams; Huawei's
product page for memory (64 GB of HBM per NPU of an Atlas 800T A2); hcomm's documents for what an
Ascend 950 reduces over its links. `ring` and `mesh` are networks
for study: one kind of link, any number of ranks, devices as in Atlas 800T A2 but for their memory,
which has no stated size. Networks that have routes (`torus:4x4`, files) are in `networks/`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product as choices
from typing import Literal

from hccl_py.enums import DataType, ReduceOp

MAX_RANKS = 65536

Reduction = tuple[DataType, ReduceOp]


def _types(*names: str) -> frozenset[DataType]:
    return frozenset(map(DataType, names))


def _reductions(types: frozenset[DataType], *ops: ReduceOp) -> frozenset[Reduction]:
    return frozenset(choices(types, ops))


_NO_PROD = (ReduceOp.SUM, ReduceOp.MAX, ReduceOp.MIN)
_ALL_TYPES = frozenset(DataType)
_BYTE_FLOATS = _types("hif8", "fp8e4m3", "fp8e5m2", "fp8e8m0")
_CLASSIC_TYPES = _ALL_TYPES - _BYTE_FLOATS
"""Types that are copied before the 950: HCCL's check lets int128 through, its documents do not name
it.
"""

_SIX_TYPES = _types("fp32", "fp16", "int8", "int16", "int32", "bf16")


@dataclass(frozen=True)
class UnifiedBus:
    """Answers of an Ascend 950 about its links; by default those of HCCL's system tests.

    `ubx`: a Clos network joins all devices of a server, in the place of meshes of its columns.
    `pcie`: some links of a server are PCIe. `dies`: how the links of a device to its row lie on its
    dies. `lone_clos`: the Clos network of layer 1 joins the devices of a communicator in one
    server, too. `top` is the protocol of the links between superpods. `clos_ports`: the ports
    of a device to the Clos network, by links, the widest first.
    """

    ubx: bool = False
    pcie: bool = False
    dies: Literal["one", "regular", "irregular"] = "one"
    lone_clos: bool = False
    top: Literal["UB_CTP", "UBOE", "UB_RTP"] = "UB_CTP"
    clos_ports: tuple[int, ...] = (8,)

    @property
    def joins_inside(self) -> bool:
        """True if a Clos network joins the devices of a server, too."""
        return self.ubx or self.lone_clos


@dataclass(frozen=True)
class Product:
    """Facts about a product for selection and orchestration.

    `shape` is how the devices of a server are linked: `mesh` (every pair), `ring` (neighbours
    only), `dies` (a switch, and pairs of dies in a package), `8p` (two groups of four), `pcie`,
    `clos` (every pair, and a port of every device to a switch of all servers), `routed` (a network
    whose routes join all ranks).

    `inline` and `rdma_inline` are the reductions that SDMA and RDMA do while they copy,
    `reductions` all that the product's ops take, `copy_types` what the other ops take.

    `modules` is how many groups of devices a host has where HCCS does not join them all: each group
    counts as a server then, as in HCCL, and PCIe joins those of a host.

    `row` is how many devices a row of a server has where these form a grid: a mesh joins those of a
    row and those of a column, and servers of one row are usual. 0: there is no grid.

    `superpod_servers` is how many servers a superpod joins, 0 where there are none. HCCL asks the
    machine for `hccs_ports`, its hccsPortNum, and for `rdma_lite`, whether RDMA work requests are
    cheap; both are here as HCCL's own system tests answer, and so is `bus`, for an Ascend 950.

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
    copy_types: frozenset[DataType] = _CLASSIC_TYPES
    superpod_servers: int = 0
    modules: int = 1
    row: int = 0
    hccs_ports: int = 0
    rdma_lite: bool = False
    notifies: int = 8192
    streams: int = 1984
    contexts: int = 65535
    sdma_bytes: int = 4 << 30
    rdma_bytes: int = 2 << 30
    slice_align: int = 128
    memory_bytes: int | None = None
    bus: UnifiedBus = UnifiedBus()

    def reduces_inline(self, dtype: DataType, op: ReduceOp | None) -> bool:
        """Return True if SDMA copies can reduce this data type with this op on their way."""
        return (dtype, op) in self.inline

    def reduces_over_rdma(self, dtype: DataType, op: ReduceOp | None) -> bool:
        """Return the same for RDMA writes."""
        return (dtype, op) in self.rdma_inline

    @property
    def has_ub(self) -> bool:
        """True if UB joins all ranks, in the place of HCCS and RDMA."""
        return self.shape == "clos"

    @property
    def usual_devices(self) -> int:
        """The devices of a server where a call does not say: one row of a grid."""
        return self.row or self.devices_per_server

    @cached_property
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

_BOX16 = replace(_A2, name="atlas-200t-a2-box16", title="Atlas 200T A2 Box16", modules=2)

_A3 = replace(
    _A2,
    name="atlas-900-a3",
    title="Atlas 900 A3 SuperPoD",
    device="910_93",
    devices_per_server=16,
    shape="dies",
    superpod_servers=48,
    hccs_ports=7,
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
    copy_types=_CLASSIC_TYPES - _types("bf16"),
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
    copy_types=_CLASSIC_TYPES - _types("bf16"),
)

_UB_TYPES = _types("int8", "int16", "int32", "uint8", "uint16", "uint32", "fp16", "bf16", "fp32")

_950_TYPES = _SIX_TYPES | _types("int64", "uint64", "fp64")

_950 = replace(
    _A2,
    name="ascend950",
    title="Ascend 950",
    device="950",
    shape="clos",
    inline=_reductions(_UB_TYPES, *_NO_PROD),
    rdma_inline=frozenset(),
    reductions=_reductions(_950_TYPES, *ReduceOp)
    - _reductions(_types("int16", "bf16"), ReduceOp.PROD),
    copy_types=_ALL_TYPES - _types("int128"),
    devices_per_server=64,
    row=8,
    superpod_servers=1024,
    slice_align=1,
    memory_bytes=None,
)

_UBX = replace(_950, title="Ascend 950 UBX", row=4, bus=UnifiedBus(ubx=True))

_BESIDE = replace(_950, title="Ascend 950 with Clos network", bus=UnifiedBus(lone_clos=True))

_TWO_DIES = replace(_950, title="Ascend 950 on two dies", bus=UnifiedBus(dies="regular"))

_STUDY = replace(_A2, devices_per_server=MAX_RANKS, copy_types=_ALL_TYPES, memory_bytes=None)

ROUTED = replace(_STUDY, name="routed", title="network", shape="routed")
"""The product whose one server is a network with routes."""

JOINED = replace(ROUTED, superpod_servers=MAX_RANKS)
"""The same with several servers, which SDMA joins."""

DEFAULT_PRESET = _A2.name

PRESETS = {
    product.name: product
    for product in (
        _A2,
        _910A,
        _A3,
        _DUO,
        _950,
        _BOX16,
        replace(_STUDY, name="mesh", title="full mesh", shape="mesh"),
        replace(_STUDY, name="ring", title="ring", shape="ring"),
    )
}


@dataclass(frozen=True)
class Cluster:
    """A product, the devices of each of its servers, and how they are joined."""

    product: Product
    servers: tuple[int, ...]
    summary: str


SHAPES = {
    "ascend950-2x8": Cluster(_950, (8, 8), "two servers of 8 devices"),
    "ascend950-4x1": Cluster(_950, (1,) * 4, "four devices that meet on the Clos network alone"),
    "ascend950-8+4": Cluster(_950, (8, 4), "a server of 8 devices and one of 4"),
    "ascend950-clos": Cluster(_BESIDE, (8,), "a server whose devices the Clos network joins, too"),
    "ascend950-two-dies": Cluster(
        _TWO_DIES,
        (8,),
        "a server whose mesh has four links of a device on one die, three on the other",
    ),
    "ascend950-ubx": Cluster(_UBX, (8,), "a UBX server of two boards of four devices"),
    "ascend950-ubx-board": Cluster(_UBX, (4,), "one board of a UBX server"),
}
"""Clusters by name. The first three are the ones on which a contest judged kernels of the CCU."""

SWEPT = tuple(name for name in PRESETS if name != _BOX16.name)
"""The products that sweeps draw from: executors see Box16 as servers of A2."""

SELECTED_FOR = tuple(name for name in SWEPT if name != _950.name)
"""Those of the classic executors, for which HCCL's rules choose among them."""
