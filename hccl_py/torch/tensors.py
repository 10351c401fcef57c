"""Tensors as arrays: the same memory wherever it is dense, so that results need no copy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import torch

from hccl_py.errors import NotSupportedError

__all__ = ["Array", "array_of", "flat", "joined", "put", "put_parts"]

Array = npt.NDArray[Any]


def array_of(tensor: torch.Tensor) -> Array:
    """Return a tensor's memory as an array: bf16 as ml_dtypes' type, bool as bytes, complex numbers
    as pairs. NotSupportedError for what is no dense tensor in CPU memory.
    """
    tensor = tensor.detach()
    if tensor.layout is not torch.strided or tensor.is_quantized:
        raise NotSupportedError(
            f"The tensor is {tensor.layout}, not dense.", "Give tensor.to_dense()."
        )
    if tensor.device.type != "cpu":
        raise NotSupportedError(
            f"The tensor is on {tensor.device}.", "The backend hccl_py takes CPU tensors."
        )
    array: Array
    if tensor.dtype is torch.bfloat16:
        array = tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    elif tensor.dtype is torch.bool:
        array = tensor.view(torch.uint8).numpy()
    elif tensor.is_complex():
        array = torch.view_as_real(tensor.resolve_conj()).numpy()
    else:
        array = tensor.numpy()
    return array


def flat(tensor: torch.Tensor) -> Array:
    """Return a tensor's elements in one row: its own memory where it is contiguous."""
    array = array_of(tensor)
    return np.ascontiguousarray(array).reshape(-1)


def joined(tensors: Sequence[torch.Tensor]) -> Array:
    """Return the elements of several tensors in one row."""
    if len(tensors) == 1:
        return flat(tensors[0])
    return np.concatenate([array_of(tensor).reshape(-1) for tensor in tensors])


def put(tensor: torch.Tensor, elements: Array) -> None:
    """Write elements into a tensor, unless they are its memory."""
    target = array_of(tensor)
    if not np.may_share_memory(target, elements):
        np.copyto(target, elements.reshape(target.shape))


def put_parts(tensors: Sequence[torch.Tensor], elements: Array) -> None:
    """Deal elements to tensors in their order."""
    begin = 0
    for tensor in tensors:
        target = array_of(tensor)
        np.copyto(target, elements[begin : begin + target.size].reshape(target.shape))
        begin += target.size
