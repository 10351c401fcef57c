"""Scatter: every rank gets its part of the root's input."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hccl_py.enums import Buffer
from hccl_py.op_param import OpParam
from hccl_py.operators.base import Array, Operator, nobody, same, slots, whole
from hccl_py.orchestration.rank import Rank
from hccl_py.orchestration.region import Chunks, Region
from hccl_py.values import IntArray

__all__ = ["Scatter"]


class Scatter(Operator):
    """`count` times ranks elements in at the root, `count` elements out everywhere."""

    name = "scatter"
    rooted = True
    in_place = False

    def count(self, size: int, ranks: int, unit: int) -> int:
        """Return the count per rank of a scattered size in bytes, rounded up."""
        return -(-size // (ranks * unit))

    def output_shape(self, shape: tuple[int, ...], ranks: int) -> tuple[int, ...]:
        """Return the shape of one of `ranks` parts along the first axis."""
        return (shape[0] // ranks, *shape[1:])

    def user_bytes(self, op: OpParam, ranks: int) -> tuple[IntArray, IntArray]:
        """Return bytes of input, at the root only, and output."""
        return nobody(ranks, but=op.root, size=op.size * ranks), same(op.size, ranks)

    def bind(self, op: OpParam, rank: Rank[Chunks, Region], start: int, count: int) -> None:
        """Cut the root's input to one chunk per rank and the output to a region."""
        rank.user_in = slots(Buffer.USER_IN, op, rank.size, start, count)
        rank.user_out = whole(Buffer.USER_OUT, op, start, count)

    def expected(self, op: OpParam, inputs: Sequence[Array]) -> list[Array | None]:
        """Return part r of the root's input for rank r."""
        return list(np.split(inputs[op.root or 0], len(inputs)))
