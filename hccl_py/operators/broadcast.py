"""Broadcast: every rank gets the root's input."""

from __future__ import annotations

from collections.abc import Sequence

from hccl_py.call.op_param import OpParam
from hccl_py.call.ops import OPS
from hccl_py.operators.base import Array, Operator


class Broadcast(Operator):
    """`count` elements everywhere; HCCL has one buffer, which is both input and output in place."""

    facts = OPS["broadcast"]

    def expected(self, op: OpParam, inputs: Sequence[Array]) -> list[Array | None]:
        """Return the root's input for every rank."""
        return [inputs[op.root or 0]] * len(inputs)
