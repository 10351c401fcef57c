"""The operator factory: from an op's name to an operator instance."""

from hccl_py.errors import ParameterError, did_you_mean
from hccl_py.operators.all_gather import AllGather
from hccl_py.operators.all_reduce import AllReduce
from hccl_py.operators.base import Operator

__all__ = ["OPERATORS", "make_operator"]

OPERATORS: dict[str, type[Operator]] = {cls.name: cls for cls in (AllGather, AllReduce)}


def make_operator(name: str) -> Operator:
    """Return the operator of this name; ParameterError names the nearest ones."""
    if name not in OPERATORS:
        raise ParameterError(f"Op {name!r} is unknown.", did_you_mean(name, OPERATORS))
    return OPERATORS[name]()
