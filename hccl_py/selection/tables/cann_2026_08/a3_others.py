"""The tables of 910_93 (Atlas A3): ops by counts, with a root, all-to-all."""

from __future__ import annotations

from hccl_py.call.ops import ALL_TO_ALL
from hccl_py.selection.rules import Cell, Multiple, Rule
from hccl_py.selection.tables.cann_2026_08.shared_rows import (
    POINT_TO_POINT,
    RE_SINGLE,
    SC_SINGLE,
    STAGED,
)
from hccl_py.selection.tables.cells import (
    A2A,
    AGV,
    AIV,
    BC,
    GRAPH,
    HCCS,
    KEEP_RINGS,
    KIB,
    MANY,
    MIB,
    MORE_PODS,
    MORE_SERVERS,
    NO_GATHER,
    NO_HCCS,
    ONE_MESH,
    ONE_POD,
    ONE_SERVER,
    OP_BASE,
    RE,
    RSV,
    SC,
    SINGLE,
    UNEVEN,
    UNEVEN_PODS,
    at_most,
    exchange,
    per,
)

_DOUBLE_RING: Cell = ("level0", "==", "double_ring")
_ONE_RING: Cell = ("level0", "==", "ring")
_SOME_RING: Cell = ("level0", "in", ("ring", "double_ring"))
_SEVEN_PORTS: Cell = ("hccs_ports", "==", 7)
_HOST: Cell = ("host_made", "==", True)
_AIV_COPY: tuple[Cell, ...] = (AIV, ("aiv_copies", "==", True))
_IN_ONE_POD: tuple[Cell, ...] = (MORE_SERVERS, ONE_POD)
_EVEN_AGV = "AllGatherV needs servers and superpods of the same size"
_EVEN_RSV = "ReduceScatterV needs servers and superpods of the same size"

_V_OPS = {
    "all_gather_v": (
        AGV.refuse(_EVEN_AGV, "84-89", UNEVEN),
        AGV.refuse(_EVEN_AGV, "84-89", UNEVEN_PODS),
        AGV.take(
            "AlignedAllGatherVDoubleRingFor91093Executor",
            "91-99",
            _DOUBLE_RING,
            level1="NHR",
            keeps=KEEP_RINGS,
        ),
        AGV.take("AllGatherVRingFor91093Executor", "91-102", level1="NHR", keeps=KEEP_RINGS),
    ),
    "reduce_scatter_v": (
        RSV.refuse(_EVEN_RSV, "90-95", UNEVEN),
        RSV.refuse(_EVEN_RSV, "90-95", UNEVEN_PODS),
        RSV.take(
            "ReduceScatterVRingFor91093Executor", "97-98", _ONE_RING, level1="NHR", keeps=KEEP_RINGS
        ),
        RSV.take(
            "ReduceScatterVFastDoubleRingFor91093Executor",
            "99-102",
            *(_DOUBLE_RING, _SEVEN_PORTS),
            level1="NHR",
            keeps=KEEP_RINGS,
        ),
        RSV.take(
            "AlignedReduceScatterVDoubleRingFor91093Executor",
            "99-105",
            _DOUBLE_RING,
            level1="NHR",
            keeps=KEEP_RINGS,
        ),
        RSV.refuse("ReduceScatterV needs rings between the devices of a server", "106-109"),
    ),
}

_FEW: tuple[Cell, ...] = (("ranks", "<=", 8), at_most(512 * KIB))
_SOME: tuple[Cell, ...] = (("ranks", ">", 8), at_most(MIB))
_BC_BUFFER: tuple[Cell, ...] = (OP_BASE, ("ccl_bytes", ">=", 16 * MIB))
_BC_GRAPH: tuple[Cell, ...] = (GRAPH, at_most(16 * MIB))
_BC_POD: tuple[Cell, ...] = (*_AIV_COPY, *_IN_ONE_POD, HCCS)
_APART: Cell = ("back_to_back", "==", False)


def _bc(executor: str, at: str, *when: Cell) -> Rule:
    """Return a row: broadcast knows two algorithms between servers here."""
    return BC.take(executor, at, *when, keeps=("NHR", "NB"), level1="NHR")


def _bc_flat(at: str, *when: Cell) -> Rule:
    """Return a row that takes NHR through all ranks."""
    return BC.take("BroadCastComm", at, *when, level1="NHR")


_BROADCAST = (
    _bc(
        "BroadcastMeshAivExecutor",
        "207-239",
        *_AIV_COPY,
        ONE_MESH,
        *_BC_BUFFER,
        at_most(4096 * MIB),
    ),
    _bc("BroadcastMeshAivExecutor", "208-239", *_AIV_COPY, ONE_SERVER, *_BC_GRAPH),
    _bc("BroadcastMeshAivFor91093Executor", "209-241", *_BC_POD, *_BC_BUFFER, *_FEW),
    _bc("BroadcastMeshAivFor91093Executor", "209-241", *_BC_POD, *_BC_BUFFER, *_SOME),
    _bc("BroadcastMeshAivFor91093Executor", "208-241", *_BC_POD, *_BC_GRAPH),
    _bc("BroadCastComm", "243-244", UNEVEN),
    _bc("BroadCastComm", "243-244", UNEVEN_PODS),
    _bc_flat("224-247", *_IN_ONE_POD, MANY, per(MIB, "devices")),
    _bc_flat("229-247", MORE_PODS, _APART, per(16 * KIB, "devices")),
    _bc_flat("229-247", NO_HCCS, MORE_SERVERS, _APART, per(16 * KIB, "devices")),
    _bc(
        "BroadcastMidCountFor91093Executor",
        "233-249",
        *(("back_to_back", "==", True), OP_BASE, per(16 * KIB, "devices")),
    ),
    _bc(
        "BroadCastSmallCountExecutor",
        "218-251",
        *(ONE_SERVER, _HOST, MANY, per(512 * KIB, "ranks")),
    ),
    _bc("BroadCastRingZerocopyExecutor", "252-256", ("zero_copy", "==", True), _DOUBLE_RING),
    _bc(
        "BroadCastRingZerocopyExecutor",
        "252-256",
        *(("zero_copy", "==", True), ("bytes", ">", Multiple(16 * MIB, "servers"))),
    ),
    _bc("BroadCastRingFor91093Executor", "257-258", _SOME_RING),
    _bc("BroadCastComm", "259-261"),
)

_ROOTED = {
    "broadcast": _BROADCAST,
    "reduce": (
        RE_SINGLE,
        RE.take("ReduceComm", "147-161", UNEVEN, level1="ring"),
        RE.take("ReduceComm", "147-161", UNEVEN_PODS, level1="ring"),
        RE.take("ReduceRingFor91093Executor", "149-161", _SOME_RING, level1="ring"),
        RE.take("ReduceComm", "151-161", level1="ring"),
    ),
    "scatter": (
        SC_SINGLE,
        SC.take("ScatterCommExecutor", "86-87", UNEVEN),
        SC.take("ScatterCommExecutor", "86-87", UNEVEN_PODS),
        SC.take("ScatterRingFor91093Executor", "90-92", _SOME_RING),
        SC.take("ScatterCommExecutor", "96-98"),
    ),
}

_EXCHANGE: tuple[Cell, ...] = (*_AIV_COPY, ("ranks", ">", 1))
_BUFFER: tuple[Cell, ...] = (OP_BASE, ("ccl_bytes", ">=", 8 * MIB))


def _kernels(op: str) -> tuple[Rule, ...]:
    """Return the kernels of vector cores."""
    one = (*_EXCHANGE, ONE_SERVER)
    few: tuple[Cell, ...] = (at_most(512 * KIB),) if op == "all_to_all" else ()
    across = tuple(
        exchange(
            "AlltoAllMeshAivFor91093Executor", "220-221", *_EXCHANGE, *_IN_ONE_POD, HCCS, *mode
        )
        for mode in (_BUFFER, (GRAPH,))
    )
    small = exchange(
        "AlltoAllMeshAivSmallCountExecutor", "222-226", *one, GRAPH, at_most(760 * KIB)
    )
    return (
        *across,
        exchange("AlltoAllMeshAivExecutor", "633-659", *one, *_BUFFER, *few),
        *((small,) if op == "all_to_all" else ()),
        exchange("AlltoAllMeshAivExecutor", "633-659", *one, GRAPH),
    )


def _exchanges(op: str) -> tuple[Rule, ...]:
    """Return the rows of one op of the family."""
    return (
        *_kernels(op),
        exchange(
            "RunAlltoAllSingleExecutor", "263-266", SINGLE, OP_BASE, ("unfolded", "==", False)
        ),
        A2A.take(
            "RunAlltoAllVPipelineFor91093",
            "696-724",
            *(("back_to_back", "==", True), ("devices", ">", 1)),
            *(("uneven_pod_devices", "==", False), OP_BASE, ("ccl_bytes", ">=", 80 * MIB)),
            ("level1", "in", ("pipeline", "ring", "H-D_R", "NHR")),
            level1="pipeline",
        ),
        *(
            exchange("RunAlltoAllDirectFullmesh", "273-284", place)
            for place in (ONE_SERVER, HCCS, ("unfolded", "==", True))
        ),
        exchange("RunAlltoAllVFullMesh", "293-297", ONE_POD, HCCS, ("ranks", "<=", 32), OP_BASE),
        exchange("RunAlltoAllVFullMesh", "293-297", ("pairwise", "==", True)),
        exchange("RunAlltoAllVFullMesh", "293-297", ("one_plane", "==", True)),
        exchange("RunAlltoAllVFullMesh", "293-297", ("ranks", "<=", 2)),
        exchange("RunAlltoAllVFullMesh", "293-297", UNEVEN),
        exchange("RunAlltoAllVFullMesh", "293-297", UNEVEN_PODS),
        *STAGED,
    )


OTHERS: dict[str, tuple[Rule, ...]] = {
    **_V_OPS,
    **_ROOTED,
    **{op: _exchanges(op) for op in ALL_TO_ALL},
    **NO_GATHER,
    **POINT_TO_POINT,
}
