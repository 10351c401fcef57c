"""The tables of 910A (Atlas training series)."""

from __future__ import annotations

from hccl_py.selection.rules import DecisionTable
from hccl_py.selection.tables.cann_2025_07.shared_rows import (
    AR_SINGLE,
    POINT_TO_POINT,
    RE_SINGLE,
    STAGED,
)
from hccl_py.selection.tables.cells import (
    AG,
    AGV,
    AR,
    BC,
    NO_GATHER,
    OP_BASE,
    RE,
    RS,
    RSV,
    SC,
    SINGLE,
    UNEVEN,
    UNEVEN_PODS,
    by_level0,
    exchange,
    for_family,
)

TABLE_910A: DecisionTable = {
    "all_reduce": (
        AR_SINGLE,
        *by_level0(
            AR, "246-255", "AllReduceMeshExecutor", "AllReduceRingExecutor", "AllReduceComm"
        ),
    ),
    "all_gather": (
        AG.take("AllGatherSingleExecutor", "32-35", SINGLE, OP_BASE),
        *by_level0(
            AG, "111-120", "AllGatherMeshExecutor", "AllGatherRingExecutor", "AllGatherComm"
        ),
    ),
    "reduce_scatter": (
        RS.take("ReduceScatterSingleExecutor", "29-32", SINGLE),
        *by_level0(
            RS,
            "103-112",
            "ReduceScatterMeshExecutor",
            "ReduceScatterRingExecutor",
            "ReduceScatterComm",
        ),
    ),
    "broadcast": by_level0(
        BC, "118-129", "BroadCastMeshExecutor", "BroadCastRingExecutor", "BroadCastComm"
    ),
    "reduce": (
        RE_SINGLE,
        *by_level0(RE, "79-88", "ReduceMeshExecutor", "ReduceRingPlusHd", "ReduceComm"),
    ),
    "scatter": (
        SC.take("ScatterSingleExecutor", "41-44", SINGLE, OP_BASE),
        SC.take("ScatterCommExecutor", "70-71", UNEVEN),
        *by_level0(
            SC, "72-82", "ScatterMeshExecutor", "ScatterRingExecutor", "ScatterCommExecutor"
        ),
    ),
    "all_gather_v": (AGV.refuse("AllGatherV exists on 910B and 310P3", "33-40"),),
    "reduce_scatter_v": (RSV.refuse("ReduceScatterV exists on 910B and 310P3", "31-38"),),
    **for_family(
        exchange("RunAlltoAllSingleExecutor", "232-234", SINGLE, OP_BASE),
        exchange("RunAlltoAllVFullMesh", "244-247", ("pairwise", "==", True)),
        exchange("RunAlltoAllVFullMesh", "244-247", ("one_plane", "==", True)),
        exchange("RunAlltoAllVFullMesh", "244-247", ("ranks", "<=", 2)),
        exchange("RunAlltoAllVFullMesh", "244-247", UNEVEN),
        exchange("RunAlltoAllVFullMesh", "244-247", UNEVEN_PODS),
        *STAGED,
    ),
    **NO_GATHER,
    **POINT_TO_POINT,
}
