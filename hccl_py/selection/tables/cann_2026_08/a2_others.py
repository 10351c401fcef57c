"""The tables of 910B (Atlas A2): what does not add, and the reductions by counts and to a root."""

from __future__ import annotations

from hccl_py.call.ops import ALL_TO_ALL
from hccl_py.errors import HcclResult
from hccl_py.selection.rules import Cell, Rule
from hccl_py.selection.tables.cann_2026_08.shared_rows import (
    AG_SINGLE,
    POINT_TO_POINT,
    RE_SINGLE,
    SC_SINGLE,
    STAGED,
)
from hccl_py.selection.tables.cells import (
    A2A,
    AG,
    AGV,
    AIV,
    AIV_LARGEST,
    ANY_ORDER,
    BC,
    EVEN,
    FIXED_ORDER,
    GRAPH,
    INLINE,
    KIB,
    MESH,
    MIB,
    NO_GATHER,
    ONE_MESH,
    OP_BASE,
    PIPELINE,
    RDMA_INLINE,
    RE,
    RING,
    RSV,
    SC,
    SEVERAL,
    SINGLE,
    UNEVEN,
    at_most,
    exchange,
)

_BUFFER: Cell = ("ccl_bytes", ">=", 16 * MIB)
_AIV_COPY: tuple[Cell, ...] = (AIV, ("aiv_copies", "==", True))
_AIV_ACROSS: tuple[Cell, ...] = (
    *(*_AIV_COPY, MESH, SEVERAL, EVEN, OP_BASE, _BUFFER),
    *(at_most(256 * KIB), ("total_bytes", "<=", 16 * MIB)),
)
_ONE_RING: Cell = ("level0", "==", "ring")
_PIPED: tuple[Cell, ...] = (GRAPH, ("modules", ">", 1), ("devices", ">", 1))

_ALL_GATHER = (
    AG_SINGLE,
    AG.take(
        "AllGatherMeshAivSmallCountExecutor",
        "138-144",
        *(*_AIV_COPY, ONE_MESH, OP_BASE, at_most(700 * KIB)),
        early=True,
    ),
    AG.take("AllGatherMeshAivExecutor", "138-149", *_AIV_COPY, ONE_MESH, AIV_LARGEST, early=True),
    AG.refuse(
        "level1:AHC needs level0:null on 910B",
        "161-165",
        *(EVEN, ("joined", "==", True), ("level0", "!=", "null")),
        result=HcclResult.E_PARA,
    ),
    AG.take("AllGatherAivRdmaExecutor", "187-201", *_AIV_ACROSS, ("servers_are_power", "==", True)),
    AG.take("AllGatherAivRdmaExecutor", "187-201", *_AIV_ACROSS, at_most(128 * KIB)),
    AG.take("AllGatherMeshOpbaseExecutor", "202-205", MESH, OP_BASE, ONE_MESH),
    AG.take("AllGatherMeshOpbasePipelineExecutor", "206-208", MESH, OP_BASE, SEVERAL, PIPELINE),
    AG.take("AllGatherMeshGraphPipelineExecutor", "211-215", MESH, *_PIPED, ("bytes", ">", MIB)),
    AG.take("AllGatherMeshGraphPipelineExecutor", "211-215", MESH, *_PIPED, ("modules", "<=", 4)),
    AG.take("AllGatherMeshExecutor", "216-218", MESH, OP_BASE),
    AG.take("AllGatherMeshExecutor", "216-218", MESH, GRAPH, ("bytes", ">", MIB)),
    AG.take("AllGatherMeshGraphExecutor", "219-221", MESH, GRAPH),
    AG.take("AllGatherRingExecutor", "223-224", _ONE_RING),
    AG.take("AllGatherComm", "225-227"),
)

_ALL_GATHER_V = (
    AGV.take(
        "AllGatherVMeshAivSmallCountExecutor",
        "143-148",
        *(*_AIV_COPY, ONE_MESH, OP_BASE, at_most(700 * KIB)),
    ),
    AGV.take("AllGatherVMeshAivExecutor", "143-148", *_AIV_COPY, ONE_MESH, OP_BASE, AIV_LARGEST),
    AGV.take("AllGatherVMeshOpbasePipelineExecutor", "149-150", OP_BASE, PIPELINE, SEVERAL),
    AGV.take("AllGatherVMeshExecutor", "151-153", OP_BASE),
    AGV.take("AllGatherVMeshGraphExecutor", "155-156", ONE_MESH),
    AGV.take(
        "AllGatherVMeshGraphPipelineExecutor", "157-161", ("devices", ">", 1), ("bytes", ">", MIB)
    ),
    AGV.take(
        "AllGatherVMeshGraphPipelineExecutor", "157-161", ("devices", ">", 1), ("modules", "<=", 4)
    ),
    AGV.take("AllGatherVMeshExecutor", "162-164"),
)

_RSV_KEEPS = ("ring", "NB", "NHR")
_AIV_REDUCE: tuple[Cell, ...] = (AIV, ("aiv_reduces", "==", True), ANY_ORDER, ONE_MESH, OP_BASE)

_REDUCE_SCATTER_V = (
    RSV.refuse(
        "ReduceScatterV needs servers with as many devices", "143-147", GRAPH, SEVERAL, UNEVEN
    ),
    RSV.take(
        "ReduceScatterVDeterExecutor", "129-141", GRAPH, SEVERAL, level1="NHR", keeps=_RSV_KEEPS
    ),
    RSV.take(
        "ReduceScatterVDeterExecutor",
        "151-162",
        *(MESH, EVEN, FIXED_ORDER, ("dtype", "in", ("fp16", "fp32", "bf16"))),
    ),
    RSV.take(
        "ReduceScatterVMeshOpbasePipelineExecutor",
        "177-186",
        *(OP_BASE, PIPELINE, ("contexts_fit", "==", True), ANY_ORDER),
        *(MESH, SEVERAL, INLINE, RDMA_INLINE),
    ),
    RSV.take("ReduceScatterVMeshAivSmallCountExecutor", "194-207", *_AIV_REDUCE, at_most(2 * MIB)),
    RSV.take("ReduceScatterVAIVBigCountExecutor", "194-205", *_AIV_REDUCE, AIV_LARGEST),
    RSV.take(
        "ReduceScatterVMeshOpbaseExecutor",
        "209-222",
        *(OP_BASE, INLINE, ("level0", "==", "whole_ring")),
        level1="NHR",
    ),
    RSV.take(
        "ReduceScatterVMeshOpbaseExecutor",
        "209-222",
        *(OP_BASE, INLINE),
        level1="NHR",
        keeps=_RSV_KEEPS,
    ),
    RSV.take("ReduceScatterVMeshExecutor", "223-226", INLINE),
    RSV.refuse("ReduceScatterV needs links that can reduce", "227-230"),
)

_AIV_EXCHANGE: tuple[Cell, ...] = (*_AIV_COPY, ("ranks", ">", 1))
_EXCHANGE_BUFFER: Cell = ("ccl_bytes", ">=", 8 * MIB)
_PIPELINED: tuple[Cell, ...] = (
    *(("level1", "in", ("pipeline", "ring", "H-D_R")), ("devices", ">", 1), OP_BASE),
    *(("modules", ">", 1), EVEN, ("ccl_bytes", ">=", 80 * MIB)),
)


def _exchanges(op: str) -> tuple[Rule, ...]:
    """Return the rows of one op of the family."""
    across = (*_AIV_EXCHANGE, SEVERAL, OP_BASE, _EXCHANGE_BUFFER, EVEN, ("modules", "<=", 8))
    fitting = (*across, at_most(190 * KIB), ("fits_ccl", "==", True))
    staged = "AlltoAllStagedAIVRdmaExecutor"
    exceeds: tuple[Cell, ...] = () if op == "all_to_all_v" else (("exceeds_ccl", "==", True),)
    uniform = op == "all_to_all"
    continuous = A2A.take(
        "RunAlltoAllVContinuousPipeline",
        "726-751",
        *(*_PIPELINED, ("pairwise", "==", False)),
        level1="pipeline",
    )
    return (
        exchange(
            "AlltoAllMeshAivExecutor",
            "597-630",
            *(*_AIV_EXCHANGE, MESH, ONE_MESH, OP_BASE, _EXCHANGE_BUFFER),
        ),
        exchange("AlltoAllMeshAivExecutor", "597-630", *_AIV_EXCHANGE, MESH, ONE_MESH, GRAPH),
        *((exchange(staged, "603-616", *fitting, MESH),) if uniform else ()),
        *((exchange(staged, "603-616", *fitting, ("devices", "==", 1)),) if uniform else ()),
        exchange(
            "RunAlltoAllSingleExecutor", "263-266", SINGLE, OP_BASE, ("unfolded", "==", False)
        ),
        exchange("RunAlltoAllDirectFullmesh", "273-284", OP_BASE, ONE_MESH, *exceeds),
        *((continuous,) if op == "all_to_all_v" else ()),
        A2A.take(
            "RunAlltoAllVTwoLevelPipeline",
            "534-560",
            *(*_PIPELINED, ("contexts_fit", "==", True)),
            level1="pipeline",
        ),
        exchange("RunAlltoAllVFullMesh", "293-297", ("pairwise", "==", True)),
        exchange("RunAlltoAllVFullMesh", "293-297", ("one_plane", "==", True)),
        exchange("RunAlltoAllVFullMesh", "293-297", ("ranks", "<=", 2)),
        exchange("RunAlltoAllVFullMesh", "293-297", UNEVEN),
        *STAGED,
    )


_ROOTED = {
    "broadcast": (
        BC.take(
            "BroadcastMeshAivExecutor",
            "162-167",
            *(*_AIV_COPY, ONE_MESH, OP_BASE, _BUFFER, at_most(4096 * MIB)),
        ),
        BC.take("BroadCastMeshExecutor", "168-169", MESH),
        BC.take("BroadCastRingExecutor", "172-173", RING),
        BC.take("BroadCastComm", "174-176"),
    ),
    "reduce": (
        RE_SINGLE,
        RE.take("ReduceMeshExecutor", "117-122", MESH),
        RE.take("ReduceRingPlusHd", "119-124", _ONE_RING),
        RE.take("ReduceComm", "125-127"),
    ),
    "scatter": (
        SC_SINGLE,
        SC.take("ScatterCommExecutor", "86-87", UNEVEN),
        SC.take("ScatterMeshExecutor", "88-89", MESH),
        SC.take("ScatterRingExecutor", "90-95", RING),
        SC.take("ScatterCommExecutor", "96-98"),
    ),
}

OTHERS: dict[str, tuple[Rule, ...]] = {
    "all_gather": _ALL_GATHER,
    "all_gather_v": _ALL_GATHER_V,
    "reduce_scatter_v": _REDUCE_SCATTER_V,
    **{op: _exchanges(op) for op in ALL_TO_ALL},
    **_ROOTED,
    **NO_GATHER,
    **POINT_TO_POINT,
}
