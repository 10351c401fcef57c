"""torch's tensors in the place of arrays: the same memory, seen by numpy where it is the host's.

    dense                 tensor.numpy(), contiguous or not
    bfloat16, float8      by way of integers, as ml_dtypes'
    bool                  as uint8, where HCCL has the op for it
    that needs gradients  detached

torch is never imported here: tensors can only come from a program that has.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy.typing as npt

from hccl_py.communicator.device_arrays import EXTENDED, DeviceArray, array_of_bits, tensor_of_bits
from hccl_py.enums import DataType
from hccl_py.errors import NotSupportedError, ParameterError

Tensor: TypeAlias = Any
Array: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True)
class Tensors:
    """The arrays of a call's tensors, and how its outputs become tensors again: those in `given`
    where there is an `out`, else new ones of the data type of the first.
    """

    inputs: Any
    out: Any
    given: Sequence[Tensor | None] | None
    dtype: Any

    def outputs(self, arrays: list[Any]) -> list[Any]:
        """Return tensors with the memory of a call's outputs."""
        if self.given is not None:
            return list(self.given)
        return [None if array is None else _tensor(array, self.dtype) for array in arrays]


def tensors_in(
    inputs: Any, out: Any, local_ranks: range, templates: Sequence[DeviceArray] | None = None
) -> Tensors | None:
    """Return the tensors among a call's arguments as arrays, as DeviceArrays where `templates` are
    given; None where there are none. NotSupportedError for a tensor on another device or of a type
    that numpy lacks, ParameterError for arrays among them. For programs that have imported torch.
    """
    kind = getattr(sys.modules["torch"], "Tensor", ())  # () while torch is being imported
    leaves = [leaf for side in (inputs, out) for leaf in _leaves(side) if leaf is not None]
    found = [leaf for leaf in leaves if isinstance(leaf, kind)]
    if not found:
        _refuse_arrays(leaves, templates)
        return None
    stranger = next((leaf for leaf in leaves if not isinstance(leaf, kind)), None)
    if stranger is not None:
        raise ParameterError(
            f"A call got tensors and a {type(stranger).__name__}.",
            "Give tensors only, or arrays only: torch.from_numpy(array) is a view.",
        )
    if isinstance(out, kind) and len(local_ranks) == 1:
        out = [out]
    at = _Places(local_ranks, templates or [None] * len(local_ranks))
    return Tensors(
        _converted(inputs, "input", at, _array),
        _converted(out, "output", at, _output_array),
        out,
        found[0].dtype,
    )


class _Places(NamedTuple):
    """The ranks that have tensors, and for each an example array on its device."""

    ranks: range
    templates: Sequence[DeviceArray | None]


def _refuse_arrays(leaves: list[Any], templates: Sequence[DeviceArray] | None) -> None:
    stranger = next((leaf for leaf in leaves if not isinstance(leaf, DeviceArray)), None)
    if templates and stranger is not None:
        device = templates[0].tensor.device
        raise ParameterError(
            f"A call got a {type(stranger).__name__}: this platform takes tensors on {device}.",
            f'Give torch.as_tensor(array, device="{device}").',
        )


def _leaves(side: Any) -> Iterator[Any]:
    """Yield the values that may be tensors: an argument, or those in its lists, two deep."""
    if not isinstance(side, (list, tuple)):
        yield side
        return
    for each in side:
        if isinstance(each, (list, tuple)):
            yield from each
        else:
            yield each


def _converted(
    side: Any, what: str, at: _Places, array: Callable[[Tensor, str, DeviceArray | None], Array]
) -> Any:
    """Return an argument with arrays in the place of tensors."""
    if side is None:
        return None
    if not isinstance(side, (list, tuple)):
        return array(side, f"Rank {at.ranks[0]}'s {what}", at.templates[0])
    converted: list[Any] = []
    templates = [*at.templates, *[None] * len(side)]  # how many there are is looked at later
    for rank, (each, like) in enumerate(zip(side, templates, strict=False), at.ranks.start):
        where = f"Rank {rank}'s {what}"
        if isinstance(each, (list, tuple)):
            converted.append([None if leaf is None else array(leaf, where, like) for leaf in each])
        else:
            converted.append(None if each is None else array(each, where, like))
    return converted


def _array(tensor: Tensor, where: str, like: DeviceArray | None) -> Array:
    """Return the memory of a tensor as an array."""
    torch: Any = sys.modules["torch"]
    check_dense(tensor, where, torch.device("cpu") if like is None else like.tensor.device)
    if tensor.requires_grad:
        tensor = tensor.detach()
    return memory_of(tensor, where) if like is None else on_device(tensor, where)


def memory_of(tensor: Tensor, where: str) -> Array:
    """Return the memory of a dense CPU tensor that needs no gradients as an array;
    NotSupportedError for a data type that numpy does not have.
    """
    torch: Any = sys.modules["torch"]
    try:
        name = str(tensor.dtype).removeprefix("torch.")
        if name in EXTENDED:
            return array_of_bits(tensor, DataType.parse(name).numpy)
        if tensor.dtype is torch.bool:
            tensor = tensor.view(torch.uint8)
        array: Array = tensor.numpy()
    except (RuntimeError, TypeError) as error:
        reason = str(error).partition("\n")[0]
        raise NotSupportedError(
            f"{where} is a {tensor.dtype} tensor that numpy cannot see: {reason}",
            "Give a dense CPU tensor of a data type that HCCL has.",
        ) from None
    return array


def on_device(tensor: Tensor, where: str) -> Array:
    """Return a tensor of a device as an array; NotSupportedError for a type that HCCL lacks."""
    try:
        return DeviceArray(tensor)  # type: ignore[return-value]
    except NotSupportedError:
        raise NotSupportedError(
            f"{where} is a {tensor.dtype} tensor: HCCL has no data type for it.",
            "A view such as tensor.view(torch.uint8) moves bytes as they are.",
        ) from None


def _output_array(tensor: Tensor, where: str, like: DeviceArray | None) -> Array:
    """Return the memory of an output; each of its elements has a place of its own."""
    array = _array(tensor, where, like)
    if any(n > 1 and not step for n, step in zip(array.shape, array.strides, strict=True)):
        raise ParameterError(
            f"{where} is an expanded tensor: its elements share memory.",
            "Give tensor.contiguous() and keep it: that is where the output is.",
        )
    return array


def check_dense(tensor: Tensor, where: str, device: Any) -> None:
    """Raise NotSupportedError for what is no dense tensor on a device."""
    torch: Any = sys.modules["torch"]
    if tensor.device.type == "meta":
        what, hint = "on device meta and has no data", f"Give a tensor on {device}."
    elif tensor.device != device:
        what, hint = f"on device {tensor.device}", f'Give tensor.to("{device}").'
    elif tensor.layout is not torch.strided or tensor.is_nested:
        layout = str(tensor.layout).removeprefix("torch.")
        what, hint = f"a {layout} tensor", "Give tensor.to_dense(), or its parts one by one."
    elif tensor.is_quantized:
        what, hint = "a quantized tensor", "Give tensor.int_repr() or tensor.dequantize()."
    else:
        return
    raise NotSupportedError(f"{where} is {what}.", hint)


def _tensor(array: Array | DeviceArray, dtype: Any) -> Tensor:
    torch: Any = sys.modules["torch"]
    if isinstance(array, DeviceArray):
        return array.tensor.view(dtype) if dtype is torch.bool else array.tensor
    if array.dtype.name in EXTENDED:
        return tensor_of_bits(array, dtype)
    tensor = torch.from_numpy(array)
    return tensor.view(dtype) if dtype is torch.bool else tensor
