"""AllGather: every rank gets the inputs of all ranks, in rank order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hccl_py.enums import Buffer
from hccl_py.op_param import OpParam
from hccl_py.operators.base import Array, Operator, same, slots, whole
from hccl_py.orchestration.rank import Rank
from hccl_py.orchestration.region import Chunks, Region
from hccl_py.values import IntArray

__all__ = ["AllGather"]


class AllGather(Operator):
    """`count` elements per rank in, `count` times ranks out."""

    name = "all_gather"

    def count(self, size: int, ranks: int, unit: int) -> int:
        """Return the count per rank of a gathered size in bytes, rounded up."""
        return -(-size // (ranks * unit))

    def output_shape(self, shape: tuple[int, ...], ranks: int) -> tuple[int, ...]:
        """Return the shape of the inputs joined along their first axis."""
        return (ranks * shape[0], *shape[1:]) if shape else (ranks,)

    def user_bytes(self, op: OpParam, ranks: int) -> tuple[IntArray, IntArray]:
        """Return bytes of input and output."""
        return same(op.size, ranks), same(op.size * ranks, ranks)

    def bind(self, op: OpParam, rank: Rank[Region, Chunks], start: int, count: int) -> None:
        """Cut the input to a region and the output to one chunk per rank."""
        rank.user_in = whole(Buffer.USER_IN, op, start, count)
        rank.user_out = slots(Buffer.USER_OUT, op, rank.size, start, count)

    def expected(self, op: OpParam, inputs: Sequence[Array]) -> list[Array | None]:
        """Return the inputs in rank order, for every rank."""
        return [np.concatenate(inputs)] * len(inputs)

    def bus_factor(self, ranks: int) -> float:
        """Return (p - 1) / p."""
        return (ranks - 1) / ranks
