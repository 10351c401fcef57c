"""The tables of 910B (Atlas A2): sums. The other ops are in `a2_others.py`."""

from __future__ import annotations

from hccl_py.errors import HcclResult
from hccl_py.selection.rules import Cell, DecisionTable, OperatorFile, Rule
from hccl_py.selection.tables.cann_2026_08.a2_others import OTHERS
from hccl_py.selection.tables.cann_2026_08.shared_rows import AR_SINGLE, RS_SINGLE
from hccl_py.selection.tables.cells import (
    AIV,
    AIV_LARGEST,
    ANY_ORDER,
    AR,
    EVEN,
    FIXED_ORDER,
    GRAPH,
    INLINE,
    KIB,
    MANY,
    MESH,
    MIB,
    ONE_MESH,
    ONE_SERVER,
    OP_BASE,
    PAIR,
    PIPELINE,
    RDMA_INLINE,
    RS,
    SEVERAL,
    UNEVEN,
    at_most,
)

_STRICT: Cell = ("deterministic", "==", "strict")
_FIXED: Cell = ("deterministic", "==", "true")
_BUFFER: Cell = ("ccl_bytes", ">=", 16 * MIB)
_POWER: Cell = ("servers_are_power", "==", True)
_IN_ORDER: tuple[Cell, ...] = (
    *(_STRICT, ("ranks", ">", 2)),
    ("dtype", "in", ("fp16", "fp32", "bf16")),
)
_AIV_REDUCE: tuple[Cell, ...] = (AIV, ("aiv_reduces", "==", True))
_MESHED: tuple[Cell, ...] = (MESH, ONE_MESH, INLINE)
_ACROSS: tuple[Cell, ...] = (PIPELINE, MESH, SEVERAL, ANY_ORDER, INLINE, RDMA_INLINE)

_AR_SMALL, _AR_LOOP = "AllReduceMeshSmallCountExecutor", "AllReduceMeshOpbaseLoopExecutor"
_AR_MESH, _AR_RING = "AllReduceMeshExecutor", "AllReduceRingExecutor"
_AR_SMALL_SERVERS = "AllReduceMeshOpbaseSmallCountDeterministicExecutor"


def joined_on_a2(file: OperatorFile, at: str) -> Rule:
    """Return the row that refuses AHC between the servers of a mesh."""
    return file.refuse(
        "level1:AHC needs level0:null on 910B",
        at,
        *(EVEN, ("joined", "==", True), ("level0", "!=", "null")),
        result=HcclResult.E_PARA,
    )


def _ar_aiv(mode: str, *buffer: Cell) -> tuple[Rule, ...]:
    """Return the kernels of a mode; op-base mode needs CCL buffers of 16 MB."""
    common = (*_AIV_REDUCE, ("barrier", "==", False), MESH, ("mode", "==", mode), *buffer)
    across = (*common, ANY_ORDER, SEVERAL, EVEN)
    return (
        AR.take(
            "AllReduceAivDeterSmallExecutor",
            "325-397",
            *(*common, _FIXED, ONE_MESH, at_most(8 * MIB)),
        ),
        AR.take(
            "AllReduceSmallCountAivRdmaExecutor",
            "319-409",
            *(*across, _POWER, ("device_bytes", "<=", 190 * KIB)),
        ),
        AR.take("AllReduceMidCountAivRdmaExecutor", "322-411", *across, at_most(16 * MIB)),
    )


_ALONE: tuple[Cell, ...] = (*(*_AIV_REDUCE, ("barrier", "==", False), MESH, ANY_ORDER, ONE_MESH),)

_AR_AIV = (
    *_ar_aiv("op_base", _BUFFER),
    AR.take(
        "AllReduceMeshAivExecutor",
        "404-413",
        *(*_ALONE, OP_BASE, _BUFFER, ("bytes", ">=", 16 * MIB)),
    ),
    AR.take("AllReduceMeshAivSmallCountExecutor", "414-416", *_ALONE, OP_BASE, _BUFFER),
    *_ar_aiv("graph"),
    AR.take("AllReduceMeshAivExecutor", "412-413", *_ALONE, GRAPH),
)

_AR_PAIR = (
    AR.take(_AR_SMALL, "425-535", PAIR, *_MESHED, OP_BASE, at_most(256 * KIB)),
    AR.take(_AR_LOOP, "425-537", PAIR, *_MESHED, OP_BASE),
    AR.take(_AR_SMALL, "425-542", PAIR, *_MESHED, GRAPH, at_most(64 * KIB)),
    AR.take(_AR_MESH, "425-544", PAIR, *_MESHED, GRAPH),
    AR.take(
        "AllReduceMeshOneshotLoopExecutor", "431-433", ("two_cards", "==", True), OP_BASE, INLINE
    ),
    AR.take(_AR_RING, "431-436", ("two_cards", "==", True)),
    AR.take("AllReduceMeshOpbasePipelineExecutor", "438-443", PAIR, *_ACROSS, OP_BASE),
    AR.take("AllReduceMeshGraphPipelineExecutor", "438-446", PAIR, *_ACROSS, GRAPH),
    AR.take(_AR_MESH, "448-449", PAIR, MESH),
    AR.take(_AR_RING, "451-452", PAIR, ("level0", "==", "ring")),
)

_ACROSS_SMALL: tuple[Cell, ...] = (MANY, MESH, SEVERAL, INLINE, OP_BASE)

_AR_MANY = (
    AR.take("AllReduceMeshOpbasePipelineExecutor", "553-556", MANY, *_ACROSS, OP_BASE),
    AR.take(_AR_SMALL, "557-559", MANY, *_MESHED, ANY_ORDER, OP_BASE, at_most(256 * KIB)),
    AR.take(_AR_LOOP, "557-562", MANY, *_MESHED, ANY_ORDER, OP_BASE),
    AR.take("AllReduceMeshGraphPipelineExecutor", "564-568", MANY, *_ACROSS, GRAPH),
    AR.take(_AR_SMALL_SERVERS, "575-578", *_ACROSS_SMALL, ANY_ORDER, ("bytes", "<", 512 * KIB)),
    AR.take(
        "AllReduceDeterPipelineExecutor",
        "590-596",
        *(MANY, MESH, FIXED_ORDER, OP_BASE, PIPELINE, ("device_bytes", ">=", 128)),
    ),
    AR.take(_AR_SMALL, "598-600", MANY, *_MESHED, FIXED_ORDER, GRAPH, at_most(64 * KIB)),
    AR.take(_AR_SMALL, "598-600", MANY, *_MESHED, FIXED_ORDER, OP_BASE, at_most(128 * KIB)),
    AR.take(
        "AllReduceMeshMidCountLoopExecutor",
        "601-602",
        *(*_MESHED, FIXED_ORDER, GRAPH, ("devices", "==", 8), at_most(4 * MIB)),
    ),
    AR.take(
        "AllReduceMeshMidCountLoopExecutor",
        "601-602",
        *(*_MESHED, FIXED_ORDER, OP_BASE, ("devices", "==", 8)),
    ),
    AR.take("AllReduceMeshOneshotLoopExecutor", "603-605", MANY, *_MESHED, FIXED_ORDER),
    AR.take(_AR_SMALL_SERVERS, "606-611", *_ACROSS_SMALL, FIXED_ORDER, at_most(512 * KIB)),
    AR.take(
        "AllReduceMeshOpbaseMidCountDeterministicExecutor",
        "606-614",
        *(*_ACROSS_SMALL, FIXED_ORDER),
    ),
    AR.take(_AR_MESH, "474-476", MANY, MESH),
)

_ALL_REDUCE = (
    AR_SINGLE,
    joined_on_a2(AR, "350-354"),
    AR.refuse(
        "adding in rank order needs servers with as many devices", "372-380", _STRICT, UNEVEN
    ),
    AR.take("AllReduceOrderPreservedExecutor", "382-393", *_IN_ORDER),
    *_AR_AIV,
    *_AR_PAIR,
    *_AR_MANY,
    AR.take("AllReduceComm", "454-479"),
)

_RS_AIV_ACROSS: tuple[Cell, ...] = (
    *(*_AIV_REDUCE, ANY_ORDER, MESH, SEVERAL, EVEN, OP_BASE, _BUFFER),
    *(at_most(256 * KIB), ("total_bytes", "<=", 16 * MIB)),
)
_RS_AIV_ALONE: tuple[Cell, ...] = (*_AIV_REDUCE, ONE_MESH, AIV_LARGEST)
_RS_SMALL: tuple[Cell, ...] = (MESH, SEVERAL, INLINE, OP_BASE)
_RS_SMALL_SERVERS = "ReduceScatterMeshOpbaseSmallCountDeterministicExecutor"
_RS_GRAPH_PIPE: tuple[Cell, ...] = (
    *(MESH, SEVERAL, INLINE, RDMA_INLINE, GRAPH, ANY_ORDER),
    *(("modules", ">", 1), ("devices", ">", 1)),
)

_RS_AIV = (
    RS.take(
        "ReduceScatterAivDeterSmallExecutor",
        "225-237",
        *(*_RS_AIV_ALONE, _FIXED, ONE_SERVER, ("total_bytes", "<=", 8 * MIB)),
        early=True,
    ),
    RS.take("ReduceScatterAivRdmaExecutor", "219-245", *_RS_AIV_ACROSS, _POWER, early=True),
    RS.take(
        "ReduceScatterAivRdmaExecutor", "219-245", *_RS_AIV_ACROSS, at_most(128 * KIB), early=True
    ),
    RS.take(
        "ReduceScatterMeshAivSmallCountExecutor",
        "229-248",
        *(*_RS_AIV_ALONE, ANY_ORDER, OP_BASE, at_most(2 * MIB)),
        early=True,
    ),
    RS.take("ReduceScatterMeshAivExecutor", "229-251", *_RS_AIV_ALONE, ANY_ORDER, early=True),
)

_REDUCE_SCATTER = (
    RS_SINGLE,
    RS.refuse(
        "adding in rank order needs servers with as many devices",
        "190-199",
        *(_STRICT, ("ranks", ">", 2), UNEVEN),
    ),
    RS.take("ReduceScatterOrderPreservedExecutor", "200-213", *_IN_ORDER, early=True),
    *_RS_AIV,
    joined_on_a2(RS, "269-273"),
    RS.take("ReduceScatterDeterPipelineExecutor", "287-290", MESH, _FIXED, OP_BASE, PIPELINE, MANY),
    RS.take("ReduceScatterDeterExecutor", "297-301", *_MESHED, OP_BASE, FIXED_ORDER),
    RS.take("ReduceScatterMeshDmaEliminationExecutor", "297-304", *_MESHED, OP_BASE),
    RS.take("ReduceScatterMeshOpbasePipelineExecutor", "305-311", *_ACROSS, OP_BASE),
    RS.take(_RS_SMALL_SERVERS, "312-318", *_RS_SMALL, _FIXED, at_most(512 * KIB)),
    RS.take(_RS_SMALL_SERVERS, "312-318", *_RS_SMALL, ("total_bytes", "<", 512 * KIB)),
    RS.take("ReduceScatterDeterExecutor", "320-323", *_MESHED, GRAPH, FIXED_ORDER, MANY),
    RS.take(
        "ReduceScatterMeshGraphPipelineExecutor", "335-340", *_RS_GRAPH_PIPE, ("bytes", ">", MIB)
    ),
    RS.take(
        "ReduceScatterMeshGraphPipelineExecutor", "335-340", *_RS_GRAPH_PIPE, ("modules", "<=", 4)
    ),
    RS.take("ReduceScatterMeshGraphExecutor", "325-346", MESH, GRAPH, at_most(MIB)),
    RS.take("ReduceScatterMeshExecutor", "325-343", MESH),
    RS.take("ReduceScatterRingExecutor", "348-349", ("level0", "==", "ring")),
    RS.take("ReduceScatterComm", "350-352"),
)

TABLE_910B: DecisionTable = {"all_reduce": _ALL_REDUCE, "reduce_scatter": _REDUCE_SCATTER, **OTHERS}
