"""AllGather: every rank gets the inputs of all ranks, in rank order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hccl_py.call.op_param import OpParam
from hccl_py.call.ops import OPS
from hccl_py.operators.base import Array, Operator


class AllGather(Operator):
    """`count` elements per rank in, `count` times ranks out."""

    facts = OPS["all_gather"]

    def expected(self, op: OpParam, inputs: Sequence[Array]) -> list[Array | None]:
        """Return the inputs in rank order, for every rank."""
        return [np.concatenate(inputs)] * len(inputs)
