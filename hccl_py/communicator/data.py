"""Inputs whose right result is known to the last bit, and the search for a wrong element.

Values depend on rank and element, because constants would hide misplaced blocks, and every partial
result is exact in the data type in any order:

    gather, max, min    integers that the type holds exactly; any bits where it is only moved
    sum                 the same, so small that the sum over all ranks is exact
    prod                +-1, and +-2 at so few ranks that the product is exact
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hccl_py.call.op_param import OpParam
from hccl_py.enums import DataType, ReduceOp
from hccl_py.operators import Operator, make_operator

Array = npt.NDArray[Any]

PERIOD = 1_000_003
"""Values repeat after so many elements: a prime, so that no block falls on its own values again."""

_EXACT_BITS = {"fp16": 11, "bf16": 8, "fp32": 24, "fp64": 53}
_LARGEST_POWER = {"fp16": 15, "bf16": 127, "fp32": 127, "fp64": 1023}


@dataclass(frozen=True)
class WrongElement:
    """The first element that is not what it should be."""

    rank: int
    index: int
    expected: int | float | bytes
    found: int | float | bytes

    def __str__(self) -> str:
        return (
            f"rank {self.rank} element {self.index}: "
            f"expected {self.expected!r}, found {self.found!r}"
        )


def inputs_of(op: OpParam, ranks: int) -> list[Array]:
    """Return one input per rank."""
    sizes = make_operator(op.name).user_bytes(op, ranks)[0] // op.unit
    return inputs_of_sizes(op, sizes.tolist())


def inputs_of_sizes(op: OpParam, sizes: Sequence[int]) -> list[Array]:
    """Return one input per rank, of so many elements each."""
    ranks = len(sizes)
    if op.dtype.is_moved:
        return [_bits(op.dtype, rank, size) for rank, size in enumerate(sizes)]
    make = _factors if op.reduce is ReduceOp.PROD else _summands
    values = [
        make(op, rank, ranks, min(size, PERIOD)).astype(op.dtype.numpy)
        for rank, size in enumerate(sizes)
    ]
    return [np.resize(array, size) for array, size in zip(values, sizes, strict=True)]


def expected_outputs(
    operator: Operator, op: OpParam, inputs: Sequence[Array]
) -> list[Array | None]:
    """Return every rank's right output in the op's data type, None where it is open; ranks may
    share an array.
    """
    known: dict[int, Array | None] = {id(None): None}
    right = operator.expected(op, inputs)
    for array in right:
        if id(array) not in known:
            known[id(array)] = np.ascontiguousarray(array, op.dtype.numpy)
    return [known[id(array)] for array in right]


def poison(outputs: Sequence[Array], expected: Sequence[Array | None]) -> None:
    """Make every element wrong, so that what a run does not write is found."""
    for output, right in zip(outputs, expected, strict=True):
        if right is not None:
            output[...] = np.invert(right.view(np.uint8)).view(right.dtype)


def first_wrong(
    outputs: Sequence[Array], expected: Sequence[Array | None], ranks: Sequence[int]
) -> WrongElement | None:
    """Compare bit for bit; None where everything is right."""
    for rank, output, right in zip(ranks, outputs, expected, strict=True):
        if right is None:
            continue
        differ = output.view(np.uint8) != right.view(np.uint8)
        if differ.any():
            index = int(differ.argmax()) // output.itemsize
            return WrongElement(rank, index, right[index].item(), output[index].item())
    return None


def _bits(dtype: DataType, rank: int, size: int) -> Array:
    """Return elements of any bits."""
    words = max(1, dtype.itemsize // 8)
    mixed = _mixed(rank, min(size, PERIOD) * words)
    found = mixed.astype(np.uint8) if dtype.itemsize == 1 else mixed
    return np.resize(found.view(dtype.numpy), size)


def _summands(op: OpParam, rank: int, ranks: int, count: int) -> Array:
    """Return integers from -m to m, or 0 to m; m leaves room for the sum over all ranks."""
    largest = _largest_exact(op.dtype)
    if op.reduce is ReduceOp.SUM:
        if ranks > largest:  # only every k-th rank can contribute to an element
            step = -(-ranks // largest)
            found: Array = (np.arange(count) + rank) % step == 0
            return found
        largest //= ranks
    largest = min(largest, 1 << 52)
    if op.dtype.value.startswith("u"):
        return _mixed(rank, count) % np.uint64(largest + 1)
    values: Array = (_mixed(rank, count) % np.uint64(2 * largest + 1)).astype(np.int64)
    return values - largest


def _factors(op: OpParam, rank: int, ranks: int, count: int) -> Array:
    """Return signs, doubled at every k-th rank; k differs by element through the offset only."""
    step = max(2, -(-ranks // _largest_power(op.dtype)))
    doubled = (np.arange(count) + rank) % step == 0
    signs: Array = 1 - 2 * (_mixed(rank, count) % np.uint64(2)).astype(np.int64)
    return np.where(doubled, 2 * signs, signs)


def _mixed(rank: int, count: int) -> npt.NDArray[np.uint64]:
    """Return well mixed 53-bit numbers of (rank, element), as splitmix64 does."""
    z = np.arange(count, dtype=np.uint64) + np.uint64(rank * 0x1000193)
    z *= np.uint64(0x9E3779B97F4A7C15)
    z ^= z >> np.uint64(30)
    z *= np.uint64(0xBF58476D1CE4E5B9)
    z ^= z >> np.uint64(27)
    return z >> np.uint64(11)


def _largest_exact(dtype: DataType) -> int:
    """Return the largest m such that all integers from -m (or 0) to m are exact."""
    if dtype.is_float:
        return 1 << _EXACT_BITS[dtype.value]
    return int(np.iinfo(dtype.numpy).max)


def _largest_power(dtype: DataType) -> int:
    """Return the largest k such that 2^k is exact."""
    if dtype.is_float:
        return _LARGEST_POWER[dtype.value]
    return int(np.iinfo(dtype.numpy).max).bit_length() - 1
