"""Operators: one file per collective, and the factory that makes them by name."""

from hccl_py.operators.base import Operator
from hccl_py.operators.factory import OPERATORS, make_operator

__all__ = ["OPERATORS", "Operator", "make_operator"]
