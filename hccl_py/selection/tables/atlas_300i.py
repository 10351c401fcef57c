"""The tables of 310P3 (Atlas 300I, 300I Duo) and of other 310P devices. [C]"""

from __future__ import annotations

from hccl_py.selection.rules import DecisionTable, Rule, refuse, rule
from hccl_py.selection.tables.cells import (
    GRAPH,
    INLINE,
    KIB,
    NO_GATHER,
    OP_BASE,
    POINT_TO_POINT,
    SINGLE,
    Cell,
    for_family,
)

__all__ = ["TABLE_310P", "TABLE_310P3"]

_DUO: Cell = ("duo", "==", True)
_PLAIN: Cell = ("duo", "==", False)
_POWER: Cell = ("ranks_are_power", "==", True)
_TWO: Cell = ("ranks", "==", 2)
_SMALL: Cell = ("bytes", "<=", 128 * KIB)

_DUO_MOST = 32
_DUO_EXCHANGE_MOST = 4


def _duo_limit(op: str, most: int) -> Rule:
    return refuse(f"{op} takes at most {most} NPUs on 300I Duo", _DUO, ("ranks", ">", most))


TABLE_310P3 = DecisionTable(
    "classic-310P3/1",
    {
        "all_reduce": (
            rule("AllReduceSingleExecutor", SINGLE, ("direct", "==", True)),
            rule("AllReduceDoublingDirect", _DUO, INLINE, _SMALL, _POWER, OP_BASE),
            rule("AllReduceDoublingDirect", _DUO, INLINE, _TWO, OP_BASE),
            rule("AllReduceDoubling", _DUO, INLINE, _SMALL, _POWER, GRAPH),
            rule("AllReduceDoubling", _DUO, INLINE, _TWO, GRAPH),
            rule("AllReduceDoubling", _PLAIN, INLINE, ("bytes", "<=", 256 * KIB), _POWER),
            rule("AllReduceRing"),
        ),
        "all_gather": (
            rule("AllGatherSingleExecutor", SINGLE),
            _duo_limit("AllGather", _DUO_MOST),
            rule("AllGatherFor310PExecutor"),
        ),
        "reduce_scatter": (
            rule("ReduceScatterSingleExecutor", SINGLE),
            _duo_limit("ReduceScatter", _DUO_MOST),
            rule("ReduceScatterRing"),
        ),
        "all_gather_v": (
            _duo_limit("AllGatherV", _DUO_EXCHANGE_MOST),
            rule("AllGatherVFor310PExecutor"),
        ),
        "reduce_scatter_v": (rule("ReduceScatterVFor310PRing"),),
        "broadcast": (rule("BroadCastCommFor310P"),),
        "reduce": (rule("ReduceSingleExecutor", SINGLE), rule("ReduceComm")),
        "scatter": (rule("ScatterSingleExecutor", SINGLE), rule("ScatterCommExecutor")),
        **for_family(
            rule("RunAlltoAllSingleExecutor", SINGLE),
            _duo_limit("AlltoAll", _DUO_EXCHANGE_MOST),
            rule("RunAlltoAllVFor310PExecutor", _DUO),
            rule("RunAlltoAllVFullMesh"),
        ),
        **NO_GATHER,
        **POINT_TO_POINT,
    },
)

TABLE_310P = DecisionTable(
    "classic-310P/1",
    {
        "all_reduce": (
            rule("AllReduceSingleExecutor", SINGLE, ("direct", "==", True)),
            rule("AllReduceReducePlusBcast"),
        ),
        "broadcast": (rule("BroadcastPlusBroadcast"),),
        **NO_GATHER,
        **POINT_TO_POINT,
    },
)
