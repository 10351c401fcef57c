"""Broadcast: every rank gets the root's input."""

from __future__ import annotations

from collections.abc import Sequence

from hccl_py.enums import Buffer
from hccl_py.op_param import OpParam
from hccl_py.operators.base import Array, Operator, same, whole
from hccl_py.orchestration.rank import Rank
from hccl_py.orchestration.region import Region
from hccl_py.values import IntArray

__all__ = ["Broadcast"]


class Broadcast(Operator):
    """`count` elements everywhere; HCCL has one buffer, which is both input and output in place."""

    name = "broadcast"
    rooted = True

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
        """Return the root's input for every rank."""
        return [inputs[op.root or 0]] * len(inputs)
