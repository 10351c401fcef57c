"""The columns of the Ascend 950's tables: facts about one call on one rank graph."""

from __future__ import annotations

from dataclasses import dataclass

from hccl_py.call.config import Config
from hccl_py.selection.facts import Facts
from hccl_py.topology.presets import UnifiedBus
from hccl_py.topology.rank_graph import RankGraph

_BASE_RANKS = 8.0
"""DEFAULT_RANK_SIZE, auto_selector_base.h:28: thresholds are for so many ranks."""

BY_COST = {"all_reduce": "AllReduce", "all_gather": "AllGather", "reduce_scatter": "ReduceScatter"}
"""The ops for which a cost table may choose, and their spelling in names of executors."""

_STRICT_TYPES = ("fp16", "fp32", "bf16", "fp64")


def is_by_cost(op: str, config: Config) -> bool:
    """Return True if the cost table chooses for an op."""
    return config.new_selector and op in BY_COST


@dataclass(frozen=True)
class Facts950(Facts):
    """A call's facts, and those of its rank graph and links; `mode` of expansion AIV_ONLY is
    `aiv_only`. `zero_copy_asked`: the user registered memory as symmetric.
    """

    graph: RankGraph
    bus: UnifiedBus
    aiv_only: bool
    zero_copy_asked: bool

    @property
    def net_levels(self) -> int:
        """Network layers that it takes to join all ranks: topoLevelNums."""
        return self.graph.levels

    @property
    def shape0(self) -> str:
        """The shape of layer 0: level0Topo."""
        return self.graph.shape

    @property
    def pcie0(self) -> bool:
        """True if some links of layer 0 are PCIe: level0PcieMix."""
        return self.bus.pcie

    @property
    def one_mesh(self) -> bool:
        """True if a mesh joins all ranks of a server: IsLayerAllConnetedWithTopo(0, 1DMESH)."""
        return self.shape0 == "mesh" or self.mesh_is_clos

    @property
    def mesh_is_clos(self) -> bool:
        """True if layer 0 has a mesh and a Clos network, of the same ranks."""
        return self.shape0 == "mesh+clos" and self.graph.mesh == self.graph.server

    @property
    def mesh_in_clos(self) -> bool:
        """True if they are not the same, and meshes of this size fill the Clos network."""
        mesh, clos = self.graph.mesh, self.graph.server
        return self.shape0 == "mesh+clos" and 1 < mesh < clos and clos % mesh == 0

    @property
    def mesh_dies(self) -> str:
        """The dies that the mesh of layer 0 is linked to, `one` for two ranks: level0MeshType."""
        return self.graph.dies

    @property
    def gcd0(self) -> int:
        """The largest divisor of all servers' ranks; 1 is HCCL's Level1Nhr."""
        return self.graph.divisor

    @property
    def local0(self) -> int:
        """Ranks of the first rank's server: localNetInsSizeOfLayer[0]."""
        return self.graph.server

    @property
    def local1(self) -> int:
        """Ranks of the first rank's superpod: localNetInsSizeOfLayer[1]."""
        return self.graph.pod

    @property
    def frames(self) -> int:
        """Ranks by that divisor, 0 on one level: CalcFrameNum."""
        return self.ranks // self.gcd0 if self.net_levels > 1 else 0

    @property
    def even_layers(self) -> bool:
        """True if servers have as many ranks, and superpods: level0Symmetric, level1Symmetric."""
        return len(set(self.graph.servers)) == len(set(self.graph.pods)) == 1

    @property
    def two_level_net(self) -> bool:
        """True if a Clos network of layer 1 is there for detours: IsTwoLevelNetLayer."""
        return self.graph.layers > 1 and self.local0 > 1

    @property
    def uboe(self) -> bool:
        """True if UBOE joins superpods: level2Uboe."""
        return self.net_levels > 2 and self.bus.top == "UBOE"

    @property
    def ub_rtp(self) -> bool:
        """True if UB_RTP joins superpods: level2UbRtp."""
        return self.net_levels > 2 and self.bus.top == "UB_RTP"

    @property
    def wide(self) -> bool:
        """True for data types of 64 bits: Is64BitDataType."""
        return self.dtype in ("int64", "uint64", "fp64")

    @property
    def special(self) -> bool:
        """True where links do not do the reduction: 64 bits, or a product."""
        return self.wide or self.reduce == "prod"

    @property
    def strict_order(self) -> bool:
        """True if sums have to be in rank order: IsNeedStrictModeForOrderPreserved."""
        sums = self.reduce in ("sum", "prod") and self.dtype in _STRICT_TYPES
        return self.deterministic == "strict" and sums and self.ranks > 2

    @property
    def in_place(self) -> bool:
        """True if input and output overlap."""
        return bool(self.op.in_place)

    @property
    def rank_share(self) -> int:
        """Bytes by ranks, rounded down."""
        return self.bytes // self.ranks

    @property
    def scaled_bytes(self) -> float:
        """Bytes x 8 / ranks, rounded as in HCCL."""
        return self.bytes * (_BASE_RANKS / self.ranks)

    @property
    def pair_bytes(self) -> float:
        """Bytes x 8 / ranks / ranks, rounded as in HCCL."""
        return self.bytes * (_BASE_RANKS / self.ranks / self.ranks)

    @property
    def scaled_pairs(self) -> float:
        """Bytes x (8 / ranks) x (8 / ranks), rounded as in HCCL."""
        return self.bytes * ((_BASE_RANKS / self.ranks) * (_BASE_RANKS / self.ranks))

    @property
    def parts_bytes(self) -> int:
        """Bytes of all ranks' parts together, where these differ."""
        parts = [n for n in self.op.counts if isinstance(n, int)]
        return sum(parts) * self.op.unit if parts else self.total_bytes

    @property
    def rolls_back(self) -> bool:
        """True if vector cores take what the AI CPU could not: IsRollBackAiv."""
        wide = self.dtype == "int64"
        ops = ("all_reduce", "reduce_scatter", "reduce")
        fits = self.op.name.startswith("all_to_all") or (wide and self.op.name in ops)
        return self.pcie0 and self.shape0 == "mesh+clos" and self.graph.server > 8 and fits
