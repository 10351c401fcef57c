"""Gather: the root gets the inputs of all ranks, in rank order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hccl_py.call.op_param import OpParam
from hccl_py.call.ops import OPS
from hccl_py.operators.base import Array, Operator, only_root, same
from hccl_py.values import IntArray


class Gather(Operator):
    """`count` elements per rank in, `count` times ranks out at the root."""

    facts = OPS["gather"]

    def user_bytes(self, op: OpParam, ranks: int) -> tuple[IntArray, IntArray]:
        """Return bytes of input, and output at the root only."""
        return same(op.size, ranks), only_root(ranks, op.root, op.size * ranks)

    def expected(self, op: OpParam, inputs: Sequence[Array]) -> list[Array | None]:
        """Return the inputs in rank order for the root, nothing for the others."""
        outputs: list[Array | None] = [np.zeros(0, inputs[0].dtype)] * len(inputs)
        outputs[op.root or 0] = np.concatenate(inputs)
        return outputs
