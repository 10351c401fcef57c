"""Reductions of bytes by torch, with the bits that numpy gives.

torch has neither sums nor maxima of unsigned integers of several bytes. Sums and products have the
bits of signed ones; with their highest bits inverted, unsigned numbers have the order of signed
ones. 16-bit floats are rounded to nearest after each operation, as numpy and ml_dtypes do. The bits
of a NaN, and the sign of a zero maximum, are left to the device.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

import torch

from hccl_platform.device.devices import Tensor
from hccl_py.enums import DataType, ReduceOp

Reduce: TypeAlias = Callable[[Tensor, Tensor], None]
"""Reduces the second range of bytes into the first, of the same length."""

_OPS: dict[ReduceOp, Callable[..., Any]] = {
    ReduceOp.SUM: torch.add,
    ReduceOp.PROD: torch.mul,
    ReduceOp.MAX: torch.maximum,
    ReduceOp.MIN: torch.minimum,
}


@cache
def reduction(op: ReduceOp, dtype: DataType) -> Reduce:
    """Return a function that reduces bytes of a type."""
    compute, signed = _OPS[op], dtype.numpy_name.removeprefix("u") if dtype.itemsize > 1 else ""
    kind: torch.dtype = getattr(torch, signed or dtype.numpy_name)
    turns = signed != dtype.numpy_name and op in (ReduceOp.MAX, ReduceOp.MIN) and bool(signed)
    lowest = torch.iinfo(kind).min if turns else 0

    def reduce(into: Tensor, what: Tensor) -> None:
        a, b = into.view(kind), what.view(kind)
        if turns:
            turned = torch.empty_like(b)
            torch.bitwise_xor(b, lowest, out=turned)
            a.bitwise_xor_(lowest)
            compute(a, turned, out=a)
            a.bitwise_xor_(lowest)
        else:
            compute(a, b, out=a)

    def reduce_anywhere(into: Tensor, what: Tensor) -> None:
        """Reduce copies if an element is not at a multiple of its size."""
        tensors = into, what
        if all(tensor.storage_offset() % dtype.itemsize == 0 for tensor in tensors):
            reduce(into, what)
            return
        one, other = (torch.empty_like(tensor) for tensor in tensors)
        one.copy_(into, non_blocking=True)
        other.copy_(what, non_blocking=True)
        reduce(one, other)
        into.copy_(one, non_blocking=True)

    return reduce_anywhere
