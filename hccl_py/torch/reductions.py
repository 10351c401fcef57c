"""torch's reduce ops: HCCL's where it has them, else gathered and folded at every rank."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, cached_property
from typing import Any

import numpy as np
import torch
from torch.distributed import ReduceOp

from hccl_py.errors import NotSupportedError
from hccl_py.torch.tensor_arrays import Array, is_float8

_NAMES = {
    ReduceOp.RedOpType.SUM: "sum",
    ReduceOp.RedOpType.AVG: "avg",
    ReduceOp.RedOpType.PRODUCT: "prod",
    ReduceOp.RedOpType.MIN: "min",
    ReduceOp.RedOpType.MAX: "max",
    ReduceOp.RedOpType.BAND: "band",
    ReduceOp.RedOpType.BOR: "bor",
    ReduceOp.RedOpType.BXOR: "bxor",
}
_FOLDS: dict[str, Callable[..., Any]] = {
    "sum": np.add,
    "avg": np.add,
    "prod": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "band": np.bitwise_and,
    "bor": np.bitwise_or,
    "bxor": np.bitwise_xor,
}
_BITWISE = ("band", "bor", "bxor")


class TorchReduction:
    """One of torch's reduce ops, for tensors of one type."""

    def __init__(self, name: str, dtype: torch.dtype) -> None:
        self.name, self.dtype = name, dtype
        if name in _BITWISE and (dtype.is_floating_point or dtype.is_complex):
            raise NotSupportedError(
                f"{name} does not take {dtype}.", "Bitwise ops take whole numbers and bool."
            )
        if is_float8(dtype):
            raise NotSupportedError(
                f"{name} does not take {dtype}.", "Convert to torch.bfloat16; float8 is only moved."
            )
        if dtype.is_complex and name not in ("sum", "avg"):
            raise NotSupportedError(
                f"all_reduce does not support {name} on complex tensors.", "It takes sum and avg."
            )

    @cached_property
    def in_hccl(self) -> str | None:
        """The op's name for a communicator; None where only a fold gives torch's result."""
        whole = not (self.dtype.is_floating_point or self.dtype.is_complex)
        if self.name in _BITWISE or (self.name == "avg" and whole):
            return None
        if self.dtype is torch.bool and self.name in ("sum", "prod"):
            return None  # bytes would count beyond 1
        return self.name

    def fold(self, rows: Array) -> Array:
        """Return the reduction of the rows: one of them for every rank."""
        result: Array = rows[0].copy()
        for row in rows[1:]:
            _FOLDS[self.name](result, row, out=result)
            if self.dtype is torch.bool:
                np.minimum(result, 1, out=result)
        if self.name == "avg":
            if result.dtype.kind in "iu":
                np.floor_divide(result, len(rows), out=result)
            else:
                np.divide(result, len(rows), out=result, casting="unsafe")
        return result


def reduction_of(op: Any, dtype: torch.dtype) -> TorchReduction:
    """Return the reduction of torch's reduce op for a type; NotSupportedError if there is none."""
    return _reduction_of(getattr(op, "op", op), dtype)


@cache
def _reduction_of(kind: Any, dtype: torch.dtype) -> TorchReduction:
    if kind not in _NAMES:
        raise NotSupportedError(
            f"The reduce op {kind} is not offered.", f"Offered: {', '.join(_NAMES.values())}."
        )
    return TorchReduction(_NAMES[kind], dtype)
