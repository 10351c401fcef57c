"""Cells and rows that several tables share."""

from __future__ import annotations

from typing import Any

from hccl_py.ops import ALL_TO_ALL
from hccl_py.selection.rules import Rule, refuse, rule

__all__ = [
    "AIV",
    "AIV_LARGEST",
    "ANY_ORDER",
    "ASYMMETRIC",
    "FIXED_ORDER",
    "GRAPH",
    "INLINE",
    "IN_RANK_ORDER",
    "KIB",
    "MANY",
    "MESH",
    "MIB",
    "MORE_SERVERS",
    "NO_GATHER",
    "ONE_POD",
    "ONE_SERVER",
    "OP_BASE",
    "PAIR",
    "PIPELINE",
    "POINT_TO_POINT",
    "RDMA_INLINE",
    "RING",
    "SINGLE",
    "STRICT",
    "SYMMETRIC",
    "UNCOPIED",
    "Cell",
    "for_family",
    "in_rank_order",
]

Cell = tuple[str, str, Any]

KIB, MIB = 1 << 10, 1 << 20

SINGLE: Cell = ("ranks", "==", 1)
MESH: Cell = ("level0", "in", ("mesh", "4p_mesh", "2p_mesh"))
RING: Cell = ("level0", "in", ("ring", "8p_ring"))
OP_BASE: Cell = ("mode", "==", "op_base")
GRAPH: Cell = ("mode", "==", "graph")
ONE_SERVER: Cell = ("servers", "==", 1)
MORE_SERVERS: Cell = ("servers", ">", 1)
ONE_POD: Cell = ("superpods", "==", 1)
SYMMETRIC: Cell = ("symmetric", "==", True)
ASYMMETRIC: Cell = ("symmetric", "==", False)
PAIR: Cell = ("devices", "<=", 2)
MANY: Cell = ("devices", ">", 2)
INLINE: Cell = ("inline", "==", True)
RDMA_INLINE: Cell = ("rdma_inline", "==", True)
ANY_ORDER: Cell = ("deterministic", "==", False)
FIXED_ORDER: Cell = ("deterministic", "==", True)
PIPELINE: Cell = ("level1", "==", "pipeline")
AIV: Cell = ("aiv", "==", True)

AIV_LARGEST: Cell = ("bytes", "<=", 256 * MIB)
"""Vector cores take no more."""

STRICT: Cell = ("strict", "==", True)

IN_RANK_ORDER: tuple[Cell, ...] = (
    STRICT,
    ("ranks", ">=", 3),
    ("reduce", "==", "sum"),
    ("dtype", "in", ("fp16", "fp32", "bf16")),
)
"""Two ranks commute; integers, max and min come out the same in any order."""


def in_rank_order(executor: str, *refused: Cell) -> tuple[Rule, ...]:
    """Return the rows of HCCL_DETERMINISTIC=strict, which uneven servers refuse for calls with all
    of these cells. [H]
    """
    return (
        refuse("adding in rank order needs servers with as many devices", *refused, ASYMMETRIC),
        rule(executor, *IN_RANK_ORDER),
    )


POINT_TO_POINT: dict[str, tuple[Rule, ...]] = {
    "send_recv": (rule("SendExecutor"),),
    "batch_send_recv": (rule("BatchSendRecv"),),
}
"""Ranks that receive take ReceiveExecutor. BatchSendRecvRetry needs re-execution, which is off."""

NO_GATHER: dict[str, tuple[Rule, ...]] = {
    "gather": (refuse("gather is no op of HCCL's API, and no executor is registered for it"),)
}


def for_family(*rows: Rule) -> dict[str, tuple[Rule, ...]]:
    """Return the same rows for all_to_all, all_to_all_v and all_to_all_vc."""
    return dict.fromkeys(ALL_TO_ALL, rows)


UNCOPIED = ("RunAlltoAllDirectFullmesh",)
"""All-to-all executors whose tag does not say whether data fits the CCL buffers."""
