"""Scatter: every rank gets its part of the root's input."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hccl_py.call.op_param import OpParam
from hccl_py.call.ops import OPS
from hccl_py.operators.base import Array, Operator, only_root, same
from hccl_py.values import IntArray


class Scatter(Operator):
    """`count` times ranks elements in at the root, `count` elements out everywhere."""

    facts = OPS["scatter"]

    def user_bytes(self, op: OpParam, ranks: int) -> tuple[IntArray, IntArray]:
        """Return bytes of input, at the root only, and output."""
        return only_root(ranks, op.root, op.size * ranks), same(op.size, ranks)

    def expected(self, op: OpParam, inputs: Sequence[Array]) -> list[Array | None]:
        """Return part r of the root's input for rank r."""
        return list(np.split(inputs[op.root or 0], len(inputs)))
