"""ReduceScatter: every rank gets its part of the reduction of all inputs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hccl_py.call.op_param import OpParam
from hccl_py.call.ops import OPS
from hccl_py.operators.base import Array, Operator, reduced


class ReduceScatter(Operator):
    """`count` times ranks elements in, `count` elements out."""

    facts = OPS["reduce_scatter"]

    def expected(self, op: OpParam, inputs: Sequence[Array]) -> list[Array | None]:
        """Return part r of the reduction for rank r."""
        return list(np.split(reduced(op, inputs), len(inputs)))
