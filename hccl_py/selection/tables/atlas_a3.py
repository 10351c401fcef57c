"""The tables of 910_93 (Atlas A3). [C]; order-preserving rows [H].

Re-execution is off by default in HCCL and not offered here, so its conditions are left out.
"""

from __future__ import annotations

from fractions import Fraction

from hccl_py.selection.rules import DecisionTable, Multiple, Rule, refuse, rule
from hccl_py.selection.tables.cells import (
    AIV,
    ANY_ORDER,
    ASYMMETRIC,
    GRAPH,
    IN_RANK_ORDER,
    INLINE,
    KIB,
    MANY,
    MIB,
    MORE_SERVERS,
    NO_GATHER,
    ONE_POD,
    ONE_SERVER,
    OP_BASE,
    POINT_TO_POINT,
    RING,
    SINGLE,
    Cell,
    for_family,
    in_rank_order,
)

__all__ = ["TABLE_910_93"]

_DOUBLE_RING: Cell = ("level0", "==", "double_ring")
_SOME_RING: Cell = ("level0", "in", ("ring", "double_ring"))
_HCCS: Cell = ("hccs", "==", True)
_AIV_REDUCE: tuple[Cell, ...] = (AIV, ("aiv_reduces", "==", True), ANY_ORDER, ONE_SERVER)
_SEVEN_PORTS: Cell = ("hccs_ports", "==", 7)
_UNFOLDED_GRAPH: tuple[Cell, ...] = (("unfolded", "==", True), GRAPH, _DOUBLE_RING, ONE_SERVER)
_IN_ONE_POD: tuple[Cell, ...] = (MORE_SERVERS, ONE_POD, MANY)


def _at_most(size: int) -> Cell:
    return ("bytes", "<=", size)


def _by_ranks(size: int) -> Cell:
    return ("bytes", "<=", Multiple(size, "ranks"))


_ALL_REDUCE = (
    rule("AllReduceSingleExecutor", SINGLE, ("direct", "==", True)),
    *in_rank_order("AllReduceOrderPreservedFor91093Executor", *IN_RANK_ORDER),
    rule("AllReduceMeshAivExecutor", *_AIV_REDUCE, _at_most(MIB)),
    rule("AllReduceComm", ASYMMETRIC),
    rule("AllReduceComm", *_IN_ONE_POD, _by_ranks(256 * KIB), level1="NHR"),
    rule(
        "AllReduceMeshSmallCountExecutor",
        ONE_SERVER,
        MANY,
        INLINE,
        _by_ranks(MIB),
        ("bytes", "<=", Multiple(Fraction(1, 4), "ccl_bytes")),
    ),
    rule("AllReduceFastDoubleRingFor91093Executor", _DOUBLE_RING, _SEVEN_PORTS),
    rule("AlignedAllReduceDoubleRingFor91093Executor", _DOUBLE_RING),
    rule("AllReduceRingFor91093Executor", RING),
    rule("AllReduceComm"),
)


def _small_gather(in_fours: bool, size: int) -> Rule:
    return rule(
        "AllGatherSmallCount",
        *_IN_ONE_POD,
        _HCCS,
        ("devices_in_fours", "==", in_fours),
        _at_most(size),
        ("total_bytes", "<=", Multiple(1, "gathered_limit")),
    )


_ALL_GATHER = (
    rule("AllGatherSingleExecutor", SINGLE),
    rule("AllGatherMeshAivSmallCountExecutor", AIV, ONE_SERVER, OP_BASE, _at_most(512 * KIB)),
    rule("AllGatherMeshAivExecutor", AIV, ONE_SERVER, GRAPH, _at_most(4 * MIB)),
    rule("AllGatherComm", ASYMMETRIC),
    _small_gather(in_fours=True, size=4 * MIB),
    _small_gather(in_fours=False, size=MIB),
    rule("AllGatherMeshOpbaseExecutor", ONE_SERVER, MANY, _at_most(2 * MIB), OP_BASE),
    rule("AllGatherMeshExecutor", ONE_SERVER, MANY, _at_most(2 * MIB)),
    rule("AllGatherSemiRingExecutor", *_UNFOLDED_GRAPH),
    rule("AlignedAllGatherDoubleRingFor91093Executor", _DOUBLE_RING),
    rule("AllGatherRingFor91093Executor", RING),
    rule("AllGatherComm"),
)

_REDUCE_SCATTER = (
    rule("ReduceScatterSingleExecutor", SINGLE),
    *in_rank_order("ReduceScatterOrderPreservedFor91093Executor", *IN_RANK_ORDER),
    rule("ReduceScatterMeshAivSmallCountExecutor", *_AIV_REDUCE, OP_BASE, _at_most(MIB)),
    rule("ReduceScatterMeshAivExecutor", *_AIV_REDUCE, GRAPH, _at_most(4 * MIB)),
    rule("ReduceScatterComm", ASYMMETRIC),
    rule(
        "ReduceScatterComm",
        *_IN_ONE_POD,
        INLINE,
        _HCCS,
        ("ranks_are_power", "==", False),
        _at_most(256 * KIB),
        level1="H-D_R",
    ),
    rule("ReduceScatterDeterExecutor", ONE_SERVER, MANY, INLINE, _at_most(2 * MIB)),
    rule(
        "ReduceScatterDeterExecutor",
        *_IN_ONE_POD,
        INLINE,
        _HCCS,
        ("ranks_are_power", "==", True),
        _at_most(512 * KIB),
    ),
    rule("ReduceScatterRingFor91093Executor", RING),
    rule("ReduceScatterSemiRingExecutor", *_UNFOLDED_GRAPH),
    rule("ReduceScatterFastDoubleRingFor91093Executor", _DOUBLE_RING, _SEVEN_PORTS),
    rule("AlignedReduceScatterDoubleRingFor91093Executor", _DOUBLE_RING),
    rule("ReduceScatterComm"),
)

_ROOTED = {
    "broadcast": (
        rule("BroadCastComm", ASYMMETRIC),
        rule("BroadCastComm", *_IN_ONE_POD, _by_ranks(256 * KIB), level1="NHR"),
        rule("BroadCastSmallCountExecutor", ONE_SERVER, MANY, _by_ranks(2 * MIB)),
        rule("BroadCastRingFor91093Executor", _SOME_RING),
        rule("BroadCastComm"),
    ),
    "reduce": (
        rule("ReduceSingleExecutor", SINGLE),
        rule("ReduceComm", ASYMMETRIC),
        rule("ReduceRingFor91093Executor", _SOME_RING),
        rule("ReduceComm"),
    ),
    "scatter": (
        rule("ScatterSingleExecutor", SINGLE),
        rule("ScatterCommExecutor", ASYMMETRIC),
        rule("ScatterRingFor91093Executor", _SOME_RING),
        rule("ScatterCommExecutor"),
    ),
}

_ALL_TO_ALL = for_family(
    rule("RunAlltoAllSingleExecutor", SINGLE),
    rule("AlltoAllMeshAivFor91093Executor", AIV, ONE_POD, _HCCS, _at_most(512 * KIB)),
    rule("RunAlltoAllDirectFullmesh", OP_BASE, _HCCS),
    rule("RunAlltoAllVFullMesh", ONE_POD, _HCCS, ("ranks", "<=", 32)),
    rule("RunAlltoAllVFullMesh", ("pairwise", "==", True)),
    rule("RunAlltoAllVFullMesh", ("one_plane", "==", True)),
    rule("RunAlltoAllVFullMesh", ("ranks", "<=", 2)),
    rule("RunAlltoAllVFullMesh", ASYMMETRIC),
    rule("RunAlltoAllVStaged"),
)

TABLE_910_93 = DecisionTable(
    "classic-910_93/1",
    {
        "all_reduce": _ALL_REDUCE,
        "all_gather": _ALL_GATHER,
        "reduce_scatter": _REDUCE_SCATTER,
        "all_gather_v": (refuse("AllGatherV exists on 910B, within one module"),),
        "reduce_scatter_v": (refuse("ReduceScatterV exists on 910B, within one module"),),
        **_ROOTED,
        **_ALL_TO_ALL,
        **NO_GATHER,
        **POINT_TO_POINT,
    },
)
