"""The tables of 910A (Atlas training series)."""

from __future__ import annotations

from hccl_py.selection.rules import Cell, DecisionTable
from hccl_py.selection.tables.cann_2026_08.shared_rows import (
    AG_SINGLE,
    AR_SINGLE,
    POINT_TO_POINT,
    RE_SINGLE,
    RS_SINGLE,
    SC_SINGLE,
    STAGED,
)
from hccl_py.selection.tables.cells import (
    AG,
    AGV,
    AR,
    BC,
    INLINE,
    KIB,
    MIB,
    NO_GATHER,
    ONE_SERVER,
    OP_BASE,
    RE,
    RS,
    RSV,
    SC,
    SINGLE,
    UNEVEN,
    at_most,
    by_level0,
    exchange,
    for_family,
)

_SMALL: tuple[Cell, ...] = (OP_BASE, ONE_SERVER, at_most(MIB))


TABLE_910A: DecisionTable = {
    "all_reduce": (
        AR_SINGLE,
        AR.take(
            "AllReduceDoublingDirect",
            "273-278",
            *(*_SMALL, INLINE, ("ranks", "==", 4)),
            level1="H-D_R",
        ),
        AR.take(
            "AllReduceDoubling",
            "273-280",
            *(*_SMALL, INLINE, ("ranks", "==", 8)),
            level1="H-D_R",
        ),
        AR.take(
            "AllReduceSmallCountFor910",
            "273-283",
            *(*_SMALL, ("ranks", "in", (4, 8))),
            level1="H-D_R",
        ),
        *by_level0(
            AR, "284-290", "AllReduceMeshExecutor", "AllReduceRingExecutor", "AllReduceComm"
        ),
    ),
    "all_gather": (
        AG_SINGLE,
        *by_level0(
            AG, "116-125", "AllGatherMeshExecutor", "AllGatherRingExecutor", "AllGatherComm"
        ),
    ),
    "reduce_scatter": (
        RS_SINGLE,
        RS.take(
            "ReduceScatterComm",
            "147-154",
            *(OP_BASE, ONE_SERVER, at_most(256 * KIB), ("ranks", "in", (4, 8))),
            level1="H-D_R",
        ),
        *by_level0(
            RS,
            "155-161",
            "ReduceScatterMeshExecutor",
            "ReduceScatterRingExecutor",
            "ReduceScatterComm",
        ),
    ),
    "broadcast": by_level0(
        BC, "136-147", "BroadCastMeshExecutor", "BroadCastRingExecutor", "BroadCastComm"
    ),
    "reduce": (
        RE_SINGLE,
        *by_level0(RE, "99-108", "ReduceMeshExecutor", "ReduceRingPlusHd", "ReduceComm"),
    ),
    "scatter": (
        SC_SINGLE,
        SC.take("ScatterCommExecutor", "86-87", UNEVEN),
        *by_level0(
            SC, "88-98", "ScatterMeshExecutor", "ScatterRingExecutor", "ScatterCommExecutor"
        ),
    ),
    "all_gather_v": (AGV.refuse("AllGatherV exists on 910_93, 910B and 310P3", "37-46"),),
    "reduce_scatter_v": (RSV.refuse("ReduceScatterV exists on 910_93, 910B and 310P3", "36-45"),),
    **for_family(
        exchange("RunAlltoAllSingleExecutor", "263-266", SINGLE, OP_BASE),
        exchange("RunAlltoAllVFullMesh", "293-297", ("pairwise", "==", True)),
        exchange("RunAlltoAllVFullMesh", "293-297", ("one_plane", "==", True)),
        exchange("RunAlltoAllVFullMesh", "293-297", ("ranks", "<=", 2)),
        exchange("RunAlltoAllVFullMesh", "293-297", UNEVEN),
        *STAGED,
    ),
    **NO_GATHER,
    **POINT_TO_POINT,
}
