"""The columns of the decision tables: facts about one call on one topology."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from hccl_py.call.op_param import OpParam
from hccl_py.call.ops import ALL_TO_ALL
from hccl_py.enums import Mode
from hccl_py.operators.parts import exchange_of
from hccl_py.selection.levels import AHC, AHC_BROKE, Levels
from hccl_py.selection.shape import TopologyShape
from hccl_py.topology.ring_sizes import ring_size

_REDUCED_TYPES = ("fp32", "fp16", "int8", "int16", "int32", "bf16")
_REDUCED_OPS = ("sum", "max", "min")
_AIV_COPY_TYPES = (*_REDUCED_TYPES, "uint8", "uint16", "uint32", "int64", "uint64", "fp64")
"""What RDMA and vector cores reduce, and what these copy (`platform/common/device_capacity.cc`)."""

_CORES, _MOST_CORES_EACH = 48, 4
_BLOCK = 128


@dataclass(frozen=True)
class Facts(TopologyShape):
    """A topology's shape, and one value per further column of the decision tables; sizes in bytes,
    `bytes` per rank.

    `given` are HCCL_ALGO's words for the op, `given_all` those for ops that it does not name.
    `inline`: SDMA can do the reduction while it copies. `deterministic` is HCCL_DETERMINISTIC:
    false, true, or strict, which adds in rank order. `unfolded`: the AI CPU makes the tasks, HCCL's
    aicpuUnfoldMode. `inter_hccs`: SDMA reaches all ranks of a superpod.
    `contexts_fit`: a pipeline would not take more FFTS contexts than there are. `zero_copy`: peers
    reach the user's memory, which HCCL makes use of.
    """

    levels: Levels
    op: OpParam
    given: tuple[tuple[str, str], ...]
    given_all: tuple[tuple[str, str], ...]
    ccl_bytes: int
    inline: bool
    deterministic: str
    unfolded: bool
    aiv: bool
    barrier: bool
    inter_hccs: bool
    hccs_ports: int
    contexts_fit: bool
    zero_copy: bool

    @property
    def symmetric(self) -> bool:
        """True if all servers have as many devices, and all superpods as many servers."""
        return not (self.uneven_servers or self.uneven_pods)

    @property
    def back_to_back(self) -> bool:
        """True for two servers that are a superpod each."""
        return (self.superpods, self.servers) == (2, 2)

    @property
    def level0(self) -> str:
        """The links inside a server, as HCCL takes them."""
        return self.levels.level0

    @property
    def level1(self) -> str:
        """The algorithm between servers."""
        return self.levels.level1

    @property
    def joined(self) -> bool:
        """True if AHC is the algorithm between servers."""
        return self.level1 in (AHC, AHC_BROKE)

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
    def count(self) -> int:
        """Elements of the op's count; of the largest part, where parts differ."""
        return self.op.extent

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
        """Bytes per device of a server, rounded down."""
        return self.bytes // self.devices

    @property
    def device_total(self) -> int:
        """Bytes of the parts of a server's devices."""
        return self.bytes * self.devices

    @property
    def server_bytes(self) -> int:
        """Bytes times servers."""
        return self.bytes * self.servers

    @property
    def host_made(self) -> bool:
        """True if tasks are made outside a graph, or by the host."""
        return self.op.mode is Mode.OP_BASE or not self.unfolded

    @property
    def ranks_are_power(self) -> bool:
        """True if the number of ranks is a power of two."""
        return _is_power(self.ranks)

    @property
    def servers_are_power(self) -> bool:
        """True if the number of servers is a power of two."""
        return _is_power(self.servers)

    @property
    def devices_in_fours(self) -> bool:
        """True if the devices of a server are a multiple of four."""
        return self.devices % 4 == 0

    @property
    def gathered_limit(self) -> int:
        """Bytes of all ranks that the gather for small counts takes; graph mode has no limit."""
        if self.op.mode is Mode.GRAPH:
            return self.total_bytes
        return self.ccl_bytes * (2 if self.devices % 2 == 0 else 1)

    @property
    def scattered_limit(self) -> int:
        """Bytes of all ranks that the reduction for small counts takes in the place of a copy."""
        if self.op.mode is Mode.GRAPH or not self.ranks_are_power:
            return self.total_bytes
        return self.ccl_bytes * 2

    @property
    def pipeline_block(self) -> int:
        """Bytes of a rank in one round of A3's pipelines, half a CCL buffer cut to blocks."""
        return self.ccl_bytes // 2 // self.ranks // _BLOCK * _BLOCK

    @property
    def cores_each(self) -> int:
        """Vector cores of a rank's kernel for every peer."""
        return min(_CORES // self.ranks, _MOST_CORES_EACH)

    @property
    def rdma_inline(self) -> bool:
        """True if HCCL takes RDMA for able to do the reduction while it copies."""
        return reduces_over_rdma(self.op)

    @property
    def aiv_reduces(self) -> bool:
        """True if the vector cores can do the reduction."""
        return reduces_over_rdma(self.op)

    @property
    def aiv_copies(self) -> bool:
        """True if the vector cores can copy the data type."""
        return self.dtype in _AIV_COPY_TYPES

    @property
    def two_cards(self) -> bool:
        """True if the ranks are two PCIe cards of one host: Is2U2PInfer."""
        return self.cards and self.ranks == self.devices == 2

    @property
    def pod_ranks(self) -> int:
        """Ranks of a superpod, rounded down."""
        return self.ranks // self.superpods

    def ring_size(self, level1: str) -> int:
        """Return the ranks of a block's ring with an algorithm between blocks."""
        return ring_size(self.op, self.pod_ranks, level1, whole_packages=self.whole_packages)

    @property
    def given_level2(self) -> str:
        """HCCL_ALGO's word for level2; empty where it has none."""
        return dict(self.given).get("level2", "")

    @property
    def pairwise(self) -> bool:
        """True if HCCL_ALGO is level0:NA;level1:pairwise."""
        given = dict(self.given)
        return (given.get("level0"), given.get("level1")) == ("NA", "pairwise")

    @property
    def pairwise_inside(self) -> bool:
        """True if HCCL_ALGO is level0:pairwise;level1:pairwise for all ops: the exchange in two
        steps does not look at the setting for all-to-all.
        """
        given = dict(self.given_all)
        return given.get("level0") == given.get("level1") == "pairwise"

    @cached_property
    def exchanged_bytes(self) -> int:
        """The most bytes that a rank of an all-to-all sends or receives, with the gaps before."""
        if not (self.op.matrix or self.op.counts):
            return self.total_bytes
        found = exchange_of(self.op, self.ranks)
        ends = [
            (found.send_displs + found.sends).max(initial=0),
            (found.recv_displs + found.receives).max(initial=0),
        ]
        return int(max(ends)) * self.op.unit

    @property
    def in_pieces(self) -> bool:
        """True if as many parts of an all-to-all as there are ranks, each as large as the largest,
        do not fit a CCL buffer.
        """
        is_exchange = self.op.name in ALL_TO_ALL
        return is_exchange and max(self.exchanged_bytes, self.total_bytes) > self.ccl_bytes

    @property
    def fits_ccl(self) -> bool:
        """True if the data that any rank of an all-to-all sends or receives fits a CCL buffer."""
        return self.exchanged_bytes <= self.ccl_bytes

    @cached_property
    def exceeds_ccl(self) -> bool:
        """True if every rank of an all-to-all sends and receives more than a CCL buffer holds."""
        if not (self.op.matrix or self.op.counts):
            return self.total_bytes > self.ccl_bytes
        found = exchange_of(self.op, self.ranks)
        least = min(found.sends.sum(axis=1).min(), found.receives.sum(axis=1).min())
        return int(least) * self.op.unit > self.ccl_bytes


def reduces_over_rdma(op: OpParam) -> bool:
    """Return HCCL's answer whether RDMA does a reduction while it copies: it does not ask for the
    device, and takes floating-point overflow for infinite (IsSupportRDMAReduce).
    """
    reduce = op.reduce
    return (
        op.dtype.value in _REDUCED_TYPES
        and reduce is not None
        and (reduce.spelling in _REDUCED_OPS)
    )


def _is_power(number: int) -> bool:
    return number & (number - 1) == 0
