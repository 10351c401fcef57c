"""The tables of 910A (Atlas training series)."""

from __future__ import annotations

from hccl_py.selection.rules import DecisionTable, OperatorFile, Rule
from hccl_py.selection.tables.cann_2025_07.files import (
    A2A,
    AG,
    AGV,
    AR,
    AR_SINGLE,
    BC,
    POINT_TO_POINT,
    RE,
    RE_SINGLE,
    RS,
    RSV,
    SC,
    STAGED,
)
from hccl_py.selection.tables.cells import (
    MESH,
    NO_GATHER,
    OP_BASE,
    RING,
    SINGLE,
    UNEVEN,
    UNEVEN_PODS,
    for_family,
)


def _by_level0(file: OperatorFile, at: str, mesh: str, ring: str, flat: str) -> tuple[Rule, ...]:
    return file.take(mesh, at, MESH), file.take(ring, at, RING), file.take(flat, at)


TABLE_910A = DecisionTable(
    {
        "all_reduce": (
            AR_SINGLE,
            *_by_level0(
                AR, "246-255", "AllReduceMeshExecutor", "AllReduceRingExecutor", "AllReduceComm"
            ),
        ),
        "all_gather": (
            AG.take("AllGatherSingleExecutor", "32-35", SINGLE, OP_BASE),
            *_by_level0(
                AG, "111-120", "AllGatherMeshExecutor", "AllGatherRingExecutor", "AllGatherComm"
            ),
        ),
        "reduce_scatter": (
            RS.take("ReduceScatterSingleExecutor", "29-32", SINGLE),
            *_by_level0(
                RS,
                "103-112",
                "ReduceScatterMeshExecutor",
                "ReduceScatterRingExecutor",
                "ReduceScatterComm",
            ),
        ),
        "broadcast": _by_level0(
            BC, "118-129", "BroadCastMeshExecutor", "BroadCastRingExecutor", "BroadCastComm"
        ),
        "reduce": (
            RE_SINGLE,
            *_by_level0(RE, "79-88", "ReduceMeshExecutor", "ReduceRingPlusHd", "ReduceComm"),
        ),
        "scatter": (
            SC.take("ScatterSingleExecutor", "41-44", SINGLE, OP_BASE),
            SC.take("ScatterCommExecutor", "70-71", UNEVEN),
            *_by_level0(
                SC, "72-82", "ScatterMeshExecutor", "ScatterRingExecutor", "ScatterCommExecutor"
            ),
        ),
        "all_gather_v": (AGV.refuse("AllGatherV exists on 910B and 310P3", "33-40"),),
        "reduce_scatter_v": (RSV.refuse("ReduceScatterV exists on 910B and 310P3", "31-38"),),
        **for_family(
            A2A.take("RunAlltoAllSingleExecutor", "232-234", SINGLE, OP_BASE, level1="pairwise"),
            A2A.take(
                "RunAlltoAllVFullMesh", "244-247", ("pairwise", "==", True), level1="pairwise"
            ),
            A2A.take(
                "RunAlltoAllVFullMesh", "244-247", ("one_plane", "==", True), level1="pairwise"
            ),
            A2A.take("RunAlltoAllVFullMesh", "244-247", ("ranks", "<=", 2), level1="pairwise"),
            A2A.take("RunAlltoAllVFullMesh", "244-247", UNEVEN, level1="pairwise"),
            A2A.take("RunAlltoAllVFullMesh", "244-247", UNEVEN_PODS, level1="pairwise"),
            *STAGED,
        ),
        **NO_GATHER,
        **POINT_TO_POINT,
    },
)
