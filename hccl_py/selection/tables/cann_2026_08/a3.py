"""The tables of 910_93 (Atlas A3): all_reduce, all_gather and reduce_scatter.

The other ops are in `a3_others.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from hccl_py.selection.rules import Cell, DecisionTable, Multiple, OperatorFile, Rule
from hccl_py.selection.tables.cann_2026_08.a3_others import OTHERS
from hccl_py.selection.tables.cann_2026_08.shared_rows import AG_SINGLE, AR_SINGLE, RS_SINGLE
from hccl_py.selection.tables.cells import (
    AG,
    AIV,
    ANY_ORDER,
    AR,
    EVEN,
    FIXED_ORDER,
    GRAPH,
    HCCS,
    INLINE,
    KEEP_ALL_BUT_HD,
    KEEP_RINGS,
    KIB,
    MANY,
    MIB,
    MORE_PODS,
    MORE_SERVERS,
    NO_HCCS,
    ONE_POD,
    ONE_SERVER,
    OP_BASE,
    RS,
    UNEVEN,
    UNEVEN_PODS,
    at_most,
    per,
)

_DOUBLE_RING: Cell = ("level0", "==", "double_ring")
_ONE_RING: Cell = ("level0", "==", "ring")
_SOME_RING: Cell = ("level0", "in", ("ring", "double_ring"))
_NO_INLINE: Cell = ("inline", "==", False)
_AIV_SUM: tuple[Cell, ...] = (AIV, ("aiv_reduces", "==", True), EVEN)
_AIV_COPY: tuple[Cell, ...] = (AIV, ("aiv_copies", "==", True), EVEN)
_MARCH: tuple[Cell, ...] = (("unfolded", "==", True), GRAPH, _DOUBLE_RING, ONE_SERVER)
_HOST: Cell = ("host_made", "==", True)
_ZERO_COPY: Cell = ("zero_copy", "==", True)
_IN_ONE_POD: tuple[Cell, ...] = (MORE_SERVERS, ONE_POD)
_APART: Cell = ("back_to_back", "==", False)
_UNEVEN_ALL: tuple[Cell, ...] = (UNEVEN, ("uneven_pod_devices", "==", True))
_MUCH: Cell = ("total_bytes", ">", 608 * MIB)
_BLOCKS: Cell = ("pipeline_block", ">=", 4 * MIB)
_NOT_JOINED: Cell = ("joined", "==", False)
_KEEP_JOINED = (*KEEP_RINGS, "AHC", "AHC_BROKE")


def _in_rank_order(file: OperatorFile, executor: str, at: str, refused_at: str) -> tuple[Rule, ...]:
    """Return the rows of HCCL_DETERMINISTIC=strict, decided before level1."""
    ordered: tuple[Cell, ...] = (
        *(("deterministic", "==", "strict"), ("ranks", ">=", 3)),
        ("dtype", "in", ("fp16", "fp32", "bf16", "fp64")),
        ("reduce", "in", ("sum", "prod")),
    )
    conditions = OperatorFile("algorithm/impl/operator/coll_alg_operator.cc")
    return (
        conditions.refuse(
            "adding in rank order needs servers with as many devices", refused_at, *ordered, UNEVEN
        ),
        conditions.refuse(
            "adding in rank order needs superpods with as many servers",
            refused_at,
            *(*ordered, UNEVEN_PODS),
        ),
        conditions.refuse(
            "nothing multiplies in rank order", refused_at, *ordered, ("reduce", "==", "prod")
        ),
        conditions.refuse(
            "nothing adds fp64 in rank order", refused_at, *ordered, ("dtype", "==", "fp64")
        ),
        conditions.refuse("adding in rank order needs HCCS", refused_at, *ordered, NO_HCCS),
        file.take(executor, at, *ordered, early=True),
    )


def _either(
    file: OperatorFile, executor: str, at: str, *when: Cell, places: tuple[tuple[Cell, ...], ...]
) -> tuple[Rule, ...]:
    """Return a row for each of the places."""
    return tuple(file.take(executor, at, *place, *when, early=True) for place in places)


# ---- all_reduce ----

_AR_KERNEL = "AllReduceMeshAivFor91093Executor"
_AR_ALL: tuple[Cell, ...] = (*_AIV_SUM, ("barrier", "==", False))
_AR_FIXED: tuple[Cell, ...] = (*_AR_ALL, ONE_POD)
_AR_FEW: tuple[Cell, ...] = (("ranks", "<=", 8), at_most(512 * KIB))
_AR_SOME: tuple[Cell, ...] = (("ranks", ">", 8), ("bytes", "<", 8 * MIB))
_AR_PLACES: tuple[tuple[Cell, ...], ...] = (
    (*_AR_FIXED, ONE_SERVER, FIXED_ORDER),
    (*_AR_FIXED, MORE_SERVERS, HCCS),
)
_AR_ONE: tuple[Cell, ...] = (*_AR_ALL, ONE_SERVER, ANY_ORDER)


def _ar(executor: str, at: str, *when: Cell) -> Rule:
    """Return a row of hierarchical executors, which do no halving-doubling between servers."""
    return AR.take(executor, at, *when, keeps=KEEP_ALL_BUT_HD, level1="NHR")


def _ar_flat(at: str, *when: Cell) -> Rule:
    """Return a row that takes NHR through all ranks."""
    return AR.take("AllReduceComm", at, *when, level1="NHR")


_ALL_REDUCE = (
    AR_SINGLE,
    *_either(AR, _AR_KERNEL, "635-656", *_AR_FEW, places=_AR_PLACES),
    *_either(AR, _AR_KERNEL, "635-656", *_AR_SOME, places=_AR_PLACES),
    *_in_rank_order(AR, "AllReduceOrderPreservedFor91093Executor", "658-667", "1134-1166"),
    AR.take(
        "AllReduceMeshAivSmallCountExecutor",
        "645-675",
        *(*_AR_ONE, OP_BASE, ("device_bytes", "<=", MIB), ("bytes", "<", 16 * MIB)),
        early=True,
    ),
    AR.take(
        "AllReduceMeshAivSmallCountExecutor",
        "645-675",
        *(*_AR_ONE, GRAPH, ("device_bytes", "<=", 4 * MIB), at_most(190 * KIB)),
        early=True,
    ),
    AR.take(
        "AllReduceMeshAivExecutor",
        "645-678",
        *(*_AR_ONE, OP_BASE, ("device_bytes", "<=", MIB)),
        early=True,
    ),
    AR.take(
        "AllReduceMeshAivExecutor",
        "645-678",
        *(*_AR_ONE, GRAPH, ("device_bytes", "<=", 4 * MIB)),
        early=True,
    ),
    AR.take("AllReduceComm", "732-733", *_UNEVEN_ALL),
    AR.take("AllReduceARSFor91093Executor", "682-735", UNEVEN, level1="NHR", keeps=KEEP_RINGS),
    AR.take(
        "AllReduceMidCountFor91093Executor",
        "728-737",
        *(MORE_PODS, OP_BASE, ("uneven_pod_devices", "==", False), at_most(256 * KIB)),
    ),
    _ar_flat("716-740", _NO_INLINE, *_IN_ONE_POD, HCCS),
    _ar_flat("718-740", _NO_INLINE, MORE_PODS, per(4 * MIB, "devices")),
    _ar_flat("718-740", _NO_INLINE, NO_HCCS, per(4 * MIB, "devices")),
    _ar_flat("712-740", *_IN_ONE_POD, MANY, per(MIB, "devices")),
    _ar_flat("722-740", MORE_PODS, _APART, per(16 * KIB, "devices")),
    _ar_flat("722-740", NO_HCCS, MORE_SERVERS, _APART, per(16 * KIB, "devices")),
    AR.take(
        "AllReduceMeshSmallCountExecutor",
        "706-742",
        *(ONE_SERVER, OP_BASE, INLINE, MANY, per(512 * KIB, "ranks")),
        ("bytes", "<=", Multiple(Fraction(1, 4), "ccl_bytes")),
    ),
    AR.take(
        "AllReduceMeshSmallCountExecutor",
        "706-742",
        *(ONE_SERVER, GRAPH, _HOST, INLINE, MANY, per(512 * KIB, "ranks")),
    ),
    AR.take("AllReduceRingZerocopyExecutor", "743-747", _ZERO_COPY, _DOUBLE_RING),
    AR.take(
        "AllReduceRingZerocopyExecutor",
        "743-747",
        *(_ZERO_COPY, ("bytes", ">", Multiple(16 * MIB, "servers"))),
    ),
    _ar("AllReduceFastDoubleRingFor91093Executor", "754-755", _DOUBLE_RING),
    _ar("AllReduceRingFor91093Executor", "756-757", _ONE_RING),
    _ar("AllReduceComm", "758-760"),
)

# ---- all_gather ----

_AG_ACROSS: tuple[Cell, ...] = (*_AIV_COPY, *_IN_ONE_POD, HCCS)
_AG_ONE: tuple[Cell, ...] = (*_AIV_COPY, ONE_SERVER)
_AG_SMALL = "AllGatherMeshAivSmallCountExecutor"
_FIT_GATHER: Cell = ("total_bytes", "<=", Multiple(1, "gathered_limit"))
_AG_POD: tuple[Cell, ...] = (*_IN_ONE_POD, MANY, HCCS, _FIT_GATHER)
_AG_WHOLE: tuple[Cell, ...] = (ONE_SERVER, MANY, HCCS, at_most(512 * KIB))


def _ag(executor: str, at: str, *when: Cell) -> Rule:
    """Return a row of hierarchical executors."""
    return AG.take(executor, at, *when, keeps=_KEEP_JOINED, level1="NHR")


def _kernels_across(
    file: OperatorFile, executor: str, at: str, least: int, *when: Cell
) -> tuple[Rule, ...]:
    """Return the kernels of a superpod, which take less the more ranks there are."""
    few = (("ranks", "<=", 6), at_most(MIB))
    some = (("ranks", "<=", 16), at_most(512 * KIB))
    return tuple(
        file.take(executor, at, *when, *entry, early=True)
        for entry in (few, some, (at_most(least),))
    )


def _zero_copies(
    take: Callable[..., Rule], at: str, names: tuple[str, str, str], *when: Cell
) -> tuple[Rule, ...]:
    """Return the rows of user memory that all peers have registered: with a pipeline between
    superpods, without an exchange of the ranks' places, with one.
    """
    piped, plain, exchanging = names
    pods = (MORE_PODS, ("pod_ranks", ">", 1))
    large = (("given_level2", "==", ""), ("bytes", ">=", 2 * MIB))
    rows = []
    for entry in (_DOUBLE_RING, ("device_total", ">", 16 * MIB)):
        common = (*when, _ZERO_COPY, entry)
        rows += [
            take(piped, at, *common, *pods, ("given_level2", "==", "pipeline")),
            take(piped, at, *common, *pods, *large),
            take(plain, at, *common, ("servers", "<", 4)),
            take(plain, at, *common, ("joined", "==", True)),
            take(exchanging, at, *common),
        ]
    return tuple(rows)


_ALL_GATHER = (
    AG_SINGLE,
    *_kernels_across(AG, "AllGatherMeshAivFor91093Executor", "306-321", 32 * KIB, *_AG_ACROSS),
    AG.take(_AG_SMALL, "313-325", *_AG_ONE, OP_BASE, at_most(512 * KIB), early=True),
    AG.take(_AG_SMALL, "313-325", *_AG_ONE, GRAPH, at_most(760 * KIB), early=True),
    AG.take("AllGatherMeshAivExecutor", "313-327", *_AG_ONE, GRAPH, at_most(4 * MIB), early=True),
    AG.take("AllGatherComm", "368-369", *_UNEVEN_ALL),
    AG.take("AllGatherARSFor91093Executor", "370-377", UNEVEN, level1="NHR", keeps=KEEP_RINGS),
    AG.take("AllGatherComm", "335-380", MORE_PODS, _APART, at_most(16 * KIB), level1="H-D_R"),
    AG.take(
        "AllGatherComm",
        "335-380",
        *(NO_HCCS, MORE_SERVERS, _APART, at_most(16 * KIB)),
        level1="H-D_R",
    ),
    AG.take(
        "AllGatherSmallCount",
        "268-273",
        *(*_AG_WHOLE, OP_BASE, ("total_bytes", "<=", Multiple(1, "ccl_bytes"))),
    ),
    AG.take("AllGatherSmallCount", "268-273", *_AG_WHOLE, GRAPH, _HOST),
    AG.take(
        "AllGatherSmallCount",
        "282-290",
        *(*_AG_POD, ("devices_in_fours", "==", True), ("server_bytes", "<=", MIB)),
    ),
    AG.take(
        "AllGatherSmallCount",
        "282-290",
        *(*_AG_POD, ("devices_in_fours", "==", False), ("server_bytes", "<=", 512 * KIB)),
    ),
    AG.take("AllGatherMidCountFor91093Executor", "339-384", MORE_PODS, OP_BASE, at_most(256 * KIB)),
    *_zero_copies(
        AG.take,
        "385-404",
        (
            "AllGatherRingZerocopyPipelineExecutor",
            "AllGatherRingZerocopyExecutor",
            "AllGatherRingZerocopyExchangeExecutor",
        ),
    ),
    AG.take(
        "AllGatherPipelineFor91093Executor",
        "405-410",
        *(MORE_PODS, _BLOCKS, _MUCH, OP_BASE, _NOT_JOINED, _SOME_RING),
    ),
    _ag("AllGatherSemiRingExecutor", "421-422", *_MARCH),
    _ag("AlignedAllGatherDoubleRingFor91093Executor", "423-424", _DOUBLE_RING),
    _ag("AllGatherRingFor91093Executor", "425-426", _ONE_RING),
    _ag("AllGatherComm", "427-429"),
)

# ---- reduce_scatter ----

_RS_DETER = "ReduceScatterDeterExecutor"
_RS_KERNEL = "ReduceScatterMeshAivFor91093Executor"
_SEVEN: Cell = ("hccs_ports", "==", 7)
_NOT_SEVEN: Cell = ("hccs_ports", "!=", 7)
_POWER: Cell = ("ranks_are_power", "==", True)
_NO_POWER: Cell = ("ranks_are_power", "==", False)
_RS_ONE: tuple[Cell, ...] = (*_AIV_SUM, ONE_SERVER, ANY_ORDER)
_RS_SMALL = "ReduceScatterMeshAivSmallCountExecutor"
_FIT_SUM: Cell = ("total_bytes", "<=", Multiple(1, "scattered_limit"))
_RS_POD: tuple[Cell, ...] = (*_IN_ONE_POD, INLINE, MANY, HCCS, _FIT_SUM)
_RS_WHOLE: tuple[Cell, ...] = (ONE_SERVER, INLINE, MANY, HCCS, _FIT_SUM)


def _rs(executor: str, at: str, *when: Cell) -> Rule:
    """Return a row of hierarchical executors, which do no halving-doubling between servers."""
    return RS.take(executor, at, *when, keeps=KEEP_ALL_BUT_HD, level1="NHR")


def _rs_flat(at: str, *when: Cell) -> Rule:
    """Return a row that takes halving-doubling through all ranks."""
    return RS.take("ReduceScatterComm", at, *when, level1="H-D_R")


_REDUCE_SCATTER = (
    RS_SINGLE,
    RS.take(
        _RS_KERNEL,
        "424-445",
        *(*_AIV_SUM, ONE_POD, FIXED_ORDER, ("total_bytes", "<", 8 * MIB)),
        early=True,
    ),
    *_in_rank_order(RS, "ReduceScatterOrderPreservedFor91093Executor", "447-456", "1134-1166"),
    *_kernels_across(
        RS, _RS_KERNEL, "411-460", 128 * KIB, *_AIV_SUM, ANY_ORDER, *_IN_ONE_POD, HCCS
    ),
    RS.take(_RS_SMALL, "420-466", *_RS_ONE, OP_BASE, at_most(MIB), early=True),
    RS.take(
        _RS_SMALL,
        "420-466",
        *(*_RS_ONE, GRAPH, at_most(4 * MIB), per(190 * KIB, "cores_each")),
        early=True,
    ),
    RS.take(
        "ReduceScatterMeshAivExecutor", "420-469", *_RS_ONE, GRAPH, at_most(4 * MIB), early=True
    ),
    RS.take("ReduceScatterComm", "540-541", *_UNEVEN_ALL),
    RS.take("ReduceScatterARSFor91093Executor", "474-543", UNEVEN, level1="NHR", keeps=KEEP_RINGS),
    _rs_flat("528-549", _NO_INLINE, *_IN_ONE_POD, HCCS),
    *(
        _rs_flat("528-549", _NO_INLINE, place, power, at_most(size))
        for place in (MORE_PODS, NO_HCCS)
        for power, size in ((_POWER, 4 * MIB), (_NO_POWER, 2 * MIB))
    ),
    _rs_flat("522-549", *_RS_POD, _NO_POWER, at_most(256 * KIB)),
    *(
        _rs(_RS_DETER, "514-555", *_RS_WHOLE, *mode, ports, at_most(size))
        for mode in ((OP_BASE,), (GRAPH, _HOST))
        for ports, size in ((_SEVEN, 512 * KIB), (_NOT_SEVEN, MIB))
    ),
    *(
        _rs(_RS_DETER, "550-555", *_RS_POD, _POWER, ports, ("server_bytes", "<=", size))
        for ports, size in ((_SEVEN, MIB), (_NOT_SEVEN, 2 * MIB))
    ),
    *_zero_copies(
        _rs,
        "556-576",
        (
            "ReduceScatterRingZerocopyExchangePipelineExecutor",
            "ReduceScatterRingZerocopyExecutor",
            "ReduceScatterRingZerocopyExchangeExecutor",
        ),
        INLINE,
    ),
    _rs(
        "ReduceScatterPipelineFor91093Executor",
        "577-581",
        *(OP_BASE, MORE_PODS, _NOT_JOINED, ("uneven_pod_devices", "==", False), INLINE),
        *(_SOME_RING, _BLOCKS, _MUCH),
    ),
    _rs("ReduceScatterRingFor91093Executor", "583-584", _ONE_RING),
    _rs("ReduceScatterSemiRingExecutor", "585-587", *_MARCH),
    _rs("ReduceScatterFastDoubleRingFor91093Executor", "588-589", _DOUBLE_RING),
    RS.take("ReduceScatterComm", "591-593"),
)

TABLE_910_93: DecisionTable = {
    "all_reduce": _ALL_REDUCE,
    "all_gather": _ALL_GATHER,
    "reduce_scatter": _REDUCE_SCATTER,
    **OTHERS,
}
