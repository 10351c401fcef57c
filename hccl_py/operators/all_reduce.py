"""AllReduce: every rank gets the reduction of all inputs."""

from __future__ import annotations

from collections.abc import Sequence

from hccl_py.call.op_param import OpParam
from hccl_py.call.ops import OPS
from hccl_py.operators.base import Array, Operator, reduced


class AllReduce(Operator):
    """`count` elements in, `count` elements out."""

    facts = OPS["all_reduce"]

    def expected(self, op: OpParam, inputs: Sequence[Array]) -> list[Array | None]:
        """Return the reduction for every rank."""
        return [reduced(op, inputs)] * len(inputs)
