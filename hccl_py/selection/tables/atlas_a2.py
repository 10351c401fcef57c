"""The tables of 910B (Atlas A2). [C]; order-preserving rows [H]."""

from __future__ import annotations

from hccl_py.selection.rules import DecisionTable, refuse, rule
from hccl_py.selection.tables.cells import (
    AIV,
    AIV_LARGEST,
    ANY_ORDER,
    FIXED_ORDER,
    GRAPH,
    INLINE,
    KIB,
    MANY,
    MESH,
    MIB,
    MORE_SERVERS,
    NO_GATHER,
    ONE_SERVER,
    OP_BASE,
    PAIR,
    PIPELINE,
    POINT_TO_POINT,
    RDMA_INLINE,
    RING,
    SINGLE,
    STRICT,
    SYMMETRIC,
    Cell,
    for_family,
    in_rank_order,
)

__all__ = ["TABLE_910B"]

_AIV_BUFFER: Cell = ("ccl_bytes", ">=", 16 * MIB)
_AIV_REDUCE: tuple[Cell, ...] = (AIV, ("aiv_reduces", "==", True), ANY_ORDER, MESH)
_AIV_ACROSS: tuple[Cell, ...] = (
    MESH,
    MORE_SERVERS,
    SYMMETRIC,
    OP_BASE,
    _AIV_BUFFER,
    ("bytes", "<=", 256 * KIB),
    ("total_bytes", "<=", 16 * MIB),
)
_POWER: Cell = ("servers_are_power", "==", True)
_ONE_MESH: tuple[Cell, ...] = (MESH, ONE_SERVER)
_ACROSS: tuple[Cell, ...] = (PIPELINE, MORE_SERVERS, ANY_ORDER, OP_BASE, INLINE, RDMA_INLINE)

_AR_AIV_OP_BASE = (
    rule(
        "AllReduceSmallCountAivRdmaExecutor",
        *_AIV_REDUCE,
        OP_BASE,
        _AIV_BUFFER,
        MORE_SERVERS,
        SYMMETRIC,
        _POWER,
        ("device_bytes", "<=", 190 * KIB),
    ),
    rule(
        "AllReduceMidCountAivRdmaExecutor",
        *_AIV_REDUCE,
        OP_BASE,
        _AIV_BUFFER,
        MORE_SERVERS,
        SYMMETRIC,
        ("bytes", "<=", 16 * MIB),
    ),
    rule(
        "AllReduceMeshOpbaseBigCountAivExecutor",
        *_AIV_REDUCE,
        ONE_SERVER,
        OP_BASE,
        _AIV_BUFFER,
        ("bytes", ">=", 16 * MIB),
    ),
    rule("AllReduceMeshAivExecutor", *_AIV_REDUCE, ONE_SERVER, OP_BASE, _AIV_BUFFER),
)

_AR_AIV_GRAPH = (
    rule(
        "AllReduceSmallCountAivRdmaExecutor",
        *_AIV_REDUCE,
        GRAPH,
        MORE_SERVERS,
        SYMMETRIC,
        _POWER,
        ("device_bytes", "<=", 190 * KIB),
    ),
    rule(
        "AllReduceMidCountAivRdmaExecutor",
        *_AIV_REDUCE,
        GRAPH,
        MORE_SERVERS,
        SYMMETRIC,
        ("bytes", "<=", 16 * MIB),
    ),
    rule("AllReduceMeshAivExecutor", *_AIV_REDUCE, GRAPH, ONE_SERVER),
)

_AR_PAIR = (
    rule(
        "AllReduceMeshSmallCountExecutor",
        PAIR,
        *_ONE_MESH,
        INLINE,
        OP_BASE,
        ("bytes", "<=", 256 * KIB),
    ),
    rule("AllReduceMeshOpbaseLoopExecutor", PAIR, *_ONE_MESH, INLINE, OP_BASE),
    rule("AllReduceMeshSmallCountExecutor", PAIR, *_ONE_MESH, GRAPH, ("bytes", "<=", 64 * KIB)),
    rule("AllReduceMeshOneshotLoopExecutor", ("two_cards", "==", True), OP_BASE, INLINE),
    rule("AllReduceMeshOpbasePipelineExecutor", PAIR, *_ACROSS),
    rule("AllReduceMeshExecutor", PAIR, MESH),
    rule("AllReduceRingExecutor", PAIR, RING),
    rule("AllReduceRingExecutor", ("two_cards", "==", True)),
)

_AR_MANY = (
    rule("AllReduceMeshOpbasePipelineExecutor", MANY, MESH, *_ACROSS),
    rule(
        "AllReduceMeshSmallCountExecutor",
        MANY,
        *_ONE_MESH,
        ANY_ORDER,
        OP_BASE,
        ("bytes", "<=", 256 * KIB),
    ),
    rule("AllReduceMeshOpbaseLoopExecutor", MANY, *_ONE_MESH, ANY_ORDER, OP_BASE),
    rule(
        "AllReduceMeshSmallCountExecutor",
        MANY,
        *_ONE_MESH,
        FIXED_ORDER,
        GRAPH,
        ("bytes", "<=", 64 * KIB),
    ),
    rule(
        "AllReduceMeshSmallCountExecutor",
        MANY,
        *_ONE_MESH,
        FIXED_ORDER,
        OP_BASE,
        ("bytes", "<=", 128 * KIB),
    ),
    rule(
        "AllReduceMeshMidCountLoopExecutor",
        MANY,
        *_ONE_MESH,
        FIXED_ORDER,
        GRAPH,
        ("devices", "==", 8),
        ("bytes", "<=", 4 * MIB),
    ),
    rule(
        "AllReduceMeshMidCountLoopExecutor",
        MANY,
        *_ONE_MESH,
        FIXED_ORDER,
        OP_BASE,
        ("devices", "==", 8),
    ),
    rule("AllReduceMeshOneshotLoopExecutor", MANY, *_ONE_MESH, FIXED_ORDER),
    rule("AllReduceMeshExecutor", MANY, MESH),
)

_ALL_GATHER = (
    rule("AllGatherSingleExecutor", SINGLE),
    rule(
        "AllGatherMeshAivSmallCountExecutor", AIV, *_ONE_MESH, OP_BASE, ("bytes", "<=", 700 * KIB)
    ),
    rule("AllGatherMeshAivExecutor", AIV, *_ONE_MESH, AIV_LARGEST),
    rule("AllGatherAivRdmaExecutor", AIV, *_AIV_ACROSS, _POWER),
    rule("AllGatherAivRdmaExecutor", AIV, *_AIV_ACROSS, ("bytes", "<=", 128 * KIB)),
    rule("AllGatherMeshOpbaseExecutor", MESH, OP_BASE, ONE_SERVER),
    rule("AllGatherMeshOpbasePipelineExecutor", MESH, OP_BASE, MORE_SERVERS, PIPELINE),
    rule("AllGatherMeshGraphExecutor", MESH, GRAPH, ("bytes", "<=", MIB)),
    rule("AllGatherMeshExecutor", MESH),
    rule("AllGatherRingExecutor", RING),
    rule("AllGatherComm"),
)

_REDUCE_SCATTER = (
    rule("ReduceScatterSingleExecutor", SINGLE),
    *in_rank_order("ReduceScatterOrderPreservedExecutor", STRICT),
    rule("ReduceScatterAivRdmaExecutor", *_AIV_REDUCE, *_AIV_ACROSS, _POWER),
    rule("ReduceScatterAivRdmaExecutor", *_AIV_REDUCE, *_AIV_ACROSS, ("bytes", "<=", 128 * KIB)),
    rule(
        "ReduceScatterMeshAivSmallCountExecutor",
        *_AIV_REDUCE,
        ONE_SERVER,
        OP_BASE,
        ("bytes", "<=", 2 * MIB),
    ),
    rule("ReduceScatterMeshAivExecutor", *_AIV_REDUCE, ONE_SERVER, AIV_LARGEST),
    rule("ReduceScatterDeterExecutor", *_ONE_MESH, OP_BASE, INLINE, FIXED_ORDER),
    rule("ReduceScatterMeshDmaEliminationExecutor", *_ONE_MESH, OP_BASE, INLINE),
    rule("ReduceScatterMeshOpbasePipelineExecutor", MESH, *_ACROSS),
    rule("ReduceScatterDeterExecutor", *_ONE_MESH, GRAPH, INLINE, FIXED_ORDER, MANY),
    rule("ReduceScatterMeshGraphExecutor", MESH, GRAPH, ("bytes", "<=", MIB)),
    rule("ReduceScatterMeshExecutor", MESH),
    rule("ReduceScatterRingExecutor", RING),
    rule("ReduceScatterComm"),
)

_ALL_TO_ALL = for_family(
    rule("RunAlltoAllSingleExecutor", SINGLE),
    rule("AlltoAllMeshAivExecutor", AIV, *_ONE_MESH, ("bytes", "<=", 512 * KIB)),
    rule(
        "RunAlltoAllDirectFullmesh",
        *_ONE_MESH,
        OP_BASE,
        ("fits_ccl", "==", True),
    ),
    rule(
        "RunAlltoAllVTwoLevelPipeline",
        PIPELINE,
        MORE_SERVERS,
        SYMMETRIC,
        OP_BASE,
        ("devices", ">", 1),
        ("ccl_bytes", ">=", 80 * MIB),
    ),
    rule("RunAlltoAllVFullMesh", ("pairwise", "==", True)),
    rule("RunAlltoAllVFullMesh", ("one_plane", "==", True)),
    rule("RunAlltoAllVFullMesh", ("ranks", "<=", 2)),
    rule("RunAlltoAllVFullMesh", ("symmetric", "==", False)),
    rule("RunAlltoAllVStaged"),
)

_V_OPS = {
    "all_gather_v": (
        refuse("AllGatherV stays within one module", MORE_SERVERS),
        refuse("AllGatherV needs the module's devices as a mesh", ("meshed", "==", False)),
        rule(
            "AllGatherVMeshAivSmallCountExecutor",
            AIV,
            OP_BASE,
            ("bytes", "<=", 700 * KIB),
        ),
        rule("AllGatherVMeshAivExecutor", AIV, OP_BASE, AIV_LARGEST),
        rule("AllGatherVMeshOpbaseExecutor", OP_BASE),
        rule("AllGatherVMeshExecutor"),
    ),
    "reduce_scatter_v": (
        refuse("ReduceScatterV stays within one module", MORE_SERVERS),
        refuse("ReduceScatterV needs the module's devices as a mesh", ("meshed", "==", False)),
        refuse("ReduceScatterV needs links that can reduce", ("inline", "==", False)),
        rule(
            "ReduceScatterVMeshAivSmallCountExecutor",
            *_AIV_REDUCE,
            OP_BASE,
            ("bytes", "<=", 190 * KIB),
        ),
        rule("ReduceScatterVAIVBigCountExecutor", *_AIV_REDUCE, OP_BASE, AIV_LARGEST),
        rule("ReduceScatterVMeshOpbaseExecutor", OP_BASE),
        rule("ReduceScatterVMeshExecutor"),
    ),
}

_ROOTED = {
    "broadcast": (
        rule("BroadCastMeshExecutor", MESH),
        rule("BroadCastRingExecutor", RING),
        rule("BroadCastComm"),
    ),
    "reduce": (
        rule("ReduceSingleExecutor", SINGLE),
        rule("ReduceMeshExecutor", MESH),
        rule("ReduceRingPlusHd", RING),
        rule("ReduceComm"),
    ),
    "scatter": (
        rule("ScatterSingleExecutor", SINGLE),
        rule("ScatterCommExecutor", ("symmetric", "==", False)),
        rule("ScatterMeshExecutor", MESH),
        rule("ScatterRingExecutor", RING),
        rule("ScatterCommExecutor"),
    ),
}

TABLE_910B = DecisionTable(
    "classic-910B/1",
    {
        "all_reduce": (
            rule("AllReduceSingleExecutor", SINGLE, ("direct", "==", True)),
            *in_rank_order("AllReduceOrderPreservedExecutor", STRICT),
            *_AR_AIV_OP_BASE,
            *_AR_AIV_GRAPH,
            *_AR_PAIR,
            *_AR_MANY,
            rule("AllReduceComm"),
        ),
        "all_gather": _ALL_GATHER,
        "reduce_scatter": _REDUCE_SCATTER,
        **_ALL_TO_ALL,
        **_V_OPS,
        **_ROOTED,
        **NO_GATHER,
        **POINT_TO_POINT,
    },
)
