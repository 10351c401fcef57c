"""AllReduce: every rank gets the reduction of all inputs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hccl_py.enums import Buffer, ReduceOp
from hccl_py.op_param import OpParam
from hccl_py.operators.base import Array, check_reduction, whole
from hccl_py.orchestration.rank import Rank
from hccl_py.orchestration.region import Region
from hccl_py.topology.topology import Topology

__all__ = ["AllReduce"]

UFUNCS = {
    ReduceOp.SUM: np.add,
    ReduceOp.PROD: np.multiply,
    ReduceOp.MAX: np.maximum,
    ReduceOp.MIN: np.minimum,
}


class AllReduce:
    """`count` elements in, `count` elements out."""

    name = "all_reduce"
    reduces = True

    def check(self, op: OpParam, topology: Topology) -> None:
        """Refuse illegal counts, and data types and reduce ops that the product cannot combine."""
        check_reduction(op, topology)

    def count(self, size: int, ranks: int, unit: int) -> int:
        """Return the elements of a buffer of `size` bytes, rounded up."""
        return -(-size // unit)

    def output_shape(self, shape: tuple[int, ...], ranks: int) -> tuple[int, ...]:
        """Return the shape of the input."""
        return shape

    def user_bytes(self, op: OpParam, ranks: int) -> tuple[int, int]:
        """Return bytes of input and output."""
        return op.size, op.size

    def bind(self, op: OpParam, rank: Rank[Region, Region], start: int, count: int) -> None:
        """Cut input and output to one region each."""
        rank.user_in = whole(Buffer.USER_IN, op, start, count)
        rank.user_out = whole(Buffer.USER_OUT, op, start, count)

    def expected(self, op: OpParam, inputs: Sequence[Array]) -> list[Array]:
        """Return the reduction in rank order; integers wrap as in their type, floats are summed in
        float64.
        """
        assert op.reduce is not None
        total = inputs[0].astype(np.float64) if op.dtype.is_float else inputs[0].copy()
        for other in inputs[1:]:
            total = UFUNCS[op.reduce](total, other.astype(total.dtype))
        return [total] * len(inputs)

    def bus_factor(self, ranks: int) -> float:
        """Return 2(p - 1) / p."""
        return 2 * (ranks - 1) / ranks
