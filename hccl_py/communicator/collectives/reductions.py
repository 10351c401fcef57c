"""Reduce ops as callers write them: HCCL's four, and `avg`, which torch and NCCL have and HCCL has
not. It is a sum, divided by the number of ranks after it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hccl_py.call.op_param import OpParam
from hccl_py.communicator.arrays import Output
from hccl_py.enums import ReduceOp
from hccl_py.errors import NotSupportedError, did_you_mean

AVERAGE = "avg"


class Reduction(NamedTuple):
    """HCCL's reduce op, and whether its result is divided by the number of ranks."""

    op: ReduceOp
    average: bool = False


def reduction(op: str | ReduceOp) -> Reduction:
    """Return the reduction of a caller's `sum`, `prod`, `max`, `min` or `avg`."""
    if isinstance(op, ReduceOp):
        return Reduction(op)
    name = str(op).lower()
    if name == AVERAGE:
        return Reduction(ReduceOp.SUM, average=True)
    known = [member.spelling for member in ReduceOp]
    if name not in known:
        raise NotSupportedError(
            f"Reduce op {op!r} is unknown.", did_you_mean(name, [*known, AVERAGE])
        )
    return Reduction(ReduceOp.parse(name))


def check_average(op: OpParam) -> None:
    """Refuse averages of integers."""
    if not op.dtype.is_float:
        raise NotSupportedError(
            f"{op.name} does not take avg with {op.dtype.value}.",
            "It takes floats: sum integers, and divide as you want them rounded.",
        )


def averaged(outputs: list[Output], ranks: int) -> None:
    """Divide sums where they are."""
    for output in outputs:
        if output is not None:
            np.divide(output, ranks, out=output, casting="unsafe")
