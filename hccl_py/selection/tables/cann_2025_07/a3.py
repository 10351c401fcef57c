"""The tables of 910_93 (Atlas A3).

Re-execution is off by default in HCCL and not offered here, so its conditions are left out.
"""

from __future__ import annotations

from fractions import Fraction

from hccl_py.selection.rules import Cell, DecisionTable, Multiple, Rule
from hccl_py.selection.tables.cann_2025_07.shared_rows import (
    AR_SINGLE,
    POINT_TO_POINT,
    RE_SINGLE,
    STAGED,
)
from hccl_py.selection.tables.cells import (
    AG,
    AGV,
    AIV,
    AR,
    BC,
    GRAPH,
    HCCS,
    INLINE,
    KEEP_ALL_BUT_HD,
    KEEP_RINGS,
    KIB,
    MANY,
    MIB,
    MORE_SERVERS,
    NO_GATHER,
    ONE_POD,
    ONE_SERVER,
    OP_BASE,
    RE,
    RS,
    RSV,
    SC,
    SINGLE,
    UNEVEN,
    UNEVEN_PODS,
    at_most,
    exchange,
    for_family,
    per,
)

_DOUBLE_RING: Cell = ("level0", "==", "double_ring")
_ONE_RING: Cell = ("level0", "==", "ring")
_SOME_RING: Cell = ("level0", "in", ("ring", "double_ring"))
_AIV_REDUCE: tuple[Cell, ...] = (AIV, ("aiv_reduces", "==", True), ONE_SERVER)
_AIV_COPY: tuple[Cell, ...] = (AIV, ("aiv_copies", "==", True), ONE_SERVER)
_SEVEN_PORTS: Cell = ("hccs_ports", "==", 7)
_MARCH: tuple[Cell, ...] = (("unfolded", "==", True), GRAPH, _DOUBLE_RING, ONE_SERVER)
_HOST: Cell = ("host_made", "==", True)
_IN_ONE_POD: tuple[Cell, ...] = (MORE_SERVERS, ONE_POD, MANY)


def _ar(executor: str, at: str, *when: Cell) -> Rule:
    """Return a row of hierarchical executors, which do no halving-doubling between servers."""
    return AR.take(executor, at, *when, keeps=KEEP_ALL_BUT_HD, level1="NHR")


_AR_ENTRY: tuple[Cell, ...] = (*_AIV_REDUCE, ("device_bytes", "<=", MIB))

_ALL_REDUCE = (
    AR_SINGLE,
    AR.take(
        "AllReduceMeshOpbaseBigCountAivExecutor",
        "463-470",
        *(*_AR_ENTRY, OP_BASE, ("bytes", ">=", 16 * MIB)),
        early=True,
    ),
    AR.take("AllReduceMeshAivExecutor", "463-473", *_AR_ENTRY, early=True),
    AR.take("AllReduceComm", "501-502", UNEVEN),
    AR.take("AllReduceComm", "498-505", *_IN_ONE_POD, per(256 * KIB, "ranks"), level1="NHR"),
    AR.take(
        "AllReduceMeshSmallCountExecutor",
        "485-507",
        *(ONE_SERVER, OP_BASE, INLINE, MANY, per(MIB, "ranks")),
        ("bytes", "<=", Multiple(Fraction(1, 4), "ccl_bytes")),
    ),
    AR.take(
        "AllReduceMeshSmallCountExecutor",
        "488-507",
        *(ONE_SERVER, GRAPH, _HOST, INLINE, MANY, per(MIB, "ranks")),
    ),
    _ar("AllReduceFastDoubleRingFor91093Executor", "526-529", _DOUBLE_RING, _SEVEN_PORTS),
    _ar("AlignedAllReduceDoubleRingFor91093Executor", "526-532", _DOUBLE_RING),
    _ar("AllReduceRingFor91093Executor", "533-534", _ONE_RING),
    _ar("AllReduceComm", "535-537"),
)


def _small_gather(in_fours: bool, size: int) -> Rule:
    return AG.take(
        "AllGatherSmallCount",
        "208-226",
        *(*_IN_ONE_POD, HCCS, ("devices_in_fours", "==", in_fours), at_most(size)),
        ("total_bytes", "<=", Multiple(1, "gathered_limit")),
    )


def _ag(executor: str, at: str, *when: Cell) -> Rule:
    """Return a row of hierarchical executors."""
    return AG.take(executor, at, *when, keeps=KEEP_RINGS, level1="NHR")


_SMALL_AG: tuple[Cell, ...] = (ONE_SERVER, MANY, HCCS, at_most(2 * MIB))

_ALL_GATHER = (
    AG.take("AllGatherSingleExecutor", "32-35", SINGLE, OP_BASE),
    AG.take(
        "AllGatherMeshAivSmallCountExecutor",
        "239-246",
        *(*_AIV_COPY, OP_BASE, at_most(512 * KIB)),
        early=True,
    ),
    AG.take(
        "AllGatherMeshAivSmallCountExecutor",
        "241-246",
        *(*_AIV_COPY, GRAPH, at_most(760 * KIB)),
        early=True,
    ),
    AG.take("AllGatherMeshAivExecutor", "241-248", *_AIV_COPY, GRAPH, at_most(4 * MIB), early=True),
    AG.take("AllGatherComm", "261-262", UNEVEN),
    AG.take("AllGatherComm", "261-262", UNEVEN_PODS),
    _small_gather(in_fours=True, size=4 * MIB),
    _small_gather(in_fours=False, size=MIB),
    AG.take("AllGatherMeshOpbaseExecutor", "254-267", *_SMALL_AG, OP_BASE),
    AG.take("AllGatherMeshExecutor", "254-269", *_SMALL_AG, GRAPH, _HOST),
    _ag("AllGatherSemiRingExecutor", "291-292", *_MARCH),
    _ag("AlignedAllGatherDoubleRingFor91093Executor", "293-294", _DOUBLE_RING),
    _ag("AllGatherRingFor91093Executor", "295-296", _ONE_RING),
    _ag("AllGatherComm", "297-299"),
)


def _rs(executor: str, at: str, *when: Cell) -> Rule:
    """Return a row of hierarchical executors, which do no halving-doubling between servers."""
    return RS.take(executor, at, *when, keeps=KEEP_ALL_BUT_HD, level1="NHR")


_SMALL_RS: tuple[Cell, ...] = (*_IN_ONE_POD, INLINE, HCCS)
_RS_DETER = "ReduceScatterDeterExecutor"
_POWER: Cell = ("ranks_are_power", "==", True)

_REDUCE_SCATTER = (
    RS.take("ReduceScatterSingleExecutor", "29-32", SINGLE),
    RS.take(
        "ReduceScatterMeshAivSmallCountExecutor",
        "240-246",
        *(*_AIV_REDUCE, OP_BASE, at_most(MIB)),
        early=True,
    ),
    RS.take(
        "ReduceScatterMeshAivSmallCountExecutor",
        "242-246",
        *(*_AIV_REDUCE, GRAPH, at_most(760 * KIB), ("ranks", "<=", 12)),
        early=True,
    ),
    RS.take(
        "ReduceScatterMeshAivExecutor", "242-248", *_AIV_REDUCE, GRAPH, at_most(4 * MIB), early=True
    ),
    RS.take("ReduceScatterComm", "274-275", UNEVEN),
    RS.take("ReduceScatterComm", "274-275", UNEVEN_PODS),
    RS.take(
        "ReduceScatterComm",
        "270-279",
        *(*_SMALL_RS, ("ranks_are_power", "==", False), at_most(256 * KIB)),
        level1="H-D_R",
    ),
    _rs(_RS_DETER, "254-283", ONE_SERVER, OP_BASE, INLINE, MANY, at_most(2 * MIB), HCCS),
    _rs(_RS_DETER, "254-283", ONE_SERVER, GRAPH, _HOST, INLINE, MANY, at_most(2 * MIB), HCCS),
    _rs(
        _RS_DETER,
        "270-283",
        *(*_SMALL_RS, _POWER, at_most(512 * KIB)),
        ("total_bytes", "<=", Multiple(1, "scattered_limit")),
    ),
    _rs("ReduceScatterRingFor91093Executor", "284-285", _ONE_RING),
    _rs("ReduceScatterSemiRingExecutor", "286-288", *_MARCH),
    _rs("ReduceScatterFastDoubleRingFor91093Executor", "298-300", _DOUBLE_RING, _SEVEN_PORTS),
    _rs("AlignedReduceScatterDoubleRingFor91093Executor", "298-303", _DOUBLE_RING),
    RS.take("ReduceScatterComm", "305-307"),
)


def _bc(executor: str, at: str, *when: Cell) -> Rule:
    """Return a row: broadcast knows two algorithms between servers here."""
    return BC.take(executor, at, *when, keeps=("NHR", "NB"), level1="NHR")


_ROOTED = {
    "broadcast": (
        _bc("BroadCastComm", "179-180", UNEVEN),
        _bc("BroadCastComm", "179-180", UNEVEN_PODS),
        BC.take("BroadCastComm", "176-183", *_IN_ONE_POD, per(256 * KIB, "ranks"), level1="NHR"),
        _bc(
            "BroadCastSmallCountExecutor",
            "169-185",
            *(ONE_SERVER, _HOST, MANY, per(2 * MIB, "ranks")),
        ),
        _bc("BroadCastRingFor91093Executor", "186-187", _SOME_RING),
        _bc("BroadCastComm", "188-190"),
    ),
    "reduce": (
        RE_SINGLE,
        RE.take("ReduceComm", "124-137", UNEVEN, level1="ring"),
        RE.take("ReduceComm", "124-137", UNEVEN_PODS, level1="ring"),
        RE.take("ReduceRingFor91093Executor", "126-137", _SOME_RING, level1="ring"),
        RE.take("ReduceComm", "128-137", level1="ring"),
    ),
    "scatter": (
        SC.take("ScatterSingleExecutor", "41-44", SINGLE, OP_BASE),
        SC.take("ScatterCommExecutor", "70-71", UNEVEN),
        SC.take("ScatterCommExecutor", "70-71", UNEVEN_PODS),
        SC.take("ScatterRingFor91093Executor", "74-76", _SOME_RING),
        SC.take("ScatterCommExecutor", "80-82"),
    ),
}

_AIV_EXCHANGE: tuple[Cell, ...] = (AIV, ("aiv_copies", "==", True), ("ranks", ">", 1))
_BUFFER: Cell = ("ccl_bytes", ">=", 8 * MIB)


def _exchanges(*entry: Cell) -> tuple[Rule, ...]:
    """Return the rows of the family; `entry` are the calls of one server for vector cores."""
    return (
        exchange(
            "AlltoAllMeshAivFor91093Executor",
            "209-210",
            *(*_AIV_EXCHANGE, OP_BASE, _BUFFER, MORE_SERVERS, ONE_POD, HCCS),
        ),
        exchange(
            "AlltoAllMeshAivFor91093Executor",
            "209-210",
            *(*_AIV_EXCHANGE, GRAPH, MORE_SERVERS, ONE_POD, HCCS),
        ),
        exchange("AlltoAllMeshAivExecutor", "482-492", *_AIV_EXCHANGE, OP_BASE, _BUFFER, *entry),
        exchange("AlltoAllMeshAivExecutor", "482-492", *_AIV_EXCHANGE, GRAPH, *entry),
        exchange(
            "RunAlltoAllSingleExecutor", "232-234", SINGLE, OP_BASE, ("unfolded", "==", False)
        ),
        exchange("RunAlltoAllDirectFullmesh", "237-241", OP_BASE, HCCS),
        exchange("RunAlltoAllDirectFullmesh", "237-241", ("unfolded", "==", True)),
        exchange("RunAlltoAllVFullMesh", "244-247", ONE_POD, HCCS, ("ranks", "<=", 32), OP_BASE),
        exchange("RunAlltoAllVFullMesh", "244-247", ("pairwise", "==", True)),
        exchange("RunAlltoAllVFullMesh", "244-247", ("one_plane", "==", True)),
        exchange("RunAlltoAllVFullMesh", "244-247", ("ranks", "<=", 2)),
        exchange("RunAlltoAllVFullMesh", "244-247", UNEVEN),
        exchange("RunAlltoAllVFullMesh", "244-247", UNEVEN_PODS),
        *STAGED,
    )


_ALL_TO_ALL = for_family(*_exchanges(ONE_SERVER)) | {
    "all_to_all": _exchanges(ONE_SERVER, at_most(512 * KIB))
}

TABLE_910_93: DecisionTable = {
    "all_reduce": _ALL_REDUCE,
    "all_gather": _ALL_GATHER,
    "reduce_scatter": _REDUCE_SCATTER,
    "all_gather_v": (AGV.refuse("AllGatherV exists on 910B and 310P3", "33-40"),),
    "reduce_scatter_v": (RSV.refuse("ReduceScatterV exists on 910B and 310P3", "31-38"),),
    **_ROOTED,
    **_ALL_TO_ALL,
    **NO_GATHER,
    **POINT_TO_POINT,
}
