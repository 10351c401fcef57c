"""What the decision tables look at."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from hccl_py.algo import parse_algo
from hccl_py.config import Config
from hccl_py.enums import DataType, Mode, ReduceOp
from hccl_py.op_param import OpParam
from hccl_py.operators.parts import exchange_of
from hccl_py.ops import BARRIER_COUNT
from hccl_py.selection.levels import Levels, choose_levels
from hccl_py.selection.shape import TopologyShape
from hccl_py.topology.topology import Topology

__all__ = ["Facts", "gather_facts", "served"]

AIV_BUFFER_MIN = AIV_ACROSS_MOST = 16 << 20
"""The CCL buffers that AIV kernels over several servers need, and the most that they reduce."""

_AIV_REDUCE_TYPES = ("fp32", "fp16", "int8", "int16", "int32", "bf16")
_AIV_REDUCE_OPS = ("sum", "max", "min")


def served(op: OpParam) -> OpParam:
    """Return the call whose tables and tag HCCL uses: for a barrier, its all-reduce."""
    if op.name != "barrier":
        return op
    return replace(
        op, name="all_reduce", count=BARRIER_COUNT, dtype=DataType.FP32, reduce=ReduceOp.SUM
    )


@dataclass(frozen=True)
class Facts:
    """One value per column of the decision tables; sizes in bytes, `bytes` per rank.

    `inline` and `rdma_inline`: SDMA and RDMA can do the reduction while they copy. `deterministic`:
    sums may not depend on the interleaving; `strict`: they are added in rank order. `expansion` is
    where tasks come from: HOST, AI_CPU, AIV. `hccs`: SDMA reaches all ranks of a superpod.
    """

    shape: TopologyShape
    levels: Levels
    op: OpParam
    given: tuple[tuple[str, str], ...]
    ccl_bytes: int
    inline: bool
    rdma_inline: bool
    deterministic: bool
    strict: bool
    expansion: str
    aiv: bool
    hccs: bool
    hccs_ports: int
    duo: bool

    def get(self, name: str) -> Any:
        """Return a fact by name."""
        return getattr(self, name)

    @property
    def ranks(self) -> int:
        """N."""
        return self.shape.ranks

    @property
    def servers(self) -> int:
        """Servers of all superpods."""
        return self.shape.servers

    @property
    def superpods(self) -> int:
        """Superpods; 1 where there are none."""
        return self.shape.superpods

    @property
    def devices(self) -> int:
        """Devices of a server."""
        return self.shape.devices

    @property
    def symmetric(self) -> bool:
        """Whether servers have as many devices, and superpods as many servers."""
        return self.shape.symmetric

    @property
    def level0(self) -> str:
        """The links inside a server."""
        return self.levels.level0

    @property
    def level1(self) -> str:
        """The algorithm between servers."""
        return self.levels.level1

    @property
    def mode(self) -> str:
        """op_base or graph."""
        mode: str = self.op.mode.value
        return mode

    @property
    def dtype(self) -> str:
        """The data type."""
        dtype: str = self.op.dtype.value
        return dtype

    @property
    def reduce(self) -> str:
        """The reduce op, empty where there is none."""
        return "" if self.op.reduce is None else self.op.reduce.spelling

    @property
    def bytes(self) -> int:
        """Bytes of the op's count; of the largest part, where parts differ."""
        return self.op.extent * self.op.unit

    @property
    def total_bytes(self) -> int:
        """Bytes of all ranks' parts."""
        return self.bytes * self.ranks

    @property
    def device_bytes(self) -> int:
        """Bytes per device of a server."""
        return self.bytes // self.devices

    @property
    def direct(self) -> bool:
        """Whether the op runs at once: op-base mode, or tasks that the device makes."""
        return self.op.mode is Mode.OP_BASE or self.unfolded

    @property
    def unfolded(self) -> bool:
        """Whether the device makes the tasks: HCCL's aicpuUnfoldMode."""
        return self.expansion.startswith(("AI_CPU", "AICPU"))

    @property
    def ranks_are_power(self) -> bool:
        """Whether N is a power of two."""
        return _is_power(self.ranks)

    @property
    def servers_are_power(self) -> bool:
        """Whether the number of servers is a power of two."""
        return _is_power(self.servers)

    @property
    def devices_in_fours(self) -> bool:
        """Whether the devices of a server come in fours."""
        return self.devices % 4 == 0

    @property
    def gathered_limit(self) -> int:
        """Bytes of all ranks that the loop for small counts takes; graph mode has no loop."""
        if self.op.mode is Mode.GRAPH:
            return self.total_bytes
        factor = next(factor for factor in (4, 2, 1) if self.ranks % factor == 0)
        return self.ccl_bytes * factor

    @property
    def aiv_reduces(self) -> bool:
        """Whether the vector cores can do the reduction."""
        return self.dtype in _AIV_REDUCE_TYPES and self.reduce in _AIV_REDUCE_OPS

    @property
    def two_cards(self) -> bool:
        """Whether the ranks are two PCIe cards of one host."""
        return self.shape.cards and self.ranks == 2

    @property
    def one_plane(self) -> bool:
        """Whether all ranks lie in one server, or one in each."""
        return self.servers == 1 or self.devices == 1

    @property
    def pairwise(self) -> bool:
        """Whether HCCL_ALGO says level0:NA;level1:pairwise."""
        given = dict(self.given)
        return (given.get("level0"), given.get("level1")) == ("NA", "pairwise")

    @property
    def meshed(self) -> bool:
        """Whether the devices of a server are linked in pairs, whatever HCCL_ALGO says."""
        return self.shape.level0 == "mesh"

    @cached_property
    def exchanged_bytes(self) -> int:
        """The most that a rank of an all-to-all sends or receives, with the gaps before it."""
        if not (self.op.matrix or self.op.counts):
            return self.total_bytes
        found = exchange_of(self.op, self.ranks)
        ends = [
            (found.send_displs + found.sends).max(initial=0),
            (found.recv_displs + found.receives).max(initial=0),
        ]
        return int(max(ends)) * self.op.unit

    @property
    def fits_ccl(self) -> bool:
        """Whether what a rank of an all-to-all sends and what it receives fit the CCL buffers."""
        return self.exchanged_bytes <= self.ccl_bytes


def _fits_aiv(op: OpParam, config: Config) -> bool:
    """Whether vector cores take an all-reduce of several servers, so that it is no pipeline."""
    fits = op.extent * op.unit <= AIV_ACROSS_MOST and config.ccl_bytes >= AIV_BUFFER_MIN
    return op.name == "all_reduce" and fits


def _is_power(number: int) -> bool:
    return number & (number - 1) == 0


def gather_facts(op: OpParam, topology: Topology, config: Config) -> Facts:
    """Collect the facts for one call, on the links that the settings ask for."""
    topology = config.linked(topology)
    product, shape = topology.product, TopologyShape.of(topology)
    given = parse_algo(config.algo, op.name)
    expansion = config.expansion(product, op.name)
    aiv = expansion == "AIV" and op.name != "barrier"
    op = served(op)
    deterministic = config.deterministic != "false"
    inline = product.reduces_inline(op.dtype, op.reduce)
    rdma_inline = product.reduces_over_rdma(op.dtype, op.reduce)
    levels = choose_levels(
        op,
        shape,
        given,
        pipelines=inline
        and rdma_inline
        and not deterministic
        and not (aiv and _fits_aiv(op, config)),
    )
    return Facts(
        shape=shape,
        levels=levels,
        op=op,
        given=tuple(given.items()),
        ccl_bytes=config.ccl_bytes,
        inline=inline,
        rdma_inline=rdma_inline,
        deterministic=deterministic,
        strict=config.deterministic == "strict",
        expansion=expansion,
        aiv=aiv,
        hccs=shape.servers == 1 or topology.inter_hccs,
        hccs_ports=product.hccs_ports,
        duo="duo" in product.name,
    )
