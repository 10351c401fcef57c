"""The tables of 910B (Atlas A2)."""

from __future__ import annotations

from hccl_py.call.ops import ALL_TO_ALL
from hccl_py.errors import HcclResult
from hccl_py.selection.rules import Cell, DecisionTable, Rule
from hccl_py.selection.tables.cann_2025_07.shared_rows import (
    AR_SINGLE,
    POINT_TO_POINT,
    RE_SINGLE,
    STAGED,
)
from hccl_py.selection.tables.cells import (
    A2A,
    AG,
    AGV,
    AIV,
    AIV_LARGEST,
    ANY_ORDER,
    AR,
    BC,
    EVEN,
    FIXED_ORDER,
    GRAPH,
    INLINE,
    KIB,
    MANY,
    MESH,
    MIB,
    NO_GATHER,
    ONE_MESH,
    OP_BASE,
    PAIR,
    PIPELINE,
    RDMA_INLINE,
    RE,
    RING,
    RS,
    RSV,
    SC,
    SEVERAL,
    SINGLE,
    UNEVEN,
    UNEVEN_PODS,
    at_most,
    exchange,
)

_BUFFER: Cell = ("ccl_bytes", ">=", 16 * MIB)
_POWER: Cell = ("servers_are_power", "==", True)
_AIV_REDUCE: tuple[Cell, ...] = (AIV, ("aiv_reduces", "==", True), ANY_ORDER)
_AIV_COPY: tuple[Cell, ...] = (AIV, ("aiv_copies", "==", True))
_AIV_ACROSS: tuple[Cell, ...] = (
    *(MESH, SEVERAL, EVEN, OP_BASE, _BUFFER),
    *(at_most(256 * KIB), ("total_bytes", "<=", 16 * MIB)),
)
_MESHED: tuple[Cell, ...] = (MESH, ONE_MESH, INLINE, ("ranks", ">", 1))
_ACROSS: tuple[Cell, ...] = (PIPELINE, MESH, SEVERAL, ANY_ORDER, OP_BASE, INLINE, RDMA_INLINE)

_AR_SMALL, _AR_LOOP = "AllReduceMeshSmallCountExecutor", "AllReduceMeshOpbaseLoopExecutor"
_AR_MESH, _AR_RING = "AllReduceMeshExecutor", "AllReduceRingExecutor"


def _ar_aiv(*mode: Cell) -> tuple[Rule, ...]:
    """Return the kernels of a mode; op-base mode needs CCL buffers of 16 MB."""
    across = (*_AIV_REDUCE, MESH, SEVERAL, EVEN, *mode)
    return (
        AR.take(
            "AllReduceSmallCountAivRdmaExecutor",
            "284-329",
            *(*across, _POWER, ("device_bytes", "<=", 190 * KIB)),
        ),
        AR.take("AllReduceMidCountAivRdmaExecutor", "286-331", *across, at_most(16 * MIB)),
    )


_AR_AIV = (
    *_ar_aiv(OP_BASE, _BUFFER),
    AR.take(
        "AllReduceMeshOpbaseBigCountAivExecutor",
        "325-333",
        *(*_AIV_REDUCE, MESH, ONE_MESH, OP_BASE, _BUFFER, ("bytes", ">=", 16 * MIB)),
    ),
    AR.take("AllReduceMeshAivExecutor", "325-336", *_AIV_REDUCE, MESH, ONE_MESH, OP_BASE, _BUFFER),
    *_ar_aiv(GRAPH),
    AR.take("AllReduceMeshAivExecutor", "325-336", *_AIV_REDUCE, MESH, ONE_MESH, GRAPH),
)

_AR_PAIR = (
    AR.take(_AR_SMALL, "344-402", PAIR, *_MESHED, OP_BASE, at_most(256 * KIB)),
    AR.take(_AR_LOOP, "344-405", PAIR, *_MESHED, OP_BASE),
    AR.take(_AR_SMALL, "344-409", PAIR, *_MESHED, GRAPH, at_most(64 * KIB)),
    AR.take(_AR_MESH, "344-412", PAIR, *_MESHED, GRAPH),
    AR.take(
        "AllReduceMeshOneshotLoopExecutor", "349-351", ("two_cards", "==", True), OP_BASE, INLINE
    ),
    AR.take(_AR_RING, "349-354", ("two_cards", "==", True)),
    AR.take("AllReduceMeshOpbasePipelineExecutor", "356-360", PAIR, *_ACROSS),
    AR.take(_AR_MESH, "362-363", PAIR, MESH),
    AR.take(_AR_RING, "365-366", PAIR, RING),
)

_AR_MANY = (
    AR.take("AllReduceMeshOpbasePipelineExecutor", "418-423", MANY, *_ACROSS),
    AR.take(_AR_SMALL, "424-426", MANY, *_MESHED, ANY_ORDER, OP_BASE, at_most(256 * KIB)),
    AR.take(_AR_LOOP, "424-428", MANY, *_MESHED, ANY_ORDER, OP_BASE),
    AR.take(_AR_SMALL, "439-441", MANY, *_MESHED, FIXED_ORDER, GRAPH, at_most(64 * KIB)),
    AR.take(_AR_SMALL, "439-441", MANY, *_MESHED, FIXED_ORDER, OP_BASE, at_most(128 * KIB)),
    AR.take(
        "AllReduceMeshMidCountLoopExecutor",
        "442-443",
        *(*_MESHED, FIXED_ORDER, GRAPH, ("devices", "==", 8), at_most(4 * MIB)),
    ),
    AR.take(
        "AllReduceMeshMidCountLoopExecutor",
        "442-443",
        *(*_MESHED, FIXED_ORDER, OP_BASE, ("devices", "==", 8)),
    ),
    AR.take("AllReduceMeshOneshotLoopExecutor", "444-446", MANY, *_MESHED, FIXED_ORDER),
    AR.take(_AR_MESH, "386-388", MANY, MESH),
)

_ALL_REDUCE = (
    AR_SINGLE,
    AR.refuse(
        "level1:AHC needs level0:null on 910B",
        "309-313",
        ("joined", "==", True),
        ("level0", "!=", "null"),
        result=HcclResult.E_PARA,
    ),
    *_AR_AIV,
    *_AR_PAIR,
    *_AR_MANY,
    AR.take("AllReduceComm", "367-391"),
)

_ALL_GATHER = (
    AG.take("AllGatherSingleExecutor", "32-35", SINGLE, OP_BASE),
    AG.take(
        "AllGatherMeshAivSmallCountExecutor",
        "133-138",
        *(*_AIV_COPY, ONE_MESH, OP_BASE, at_most(700 * KIB)),
        early=True,
    ),
    AG.take("AllGatherMeshAivExecutor", "133-142", *_AIV_COPY, ONE_MESH, AIV_LARGEST, early=True),
    AG.take("AllGatherAivRdmaExecutor", "172-184", *_AIV_COPY, *_AIV_ACROSS, _POWER),
    AG.take("AllGatherAivRdmaExecutor", "172-184", *_AIV_COPY, *_AIV_ACROSS, at_most(128 * KIB)),
    AG.take("AllGatherMeshOpbaseExecutor", "185-188", MESH, OP_BASE, ONE_MESH),
    AG.take("AllGatherMeshOpbasePipelineExecutor", "189-191", MESH, OP_BASE, SEVERAL, PIPELINE),
    AG.take("AllGatherMeshGraphExecutor", "193-198", MESH, GRAPH, at_most(MIB)),
    AG.take("AllGatherMeshExecutor", "193-196", MESH),
    AG.take("AllGatherRingExecutor", "200-201", ("level0", "==", "ring")),
    AG.take("AllGatherComm", "202-204"),
)

_REDUCE_SCATTER = (
    RS.take("ReduceScatterSingleExecutor", "29-32", SINGLE),
    RS.take(
        "ReduceScatterAivRdmaExecutor", "140-149", *_AIV_REDUCE, *_AIV_ACROSS, _POWER, early=True
    ),
    RS.take(
        "ReduceScatterAivRdmaExecutor",
        "140-149",
        *(*_AIV_REDUCE, *_AIV_ACROSS, at_most(128 * KIB)),
        early=True,
    ),
    RS.take(
        "ReduceScatterMeshAivSmallCountExecutor",
        "144-152",
        *(*_AIV_REDUCE, ONE_MESH, OP_BASE, at_most(2 * MIB)),
        early=True,
    ),
    RS.take(
        "ReduceScatterMeshAivExecutor", "144-156", *_AIV_REDUCE, ONE_MESH, AIV_LARGEST, early=True
    ),
    RS.take("ReduceScatterDeterExecutor", "183-188", *_MESHED, OP_BASE, FIXED_ORDER),
    RS.take("ReduceScatterMeshDmaEliminationExecutor", "183-191", *_MESHED, OP_BASE),
    RS.take("ReduceScatterMeshOpbasePipelineExecutor", "192-197", *_ACROSS),
    RS.take("ReduceScatterDeterExecutor", "199-202", *_MESHED, GRAPH, FIXED_ORDER, MANY),
    RS.take("ReduceScatterMeshGraphExecutor", "204-217", MESH, GRAPH, at_most(MIB)),
    RS.take("ReduceScatterMeshExecutor", "204-215", MESH),
    RS.take("ReduceScatterRingExecutor", "219-220", ("level0", "==", "ring")),
    RS.take("ReduceScatterComm", "221-223"),
)

_AIV_EXCHANGE: tuple[Cell, ...] = (*_AIV_COPY, ("ranks", ">", 1), MESH)
_EXCHANGE_BUFFER: Cell = ("ccl_bytes", ">=", 8 * MIB)


_EXCHANGES_IN_ONE_MESH = (
    exchange(
        "AlltoAllMeshAivExecutor", "457-476", *_AIV_EXCHANGE, ONE_MESH, OP_BASE, _EXCHANGE_BUFFER
    ),
    exchange("AlltoAllMeshAivExecutor", "457-476", *_AIV_EXCHANGE, ONE_MESH, GRAPH),
)


def _exchanges(op: str) -> tuple[Rule, ...]:
    """Return the rows of one op of the family."""
    staged = exchange(
        "AlltoAllStagedAIVRdmaExecutor",
        "462-518",
        *(*_AIV_EXCHANGE, SEVERAL, OP_BASE, _EXCHANGE_BUFFER, EVEN, ("modules", "<=", 8)),
        *(at_most(190 * KIB), ("fits_ccl", "==", True)),
    )
    exceeds: tuple[Cell, ...] = () if op == "all_to_all_v" else (("exceeds_ccl", "==", True),)
    return (
        exchange("RunAlltoAllSingleExecutor", "232-234", SINGLE, OP_BASE),
        *_EXCHANGES_IN_ONE_MESH,
        *((staged,) if op == "all_to_all" else ()),
        exchange("RunAlltoAllDirectFullmesh", "237-241", OP_BASE, ONE_MESH, *exceeds),
        A2A.take(
            "RunAlltoAllVTwoLevelPipeline",
            "416-437",
            *(PIPELINE, ("contexts_fit", "==", True), ("devices", ">", 1), OP_BASE),
            *(("modules", ">", 1), EVEN, ("ccl_bytes", ">=", 80 * MIB)),
        ),
        exchange("RunAlltoAllVFullMesh", "244-247", ("pairwise", "==", True)),
        exchange("RunAlltoAllVFullMesh", "244-247", ("one_plane", "==", True)),
        exchange("RunAlltoAllVFullMesh", "244-247", ("ranks", "<=", 2)),
        exchange("RunAlltoAllVFullMesh", "244-247", UNEVEN),
        exchange("RunAlltoAllVFullMesh", "244-247", UNEVEN_PODS),
        *STAGED,
    )


_V_OPS = {
    "all_gather_v": (
        AGV.refuse("AllGatherV stays within one module", "75-78", SEVERAL),
        AGV.take(
            "AllGatherVMeshAivSmallCountExecutor",
            "80-88",
            *(*_AIV_COPY, OP_BASE, at_most(700 * KIB)),
        ),
        AGV.take("AllGatherVMeshAivExecutor", "80-85", *_AIV_COPY, OP_BASE, AIV_LARGEST),
        AGV.take("AllGatherVMeshOpbaseExecutor", "89-91", OP_BASE),
        AGV.take("AllGatherVMeshExecutor", "92-94"),
    ),
    "reduce_scatter_v": (
        RSV.refuse("ReduceScatterV stays within one module", "70-73", SEVERAL),
        RSV.take(
            "ReduceScatterVMeshAivSmallCountExecutor",
            "81-92",
            *(*_AIV_REDUCE, OP_BASE, at_most(2 * MIB)),
        ),
        RSV.take("ReduceScatterVAIVBigCountExecutor", "81-90", *_AIV_REDUCE, OP_BASE, AIV_LARGEST),
        RSV.take("ReduceScatterVMeshOpbaseExecutor", "94-97", OP_BASE, INLINE),
        RSV.take("ReduceScatterVMeshExecutor", "98-100", INLINE),
        RSV.refuse("ReduceScatterV needs links that can reduce", "101-104"),
    ),
}

_ROOTED = {
    "broadcast": (
        BC.take("BroadCastMeshExecutor", "136-141", MESH),
        BC.take("BroadCastRingExecutor", "138-145", RING),
        BC.take("BroadCastComm", "146-148"),
    ),
    "reduce": (
        RE_SINGLE,
        RE.take("ReduceMeshExecutor", "96-101", MESH),
        RE.take("ReduceRingPlusHd", "98-103", ("level0", "==", "ring")),
        RE.take("ReduceComm", "104-106"),
    ),
    "scatter": (
        SC.take("ScatterSingleExecutor", "41-44", SINGLE, OP_BASE),
        SC.take("ScatterCommExecutor", "70-71", UNEVEN),
        SC.take("ScatterMeshExecutor", "72-73", MESH),
        SC.take("ScatterRingExecutor", "74-79", RING),
        SC.take("ScatterCommExecutor", "80-82"),
    ),
}

TABLE_910B: DecisionTable = {
    "all_reduce": _ALL_REDUCE,
    "all_gather": _ALL_GATHER,
    "reduce_scatter": _REDUCE_SCATTER,
    **{op: _exchanges(op) for op in ALL_TO_ALL},
    **_V_OPS,
    **_ROOTED,
    **NO_GATHER,
    **POINT_TO_POINT,
}
