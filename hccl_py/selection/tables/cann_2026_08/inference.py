"""The tables of 310P3 (Atlas 300I, 300I Duo) and of other 310P devices."""

from __future__ import annotations

from hccl_py.selection.rules import Cell, DecisionTable
from hccl_py.selection.tables.cann_2026_08.shared_rows import (
    AG_SINGLE,
    AR_SINGLE,
    COMMUNICATOR,
    POINT_TO_POINT,
    RS_SINGLE,
)
from hccl_py.selection.tables.cells import (
    A2A,
    AG,
    AGV,
    AR,
    BC,
    GRAPH,
    INLINE,
    KIB,
    NO_GATHER,
    OP_BASE,
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
_EIGHT: Cell = ("ranks", "<=", 8)
_MORE_THAN_4: Cell = ("ranks", ">", 4)

_SLIM: tuple[Cell, ...] = (("count", ">", 1024), ("count", "<=", 320 * KIB), _EIGHT)
"""Elements, not bytes."""

_SMALL_ON_DUO: tuple[Cell, ...] = (_DUO, INLINE, at_most(256 * KIB), _POWER, _EIGHT)

TABLE_310P3: DecisionTable = {
    "all_reduce": (
        AR_SINGLE,
        AR.take("AllReduceDoublingDirect", "210-216", *_SMALL_ON_DUO, OP_BASE, level1="H-D_R"),
        AR.take("AllReduceDoublingDirect", "210-216", _DUO, INLINE, _TWO, OP_BASE, level1="H-D_R"),
        AR.take("AllReduceDoubling", "210-219", *_SMALL_ON_DUO, GRAPH, level1="H-D_R"),
        AR.take("AllReduceDoubling", "210-219", _DUO, INLINE, _TWO, GRAPH, level1="H-D_R"),
        AR.take(
            "AllReduceDoubling",
            "238-243",
            *(_PLAIN, INLINE, at_most(256 * KIB), _POWER),
            level1="H-D_R",
        ),
        AR.take("AllReduceRing", "222-249"),
    ),
    "all_gather": (
        AG_SINGLE,
        AG.take("AllGatherSlimRingFor310PExecutor", "103-105", *_SLIM),
        AG.take("AllGatherFor310PExecutor", "106-108"),
    ),
    "reduce_scatter": (
        RS_SINGLE,
        RS.take("ReduceScatterSlimRing", "129-131", *_SLIM),
        RS.take("ReduceScatterRing", "132-134"),
    ),
    "all_gather_v": (
        AGV.refuse("AllGatherV takes at most 4 ranks on 310P3", "173-179", _MORE_THAN_4),
        AGV.take("AllGatherVFor310PExecutor", "180"),
    ),
    "reduce_scatter_v": (
        RSV.refuse("ReduceScatterV takes at most 4 ranks on 310P3", "239-245", _MORE_THAN_4),
        RSV.take("ReduceScatterVFor310PRing", "246"),
    ),
    "broadcast": (BC.take("BroadCastCommFor310P", "118-124"),),
    "reduce": (COMMUNICATOR.refuse("Reduce does not exist on 310P3", "3782-3786"),),
    "scatter": (COMMUNICATOR.refuse("Scatter does not exist on 310P3", "3673-3677"),),
    **for_family(
        A2A.refuse("AlltoAll takes at most 4 ranks on 310P3", "253-259", _MORE_THAN_4),
        exchange("RunAlltoAllSingleExecutor", "263-266", SINGLE, OP_BASE),
        exchange("RunAlltoAllVFor310PExecutor", "267-268", ("duo_pairs", "==", True)),
        exchange("RunAlltoAllDirectFullmesh", "273-283"),
    ),
    "all_to_all_vc": (COMMUNICATOR.refuse("AlltoAllVC does not exist on 310P3", "3402-3406"),),
    **NO_GATHER,
    **POINT_TO_POINT,
}

TABLE_310P: DecisionTable = {
    "all_reduce": (AR_SINGLE, AR.take("AllReduceReducePlusBcast", "254-260")),
    "broadcast": (BC.take("BroadcastPlusBroadcast", "126-131"),),
    **NO_GATHER,
    **POINT_TO_POINT,
}
