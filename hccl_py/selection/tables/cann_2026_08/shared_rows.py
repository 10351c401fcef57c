"""Rows of August 2026 that all devices share."""

from hccl_py.selection.rules import OperatorFile, Rule
from hccl_py.selection.tables.cells import (
    AG,
    AR,
    BATCH,
    PAIRWISE_INSIDE,
    RE,
    RS,
    SC,
    SEND,
    SINGLE,
    STAGED_EXECUTOR,
    exchange,
)

COMMUNICATOR = OperatorFile("framework/communicator/impl/hccl_communicator_host.cc")

AR_SINGLE = AR.take("AllReduceSingleExecutor", "111-115", SINGLE, early=True)
AG_SINGLE = AG.take("AllGatherSingleExecutor", "36-40", SINGLE, early=True)
RS_SINGLE = RS.take("ReduceScatterSingleExecutor", "47-50", SINGLE, early=True)
RE_SINGLE = RE.take("ReduceSingleExecutor", "36-40", SINGLE)
SC_SINGLE = SC.take("ScatterSingleExecutor", "41-45", SINGLE)

POINT_TO_POINT: dict[str, tuple[Rule, ...]] = {
    "send_recv": (SEND.take("SendExecutor", "25"),),
    "batch_send_recv": (BATCH.take("BatchSendRecv", "25-31"),),
}
"""Ranks that receive take ReceiveExecutor. BatchSendRecvRetry needs re-execution, which is off, and
BatchSendRecvGroup calls between HcclGroupStart and HcclGroupEnd, which no call says of itself here.
"""

STAGED = (
    STAGED_EXECUTOR.take(
        *("RunAlltoAllVStaged", "260-273", PAIRWISE_INSIDE), level0="pairwise", level1="pairwise"
    ),
    exchange("RunAlltoAllVStaged", "298-300"),
)
"""The exchange in two steps, whose executor looks at HCCL_ALGO by itself."""
