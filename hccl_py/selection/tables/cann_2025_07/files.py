"""The files that rows come from, and rows that all devices share."""

from hccl_py.selection.rules import OperatorFile, Rule
from hccl_py.selection.tables.cells import OP_BASE, PAIRWISE_INSIDE, SINGLE

_OPERATORS = "algorithm/impl/operator/"

AR = OperatorFile(_OPERATORS + "all_reduce_operator.cc")
AG = OperatorFile(_OPERATORS + "all_gather_operator.cc")
AGV = OperatorFile(_OPERATORS + "all_gather_v_operator.cc")
RS = OperatorFile(_OPERATORS + "reduce_scatter_operator.cc")
RSV = OperatorFile(_OPERATORS + "reduce_scatter_v_operator.cc")
BC = OperatorFile(_OPERATORS + "broadcast_operator.cc")
RE = OperatorFile(_OPERATORS + "reduce_operator.cc")
SC = OperatorFile(_OPERATORS + "scatter_operator.cc")
A2A = OperatorFile(_OPERATORS + "alltoall_operator.cc")
COMMUNICATOR = OperatorFile("framework/communicator/impl/hccl_communicator.cc")

AR_SINGLE = AR.take("AllReduceSingleExecutor", "112-116", SINGLE, OP_BASE, early=True)
RE_SINGLE = RE.take("ReduceSingleExecutor", "36-40", SINGLE, OP_BASE)

POINT_TO_POINT: dict[str, tuple[Rule, ...]] = {
    "send_recv": (OperatorFile(_OPERATORS + "send_operator.cc").take("SendExecutor", "29"),),
    "batch_send_recv": (
        OperatorFile(_OPERATORS + "batchsendrecv_operator.cc").take("BatchSendRecv", "26-30"),
    ),
}
"""Ranks that receive take ReceiveExecutor. BatchSendRecvRetry needs re-execution, which is off."""

_STAGED = "RunAlltoAllVStaged"

STAGED = (
    OperatorFile(
        "algorithm/impl/coll_executor/coll_all_to_all/coll_all_to_all_v_staged_executor.cc"
    ).take(_STAGED, "242-251", PAIRWISE_INSIDE, level0="pairwise", level1="pairwise"),
    A2A.take(_STAGED, "248-250", level1="pairwise"),
)
"""The exchange in two steps, whose executor looks at HCCL_ALGO by itself."""
