"""The tables of 310P3 (Atlas 300I, 300I Duo) and of other 310P devices."""

from __future__ import annotations

from hccl_py.selection.rules import Cell, DecisionTable
from hccl_py.selection.tables.cann_2025_07.shared_rows import (
    AR_SINGLE,
    COMMUNICATOR,
    POINT_TO_POINT,
)
from hccl_py.selection.tables.cells import (
    AG,
    AGV,
    AR,
    BC,
    GRAPH,
    INLINE,
    KIB,
    NO_GATHER,
    OP_BASE,
    RE,
    RS,
    RSV,
    SINGLE,
    at_most,
    exchange,
    for_family,
)

_DUO: Cell = ("duo", "==", True)
_PLAIN: Cell = ("duo", "==", False)
_POWER: Cell = ("ranks_are_power", "==", True)
_TWO: Cell = ("ranks", "==", 2)

_ALL_TO_ALL = for_family(
    exchange("RunAlltoAllSingleExecutor", "232-234", SINGLE, OP_BASE),
    exchange("RunAlltoAllVFor310PExecutor", "235-236", ("duo_pairs", "==", True)),
    exchange("RunAlltoAllDirectFullmesh", "237-241"),
)

TABLE_310P3: DecisionTable = {
    "all_reduce": (
        AR_SINGLE,
        AR.take(
            "AllReduceDoublingDirect",
            "194-199",
            *(_DUO, INLINE, at_most(128 * KIB), _POWER, OP_BASE),
            level1="H-D_R",
        ),
        AR.take("AllReduceDoublingDirect", "194-199", _DUO, INLINE, _TWO, OP_BASE, level1="H-D_R"),
        AR.take(
            "AllReduceDoubling",
            "194-202",
            *(_DUO, INLINE, at_most(128 * KIB), _POWER, GRAPH),
            level1="H-D_R",
        ),
        AR.take("AllReduceDoubling", "194-202", _DUO, INLINE, _TWO, GRAPH, level1="H-D_R"),
        AR.take(
            "AllReduceDoubling",
            "221-227",
            *(_PLAIN, INLINE, at_most(256 * KIB), _POWER),
            level1="H-D_R",
        ),
        AR.take("AllReduceRing", "205-232"),
    ),
    "all_gather": (
        AG.take("AllGatherSingleExecutor", "32-35", SINGLE, OP_BASE),
        AG.take("AllGatherFor310PExecutor", "102-107"),
    ),
    "reduce_scatter": (
        RS.take("ReduceScatterSingleExecutor", "29-32", SINGLE),
        RS.take("ReduceScatterRing", "94-99"),
    ),
    "all_gather_v": (AGV.take("AllGatherVFor310PExecutor", "99-104"),),
    "reduce_scatter_v": (RSV.take("ReduceScatterVFor310PRing", "109-114"),),
    "broadcast": (BC.take("BroadCastCommFor310P", "102-107"),),
    "reduce": (RE.refuse("Reduce does not exist on 310P3", "53-62"),),
    "scatter": (COMMUNICATOR.refuse("Scatter does not exist on 310P3", "3137-3142"),),
    **_ALL_TO_ALL,
    "all_to_all_vc": (COMMUNICATOR.refuse("AlltoAllVC does not exist on 310P3", "2905-2910"),),
    **NO_GATHER,
    **POINT_TO_POINT,
}

TABLE_310P: DecisionTable = {
    "all_reduce": (AR_SINGLE, AR.take("AllReduceReducePlusBcast", "237-242")),
    "broadcast": (BC.take("BroadcastPlusBroadcast", "109-114"),),
    **NO_GATHER,
    **POINT_TO_POINT,
}
