"""Rows of AIV, kernels of the vector cores; AIV_ONLY is without the limit of bytes per rank."""

from __future__ import annotations

from hccl_py.selection.rules import Cell, DecisionTable, Multiple, OperatorFile, Rule
from hccl_py.selection.tables.hccl_2026_08.cells_950 import (
    AIV_EACH,
    AIV_LOOPS,
    AIV_RANKS,
    AIV_RANKS_V,
    BOTH,
    KIB,
    MESH,
    PCIE,
    PROD,
    SMALL,
    STRICT,
    THREE_LEVELS,
    UB_RTP,
    below,
    selector,
    within,
)

_ENGINE = "AIV"
_WIDE: Cell = ("dtype", "in", ("uint64", "fp64"))
_MAY_LEAVE: Cell = ("aiv_only", "==", False)
_UBX: tuple[Cell, ...] = (BOTH, ("pcie0", "==", False))


def _beyond(file: OperatorFile, ranks: str, rtp: str, levels: str, most: int) -> tuple[Rule, ...]:
    """Return the rows for networks that kernels are not for; the arguments are their lines."""
    return (
        file.leave("more ranks than the kernels take", ranks, ("ranks", ">", most)),
        file.leave("the top links are UB_RTP", rtp, UB_RTP),
        file.leave("kernels are for one and two levels", levels, THREE_LEVELS),
    )


def _reducing(file: OperatorFile, order: str, prod: str, wide: str) -> tuple[Rule, ...]:
    """Return the rows for reductions that kernels do not do."""
    ordered = (file.leave("sums in rank order are for AICPU_TS", order, STRICT),) if order else ()
    return (
        *ordered,
        file.leave("vector cores do not multiply", prod, PROD),
        file.leave("vector cores do not reduce uint64 and fp64", wide, _WIDE),
    )


def _sized(file: OperatorFile, fact: str, each: str, loops: str) -> tuple[Rule, ...]:
    """Return the rows for sizes that kernels leave; `fact` has the bytes that are compared."""
    return (
        file.leave(
            "AICPU_TS is faster at this size",
            each,
            _MAY_LEAVE,
            (fact, ">=", Multiple(AIV_EACH, "ranks")),
        ),
        *_looped(file, fact, loops),
    )


def _looped(file: OperatorFile, fact: str, loops: str) -> tuple[Rule, ...]:
    most = Multiple(AIV_LOOPS, "ccl_bytes")
    return (file.leave("the HCCL buffer is too small for this size", loops, (fact, ">", most)),)


_AR = selector(_ENGINE, "all_reduce")
_AG = selector(_ENGINE, "all_gather")
_RS = selector(_ENGINE, "reduce_scatter")
_BC = selector(_ENGINE, "broadcast")
_RE = selector(_ENGINE, "reduce")
_SC = selector(_ENGINE, "scatter")
_A2A = selector(_ENGINE, "all_to_all_v", "alltoall")
_A2AV = selector(_ENGINE, "all_to_all_v", "alltoallv")
_A2AVC = selector(_ENGINE, "all_to_all_v", "alltoallvc")
_SEND = selector(_ENGINE, "send")

_LARGE = "AICPU_TS is faster at this size"
_LARGE_AG = (_MAY_LEAVE, ("total_bytes", ">=", Multiple(AIV_EACH, "ranks")))
_LARGE_BC = (_MAY_LEAVE, ("bytes", ">=", Multiple(AIV_EACH, "ranks")))


def _unless_ubx(
    file: OperatorFile, line: str, large: tuple[Cell, ...], *kept: Cell
) -> tuple[Rule, ...]:
    """Return the rows for large calls, which some numbers of ranks keep on UBX: those that none of
    the cells `kept` is for.
    """
    return (
        file.leave(_LARGE, line, *large, ("shape0", "!=", "mesh+clos")),
        file.leave(_LARGE, line, *large, PCIE),
        *(file.leave(_LARGE, line, *large, *_UBX, cell) for cell in kept),
    )


TABLE: DecisionTable = {
    "all_reduce": (
        *_reducing(_AR, "619", "627", "632"),
        *_beyond(_AR, "639", "602", "610", AIV_RANKS),
        *_sized(_AR, "bytes", "655", "661"),
        *within(
            (MESH,),
            _AR.take("AivAllReduceSoleMeshOneShot", "669", ("ranks", "<=", 8), below(128 * KIB)),
            _AR.take("AivAllReduceSoleMeshOneShot", "675", ("ranks", ">", 8), below(SMALL)),
        ),
        _AR.take("AivAllReduceSoleMeshTwoShot", "665, 671, 677"),
    ),
    "reduce_scatter": (
        *_reducing(_RS, "566", "574", "579"),
        *_beyond(_RS, "586", "548", "557", AIV_RANKS),
        *_sized(_RS, "total_bytes", "603", "609"),
        _RS.take("AivReduceScatterSoleMesh", "612"),
    ),
    "all_gather": (
        *_beyond(_AG, "418", "425", "433", AIV_RANKS),
        *_unless_ubx(_AG, "454", _LARGE_AG, ("ranks", ">", 8), ("ranks", "<=", 4)),
        *_looped(_AG, "total_bytes", "460"),
        _AG.take("AivAllGatherSoleMesh", "463"),
    ),
    "broadcast": (
        *_beyond(_BC, "268", "275", "283", AIV_RANKS),
        *_unless_ubx(_BC, "301", _LARGE_BC, ("ranks", ">", 8)),
        *_looped(_BC, "bytes", "307"),
        _BC.take("AivBroadcastSoleMesh", "309"),
    ),
    "reduce": (
        *_reducing(_RE, "", "400", "405"),
        *_beyond(_RE, "412", "383", "391", AIV_RANKS),
        *_sized(_RE, "bytes", "428", "434"),
        _RE.take("AivReduceSoleMesh", "437"),
    ),
    "scatter": (
        *_beyond(_SC, "225", "232", "240", AIV_RANKS),
        *_sized(_SC, "total_bytes", "256", "262"),
        _SC.take("AivScatterSoleMesh", "265"),
    ),
    "all_to_all": (
        *_beyond(_A2A, "207", "214", "222", AIV_RANKS),
        *_sized(_A2A, "total_bytes", "242", "248"),
        _A2A.take("AivAllToAllSoleMesh", "250"),
    ),
    "all_to_all_v": (
        *_beyond(_A2AV, "156", "163", "171", AIV_RANKS_V),
        _A2AV.take("AivAllToAllVSoleMesh", "174"),
    ),
    "all_to_all_vc": (
        *_beyond(_A2AVC, "79", "86", "95", AIV_RANKS_V),
        _A2AVC.take("AivAllToAllVSoleMesh", "98"),
    ),
    "send_recv": (
        _SEND.leave("the top links are UB_RTP", "37", UB_RTP),
        _SEND.leave("kernels are for one and two levels", "45", THREE_LEVELS),
        _SEND.take("AivSendSole", "49"),
    ),
}
"""An op that the table lacks has no kernel."""
