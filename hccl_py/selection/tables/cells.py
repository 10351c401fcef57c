"""Cells and rows that several tables share."""

from __future__ import annotations

from hccl_py.call.ops import ALL_TO_ALL
from hccl_py.selection.rules import Cell, Multiple, Rule, refuse

KIB, MIB = 1 << 10, 1 << 20

SINGLE: Cell = ("ranks", "==", 1)
MESH: Cell = ("level0", "in", ("mesh", "4p_mesh", "2p_mesh"))
RING: Cell = ("level0", "in", ("ring", "8p_ring"))
OP_BASE: Cell = ("mode", "==", "op_base")
GRAPH: Cell = ("mode", "==", "graph")
ONE_SERVER: Cell = ("servers", "==", 1)
MORE_SERVERS: Cell = ("servers", ">", 1)
ONE_POD: Cell = ("superpods", "==", 1)
MORE_PODS: Cell = ("superpods", ">", 1)
ONE_MESH: Cell = ("single_mesh", "==", True)
SEVERAL: Cell = ("single_mesh", "==", False)
UNEVEN: Cell = ("uneven_servers", "==", True)
EVEN: Cell = ("uneven_servers", "==", False)
UNEVEN_PODS: Cell = ("uneven_pods", "==", True)
PAIR: Cell = ("devices", "<=", 2)
MANY: Cell = ("devices", ">", 2)
INLINE: Cell = ("inline", "==", True)
RDMA_INLINE: Cell = ("rdma_inline", "==", True)
ANY_ORDER: Cell = ("deterministic", "==", "false")
FIXED_ORDER: Cell = ("deterministic", "!=", "false")
PAIRWISE_INSIDE: Cell = ("pairwise_inside", "==", True)
PIPELINE: Cell = ("level1", "==", "pipeline")
AIV: Cell = ("aiv", "==", True)
HCCS: Cell = ("inter_hccs", "==", True)
NO_HCCS: Cell = ("inter_hccs", "==", False)

AIV_LARGEST: Cell = ("bytes", "<=", 256 * MIB)
"""Vector cores take no more."""

KEEP_RINGS = ("ring", "NB")
"""What A3's hierarchical executors run between servers but NHR."""

KEEP_ALL_BUT_HD = ("ring", "NHR", "NHR_V1", "NB", "AHC", "AHC_BROKE", "pipeline")

NO_GATHER: dict[str, tuple[Rule, ...]] = {
    "gather": (refuse("gather is no op of HCCL's API, and no executor is registered for it"),)
}


def at_most(size: int) -> Cell:
    """Return the cell for calls of at most so many bytes."""
    return ("bytes", "<=", size)


def per(size: int, fact: str) -> Cell:
    """Return the cell for calls of at most so many bytes per rank, device, ..."""
    return ("bytes", "<=", Multiple(size, fact))


def for_family(*rows: Rule) -> dict[str, tuple[Rule, ...]]:
    """Return the same rows for all_to_all, all_to_all_v and all_to_all_vc."""
    return dict.fromkeys(ALL_TO_ALL, rows)


UNCOPIED = ("RunAlltoAllDirectFullmesh",)
"""All-to-all executors whose tag does not say whether data fits the CCL buffers."""

CONTINUOUS = ("RunAlltoAllVContinuousPipeline", "RunAlltoAllVPipelineFor91093")
"""All-to-all executors that HCCL takes before it looks whether data fits the CCL buffers."""

BLOCK_RINGS = (
    "AllReduceARSFor91093Executor",
    "AllGatherARSFor91093Executor",
    "ReduceScatterARSFor91093Executor",
)
"""Executors whose tag says how many ranks a ring has."""
