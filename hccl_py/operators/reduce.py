"""Reduce: the root gets the reduction of all inputs."""

from __future__ import annotations

from collections.abc import Sequence

from hccl_py.call.op_param import OpParam
from hccl_py.call.ops import OPS
from hccl_py.operators.base import Array, Operator, reduced


class Reduce(Operator):
    """`count` elements in, as many out; only the root's output has a meaning."""

    facts = OPS["reduce"]

    def expected(self, op: OpParam, inputs: Sequence[Array]) -> list[Array | None]:
        """Return the reduction for the root; the others' outputs may hold anything."""
        outputs: list[Array | None] = [None] * len(inputs)
        outputs[op.root or 0] = reduced(op, inputs)
        return outputs
