"""The files that rows come from, and rows that all devices share."""

from hccl_py.selection.rules import Cell, OperatorFile, Rule
from hccl_py.selection.tables.cells import PAIRWISE_INSIDE, SINGLE

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
COMMUNICATOR = OperatorFile("framework/communicator/impl/hccl_communicator_host.cc")

AR_SINGLE = AR.take("AllReduceSingleExecutor", "111-115", SINGLE, early=True)
AG_SINGLE = AG.take("AllGatherSingleExecutor", "36-40", SINGLE, early=True)
RS_SINGLE = RS.take("ReduceScatterSingleExecutor", "47-50", SINGLE, early=True)
RE_SINGLE = RE.take("ReduceSingleExecutor", "36-40", SINGLE)
SC_SINGLE = SC.take("ScatterSingleExecutor", "41-45", SINGLE)

POINT_TO_POINT: dict[str, tuple[Rule, ...]] = {
    "send_recv": (OperatorFile(_OPERATORS + "send_operator.cc").take("SendExecutor", "25"),),
    "batch_send_recv": (
        OperatorFile(_OPERATORS + "batchsendrecv_operator.cc").take("BatchSendRecv", "25-31"),
    ),
}
"""Ranks that receive take ReceiveExecutor. BatchSendRecvRetry needs re-execution, which is off, and
BatchSendRecvGroup calls between HcclGroupStart and HcclGroupEnd, which no call says of itself here.
"""


def exchange(executor: str, at: str, *when: Cell) -> Rule:
    """Return a row of all-to-all that goes pairwise between servers."""
    return A2A.take(executor, at, *when, level1="pairwise")


_STAGED = "RunAlltoAllVStaged"

STAGED = (
    OperatorFile(
        "algorithm/impl/coll_executor/coll_all_to_all/coll_all_to_all_v_staged_executor.cc"
    ).take(_STAGED, "260-273", PAIRWISE_INSIDE, level0="pairwise", level1="pairwise"),
    exchange(_STAGED, "298-300"),
)
"""The exchange in two steps, whose executor looks at HCCL_ALGO by itself."""
