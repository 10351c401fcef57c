"""Tensors as arrays: the same memory wherever it is dense, so that results need no copy."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from hccl_py.communicator.tensors import check_dense, memory_of, on_device
from hccl_py.errors import ParameterError

Array = npt.NDArray[Any]
Place: TypeAlias = tuple[int, int, torch.dtype]
"""A tensor's address, number of elements and type."""

_PLAIN = (torch.Tensor, torch.nn.Parameter)


def array_of(tensor: torch.Tensor) -> Array:
    """Return a tensor's memory as an array, as communicators take it; besides, float8 as bytes and
    complex numbers as pairs; a copy where torch has yet to conjugate or negate what is there. A
    device's tensor becomes a DeviceArray. NotSupportedError for what is no dense tensor.
    """
    check_dense(tensor, "The tensor", tensor.device)
    tensor = _plain(tensor.detach())
    if is_float8(tensor.dtype):
        tensor = tensor.view(torch.uint8)
    elif tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    return (
        memory_of(tensor, "The tensor") if is_on_host(tensor) else on_device(tensor, "The tensor")
    )


def is_on_host(tensor: torch.Tensor) -> bool:
    """Return True if a tensor's memory is the host's."""
    kind: str = tensor.device.type
    return kind == "cpu"


def is_float8(dtype: torch.dtype) -> bool:
    """Return True for torch's floats of one byte, none of which HCCL's ops add."""
    return bool(dtype.is_floating_point and dtype.itemsize == 1)


def flat(tensor: torch.Tensor) -> Array:
    """Return a tensor's elements in one row: its own memory where it is contiguous."""
    array = array_of(tensor)
    if not is_on_host(tensor):
        return array.reshape(-1)
    return np.ascontiguousarray(array).reshape(-1)


def place_of(tensor: torch.Tensor) -> Place | None:
    """Return the place of a tensor whose memory `flat` returns as it is; None for any other."""
    if type(tensor) not in _PLAIN or not (tensor.is_cpu and tensor.layout is torch.strided):
        return None
    if tensor.is_neg() or not tensor.is_contiguous() or tensor.is_complex():
        return None
    return tensor.data_ptr(), tensor.numel(), tensor.dtype


def unowned(data: Array) -> Array:
    """Return the same memory as an array that does not keep it."""
    if not data.nbytes:
        return data
    memory: Any = (ctypes.c_uint8 * data.nbytes).from_address(data.__array_interface__["data"][0])
    row: Array = np.frombuffer(memory, data.dtype)
    return row


def joined(tensors: Sequence[torch.Tensor]) -> Array:
    """Return the elements of several tensors in one row."""
    if len(tensors) == 1:
        return flat(tensors[0])
    return np.concatenate([array_of(tensor).reshape(-1) for tensor in tensors])


def put(tensor: torch.Tensor, elements: Array) -> None:
    """Write elements into a tensor, unless they are its memory; ParameterError where it has another
    size or type.
    """
    plain = _plain(tensor.detach())
    target = array_of(plain)
    if (target.size, target.dtype) != (elements.size, elements.dtype):
        raise ParameterError(
            f"The output has {target.size} elements of {target.dtype}, the result "
            f"{elements.size} of {elements.dtype}.",
            "Give an output of the result's size and type.",
        )
    if not np.may_share_memory(target, elements):
        target[...] = elements.reshape(target.shape)
    if _is_lazy(tensor):
        tensor.detach().copy_(plain)


def put_back(tensor: torch.Tensor, elements: Array) -> None:
    """Write what `flat` returned into its tensor, where it is not the tensor's own memory."""
    if not tensor.is_contiguous() or _is_lazy(tensor):
        put(tensor, elements)


def put_parts(tensors: Sequence[torch.Tensor], elements: Array, counts: Sequence[int]) -> None:
    """Deal elements to tensors in rank order: `counts` are those of each rank."""
    ends = np.cumsum(counts).tolist()
    for tensor, end, count in zip(tensors, ends, counts, strict=True):
        put(tensor, elements[end - count : end])


def _is_lazy(tensor: torch.Tensor) -> bool:
    """Return True if torch has yet to conjugate or negate the tensor's memory."""
    return bool(tensor.is_conj() or tensor.is_neg())


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.resolve_conj().resolve_neg() if _is_lazy(tensor) else tensor
