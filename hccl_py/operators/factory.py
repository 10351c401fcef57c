"""The operator factory: from an op's name to an operator instance."""

from hccl_py.errors import ParameterError, did_you_mean
from hccl_py.operators.all_gather import AllGather
from hccl_py.operators.all_gather_v import AllGatherV
from hccl_py.operators.all_reduce import AllReduce
from hccl_py.operators.all_to_all import AllToAll
from hccl_py.operators.all_to_all_v import AllToAllV
from hccl_py.operators.all_to_all_vc import AllToAllVC
from hccl_py.operators.barrier import Barrier
from hccl_py.operators.base import Operator
from hccl_py.operators.batch_send_recv import BatchSendRecvOperator
from hccl_py.operators.broadcast import Broadcast
from hccl_py.operators.gather import Gather
from hccl_py.operators.reduce import Reduce
from hccl_py.operators.reduce_scatter import ReduceScatter
from hccl_py.operators.reduce_scatter_v import ReduceScatterV
from hccl_py.operators.scatter import Scatter
from hccl_py.operators.send_recv import SendRecv

OPERATORS: dict[str, Operator] = {
    cls.facts.name: cls()
    for cls in (
        AllReduce,
        AllGather,
        AllGatherV,
        ReduceScatter,
        ReduceScatterV,
        Broadcast,
        Reduce,
        Scatter,
        Gather,
        AllToAll,
        AllToAllV,
        AllToAllVC,
        SendRecv,
        BatchSendRecvOperator,
        Barrier,
    )
}


def make_operator(name: str) -> Operator:
    """Return the operator of this name; ParameterError names the nearest ones."""
    if name not in OPERATORS:
        raise ParameterError(f"Op {name!r} is unknown.", did_you_mean(name, OPERATORS))
    return OPERATORS[name]
