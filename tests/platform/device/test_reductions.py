"""torch's reductions of bytes against numpy's, bit for bit."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="the device platform needs torch: pip install hccl-py[torch]")

import torch

from hccl_platform.device.reductions import reduction
from hccl_platform.device.session import bytes_of
from hccl_py.enums import DataType, ReduceOp

NUMPY = {
    ReduceOp.SUM: np.add,
    ReduceOp.PROD: np.multiply,
    ReduceOp.MAX: np.maximum,
    ReduceOp.MIN: np.minimum,
}


def any_values(dtype: DataType, seed: int) -> Any:
    """Values of all bits, but for numbers that are none and zeros, whose signs differ."""
    rng = np.random.default_rng(seed)
    found = rng.integers(0, 256, 4096 * dtype.itemsize, np.uint8).view(dtype.numpy)
    if dtype.is_float:
        with np.errstate(invalid="ignore"):
            found = np.where(np.isfinite(found) & (found != 0), found, dtype.numpy.type(1.5))
    return found.astype(dtype.numpy)


@pytest.mark.filterwarnings("ignore:overflow encountered")
@pytest.mark.parametrize("op", ReduceOp)
@pytest.mark.parametrize("dtype", [dtype for dtype in DataType if not dtype.is_moved])
def test_bits_are_those_of_numpy(dtype: DataType, op: ReduceOp) -> None:
    one, other = any_values(dtype, 1), any_values(dtype, 2)
    right = NUMPY[op](one, other).astype(dtype.numpy)
    before = other.copy()
    reduction(op, dtype)(bytes_of(one), bytes_of(other))
    is_number = right == right
    assert one[is_number].tobytes() == right[is_number].tobytes()
    assert (one != one).tolist() == (~is_number).tolist()
    assert other.tobytes() == before.tobytes(), "the source stays as it was"


@pytest.mark.parametrize("dtype", [DataType.FP32, DataType.UINT16])
def test_elements_may_begin_anywhere(dtype: DataType) -> None:
    one, other = any_values(dtype, 3), any_values(dtype, 4)
    right = np.maximum(one, other)
    memory = np.zeros(3 + one.nbytes, np.uint8)
    memory[3:] = one.view(np.uint8)
    reduction(ReduceOp.MAX, dtype)(bytes_of(memory)[3:], bytes_of(other))
    assert memory[3:].tobytes() == right.tobytes()


def test_read_only_arrays_are_read_without_a_warning() -> None:
    array = np.arange(5, dtype=np.float32)
    array.flags.writeable = False
    assert bytes_of(array).view(torch.float32).tolist() == [0, 1, 2, 3, 4]
