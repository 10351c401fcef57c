"""Rows of July 2025 that all devices share."""

from hccl_py.selection.rules import OperatorFile, Rule
from hccl_py.selection.tables.cells import (
    AR,
    BATCH,
    OP_BASE,
    PAIRWISE_INSIDE,
    RE,
    SEND,
    SINGLE,
    STAGED_EXECUTOR,
    exchange,
)

COMMUNICATOR = OperatorFile("framework/communicator/impl/hccl_communicator.cc")

AR_SINGLE = AR.take("AllReduceSingleExecutor", "112-116", SINGLE, OP_BASE, early=True)
RE_SINGLE = RE.take("ReduceSingleExecutor", "36-40", SINGLE, OP_BASE)

POINT_TO_POINT: dict[str, tuple[Rule, ...]] = {
    "send_recv": (SEND.take("SendExecutor", "29"),),
    "batch_send_recv": (BATCH.take("BatchSendRecv", "26-30"),),
}
"""Ranks that receive take ReceiveExecutor. BatchSendRecvRetry needs re-execution, which is off."""

STAGED = (
    STAGED_EXECUTOR.take(
        *("RunAlltoAllVStaged", "242-251", PAIRWISE_INSIDE), level0="pairwise", level1="pairwise"
    ),
    exchange("RunAlltoAllVStaged", "248-250"),
)
"""The exchange in two steps, whose executor looks at HCCL_ALGO by itself."""
