"""Reduce: the root gets the reduction of all inputs."""

from __future__ import annotations

from collections.abc import Sequence

from hccl_py.call.op_param import OpParam
from hccl_py.call.ops import OPS
from hccl_py.operators.base import Array, Operator, reduced


class Reduce(Operator):
    """`count` elements in; as many out, at other ranks than the root with open contents."""

    facts = OPS["reduce"]

    def expected(self, op: OpParam, inputs: Sequence[Array]) -> list[Array | None]:
        """Return the reduction for the root; what the others' outputs hold is open."""
        outputs: list[Array | None] = [None] * len(inputs)
        outputs[op.root or 0] = reduced(op, inputs)
        return outputs
