"""Tensors in a device's memory, with as much of an array's face as a call looks at.

numpy's own protocol for arrays that are elsewhere (NEP 18 and 35) leads its functions here: shapes,
addresses and data types are known to the host; copies are torch's, on the caller's current stream.
So the same code places arrays and tensors. torch is never imported here: tensors can only come from
a program that has.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from hccl_py.enums import DataType
from hccl_py.errors import NotSupportedError, ParameterError

Tensor: TypeAlias = Any


EXTENDED = frozenset(dtype.numpy_name for dtype in DataType if dtype.is_extended)
"""The types that numpy has from ml_dtypes, by the name that torch gives them, too."""


def array_of_bits(tensor: Tensor, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return the memory of a CPU tensor of one of these types."""
    torch: Any = sys.modules["torch"]
    integer = torch.int16 if dtype.itemsize == 2 else torch.uint8
    bits: npt.NDArray[Any] = tensor.view(integer).numpy()
    return bits.view(dtype)


def tensor_of_bits(array: npt.NDArray[Any], dtype: Any) -> Tensor:
    """Return the tensor of an array of one of these types; `dtype` is torch's."""
    torch: Any = sys.modules["torch"]
    return torch.from_numpy(array.view(np.int16 if array.itemsize == 2 else np.uint8)).view(dtype)


class Flags(NamedTuple):
    """The part of numpy's `flags` that a call looks at."""

    c_contiguous: bool
    writeable: bool = True


class DeviceArray:
    """A strided tensor as an array: `tensor` is what it was made of, bool as uint8.

    NotSupportedError for a data type that HCCL lacks.
    """

    __slots__ = ("dtype", "tensor")

    def __init__(self, tensor: Tensor) -> None:
        torch: Any = sys.modules["torch"]
        self.tensor = tensor.view(torch.uint8) if tensor.dtype is torch.bool else tensor
        name = str(self.tensor.dtype).removeprefix("torch.")
        self.dtype: np.dtype[Any] = DataType.parse(name).numpy

    @property
    def shape(self) -> tuple[int, ...]:
        """Elements along each axis."""
        return tuple(self.tensor.shape)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.tensor.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(self.tensor.numel())

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes from one index of an axis to the next."""
        return tuple(step * self.itemsize for step in self.tensor.stride())

    @property
    def flags(self) -> Flags:
        """Contiguity, as numpy's `flags`; tensors can always be written."""
        return Flags(bool(self.tensor.is_contiguous()))

    def reshape(self, *shape: Any) -> DeviceArray:
        """Return the same elements in another shape."""
        return DeviceArray(self.tensor.reshape(*shape))

    def view(self, dtype: np.dtype[Any] | type) -> DeviceArray:
        """Return the same memory as another type; the last axis takes the difference."""
        return DeviceArray(self.tensor.view(_torch_type(dtype)))

    def copy(self) -> DeviceArray:
        """Return the same elements in memory of their own."""
        return DeviceArray(self.tensor.clone())

    def __len__(self) -> int:
        return len(self.tensor)

    def __iter__(self) -> Iterator[DeviceArray]:
        return (self[at] for at in range(len(self)))

    def __getitem__(self, key: Any) -> DeviceArray:
        return DeviceArray(self.tensor[key])

    def __setitem__(self, key: Any, value: Any) -> None:
        self.tensor[key].copy_(_tensor_of(value), non_blocking=isinstance(value, DeviceArray))

    def __repr__(self) -> str:
        return f"DeviceArray({self.dtype.name} {self.shape} on {self.tensor.device})"

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise ParameterError(
            f"A tensor on {self.tensor.device} is no numpy array.", "Give tensor.cpu()."
        )

    def __array_function__(
        self, function: Any, types: Any, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> Any:
        """Answer numpy's functions that placing arrays takes, and no others."""
        found = _FUNCTIONS.get(function)
        return NotImplemented if found is None else found(self, *args, **kwargs)

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        """Compute in place, as averages and folds do, and in no other way."""
        found = _IN_PLACE.get(ufunc)
        if found is None or method != "__call__" or kwargs.get("out") != (args[0],):
            return NotImplemented
        other = args[1].tensor if isinstance(args[1], DeviceArray) else args[1]
        found(args[0].tensor, other)
        return args[0]


def is_array(found: object) -> bool:
    """Return True for an array in the host's or a device's memory; masked arrays do not count."""
    return isinstance(found, (np.ndarray, DeviceArray)) and not isinstance(found, np.ma.MaskedArray)


def address_of(array: Any) -> int:
    """Return the address of an array's first element."""
    if isinstance(array, DeviceArray):
        return int(array.tensor.data_ptr())
    address: int = array.__array_interface__["data"][0]
    return address


def host_copy(array: Any) -> npt.NDArray[Any]:
    """Return an array of the host with the same elements, itself where it is one; it waits for the
    caller's current stream.
    """
    if not isinstance(array, DeviceArray):
        found: npt.NDArray[Any] = array
        return found
    tensor = array.tensor.detach().cpu()
    if array.dtype.name in EXTENDED:
        return array_of_bits(tensor, array.dtype)
    plain: npt.NDArray[Any] = tensor.numpy()
    return plain


# ---- numpy's functions; `like` is the DeviceArray that was found among the arguments ----


def _tensor_of(value: Any) -> Any:
    """Return a tensor of an array, or a number as it is."""
    torch: Any = sys.modules["torch"]
    if isinstance(value, DeviceArray):
        return value.tensor
    array = np.ascontiguousarray(value)
    if array.dtype.name in EXTENDED:
        return tensor_of_bits(array, _torch_type(array.dtype))
    return torch.from_numpy(array)


def _torch_type(dtype: Any) -> Any:
    torch: Any = sys.modules["torch"]
    found = getattr(torch, DataType.of(np.dtype(dtype)).numpy_name, None)
    if found is None:
        raise NotSupportedError(f"torch has no {np.dtype(dtype).name}.", "Take another data type.")
    return found


def _new(make: str) -> Callable[..., DeviceArray]:
    def new(like: DeviceArray, shape: Any, dtype: Any = np.float64, **_: Any) -> DeviceArray:
        torch: Any = sys.modules["torch"]
        made = getattr(torch, make)(shape, dtype=_torch_type(dtype), device=like.tensor.device)
        return DeviceArray(made)

    return new


def _empty_like(like: DeviceArray, array: DeviceArray) -> DeviceArray:
    torch: Any = sys.modules["torch"]
    return DeviceArray(torch.empty_like(array.tensor))


def _concatenate(like: DeviceArray, arrays: Sequence[Any]) -> DeviceArray:
    """Join arrays of rows by copies: a device needs no kernel for that."""
    rows = sum(len(array) for array in arrays)
    joined = _new("empty")(like, (rows, *like.shape[1:]), like.dtype)
    start = 0
    for array in arrays:
        joined[start : start + len(array)] = array
        start += len(array)
    return joined


def _atleast_1d(like: DeviceArray, array: DeviceArray) -> DeviceArray:
    return array if array.ndim else array.reshape(1)


def _may_share_memory(like: DeviceArray, one: Any, other: Any) -> bool:
    (start, stop), (low, high) = _span(one), _span(other)
    return start < high and low < stop


def _span(array: Any) -> tuple[int, int]:
    """Return the addresses of an array's begin and end; torch has no negative steps."""
    if not array.size:
        return 0, 0
    behind = sum((n - 1) * step for n, step in zip(array.shape, array.strides, strict=True))
    start = address_of(array)
    return start, start + behind + array.itemsize


def _shares_memory(like: DeviceArray, one: DeviceArray, other: DeviceArray) -> bool:
    """Ask numpy, of arrays that lie as these do in memory that is never touched."""
    if not _may_share_memory(like, one, other):
        return False
    start = min(_span(one)[0], _span(other)[0])
    stop = max(_span(one)[1], _span(other)[1])
    memory = np.empty(stop - start, np.uint8)
    first, second = (
        np.ndarray(a.shape, a.dtype, memory.data, address_of(a) - start, a.strides)
        for a in (one, other)
    )
    return bool(np.shares_memory(first, second))


def _extreme(name: str) -> Callable[[Tensor, Tensor], None]:
    def reduce(tensor: Tensor, other: Any) -> None:
        torch: Any = sys.modules["torch"]
        if not isinstance(other, torch.Tensor):
            other = torch.full_like(tensor, other)
        getattr(torch, name)(tensor, other, out=tensor)

    return reduce


_IN_PLACE: dict[Any, Callable[[Tensor, Any], Any]] = {
    np.add: lambda tensor, other: tensor.add_(other),
    np.multiply: lambda tensor, other: tensor.mul_(other),
    np.maximum: _extreme("maximum"),
    np.minimum: _extreme("minimum"),
    np.divide: lambda tensor, other: tensor.div_(other),
    np.floor_divide: lambda tensor, other: tensor.floor_divide_(other),
    np.bitwise_and: lambda tensor, other: tensor.bitwise_and_(other),
    np.bitwise_or: lambda tensor, other: tensor.bitwise_or_(other),
    np.bitwise_xor: lambda tensor, other: tensor.bitwise_xor_(other),
}

_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.empty: _new("empty"),
    np.zeros: _new("zeros"),
    np.empty_like: _empty_like,
    np.concatenate: _concatenate,
    np.atleast_1d: _atleast_1d,
    np.may_share_memory: _may_share_memory,
    np.shares_memory: _shares_memory,
}
