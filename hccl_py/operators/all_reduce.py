"""AllReduce: every rank gets the reduction of all inputs."""

from __future__ import annotations

from collections.abc import Sequence

from hccl_py.enums import Buffer
from hccl_py.op_param import OpParam
from hccl_py.operators.base import Array, Operator, reduced, same, whole
from hccl_py.orchestration.rank import Rank
from hccl_py.orchestration.region import Region
from hccl_py.values import IntArray

__all__ = ["AllReduce"]


class AllReduce(Operator):
    """`count` elements in, `count` elements out."""

    name = "all_reduce"
    reduces = True

    def count(self, size: int, ranks: int, unit: int) -> int:
        """Return the elements of a buffer of `size` bytes, rounded up."""
        return -(-size // unit)

    def user_bytes(self, op: OpParam, ranks: int) -> tuple[IntArray, IntArray]:
        """Return bytes of input and output."""
        return same(op.size, ranks), same(op.size, ranks)

    def bind(self, op: OpParam, rank: Rank[Region, Region], start: int, count: int) -> None:
        """Cut input and output to one region each."""
        rank.user_in = whole(Buffer.USER_IN, op, start, count)
        rank.user_out = whole(Buffer.USER_OUT, op, start, count)

    def expected(self, op: OpParam, inputs: Sequence[Array]) -> list[Array | None]:
        """Return the reduction for every rank."""
        return [reduced(op, inputs)] * len(inputs)

    def bus_factor(self, ranks: int) -> float:
        """Return 2(p - 1) / p."""
        return 2 * (ranks - 1) / ranks
