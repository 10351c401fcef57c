"""Cells and rows that several tables share, and the files of HCCL that rows come from."""

from __future__ import annotations

from hccl_py.call.ops import ALL_TO_ALL
from hccl_py.selection.rules import Cell, Multiple, OperatorFile, Rule, refuse

KIB, MIB = 1 << 10, 1 << 20

OPERATORS = "algorithm/impl/operator/"

AR = OperatorFile(OPERATORS + "all_reduce_operator.cc")
AG = OperatorFile(OPERATORS + "all_gather_operator.cc")
AGV = OperatorFile(OPERATORS + "all_gather_v_operator.cc")
RS = OperatorFile(OPERATORS + "reduce_scatter_operator.cc")
RSV = OperatorFile(OPERATORS + "reduce_scatter_v_operator.cc")
BC = OperatorFile(OPERATORS + "broadcast_operator.cc")
RE = OperatorFile(OPERATORS + "reduce_operator.cc")
SC = OperatorFile(OPERATORS + "scatter_operator.cc")
A2A = OperatorFile(OPERATORS + "alltoall_operator.cc")
SEND = OperatorFile(OPERATORS + "send_operator.cc")
BATCH = OperatorFile(OPERATORS + "batchsendrecv_operator.cc")
STAGED_EXECUTOR = OperatorFile(
    "algorithm/impl/coll_executor/coll_all_to_all/coll_all_to_all_v_staged_executor.cc"
)

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
"""The largest data of vector cores."""

KEEP_RINGS = ("ring", "NB")
"""Algorithms between servers of A3's hierarchical executors, besides NHR."""

KEEP_ALL_BUT_HD = ("ring", "NHR", "NHR_V1", "NB", "AHC", "AHC_BROKE", "pipeline")

NO_GATHER: dict[str, tuple[Rule, ...]] = {
    "gather": (refuse("gather is no op of HCCL's API, and no executor is registered for it"),)
}


def at_most(size: int) -> Cell:
    """Return the cell for calls of at most `size` bytes."""
    return ("bytes", "<=", size)


def per(size: int, fact: str) -> Cell:
    """Return the cell for calls of at most `size` bytes per rank, device, ..."""
    return ("bytes", "<=", Multiple(size, fact))


def by_level0(file: OperatorFile, at: str, mesh: str, ring: str, flat: str) -> tuple[Rule, ...]:
    """Return the rows of executors for a mesh, a ring, and anything else inside a server."""
    return file.take(mesh, at, MESH), file.take(ring, at, RING), file.take(flat, at)


def exchange(executor: str, at: str, *when: Cell) -> Rule:
    """Return a row of all-to-all that goes pairwise between servers."""
    return A2A.take(executor, at, *when, level1="pairwise")


def for_family(*rows: Rule) -> dict[str, tuple[Rule, ...]]:
    """Return the same rows for all_to_all, all_to_all_v and all_to_all_vc."""
    return dict.fromkeys(ALL_TO_ALL, rows)


UNTAGGED = tuple(
    f"{op}SingleExecutor" for op in ("AllReduce", "AllGather", "ReduceScatter", "Reduce", "Scatter")
)
"""Executors of one rank that HCCL takes before it makes a tag."""

UNCOPIED = (
    "RunAlltoAllSingleExecutor",
    "RunAlltoAllDirectFullmesh",
    "RunAlltoAllVContinuousPipeline",
    "RunAlltoAllVPipelineFor91093",
)
"""All-to-all executors that HCCL takes before it compares data with the CCL buffers."""

BLOCK_RINGS = (
    "AllReduceARSFor91093Executor",
    "AllGatherARSFor91093Executor",
    "ReduceScatterARSFor91093Executor",
)
"""Executors whose tag has the number of ranks in a ring."""
