"""The operator factory: from an op's name to an operator instance."""

from hccl_py.errors import ParameterError, did_you_mean
from hccl_py.operators.all_to_all_v import AllToAllV, AllToAllVC
from hccl_py.operators.base import Operator
from hccl_py.operators.batch_send_recv import BatchSendRecvOperator
from hccl_py.operators.blocks import AllGatherV, ReduceScatterV
from hccl_py.operators.one_count import (
    AllGather,
    AllReduce,
    AllToAll,
    Barrier,
    Broadcast,
    Gather,
    Reduce,
    ReduceScatter,
    Scatter,
)
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
