"""The compiled reductions against numpy, for all bit patterns of the 16-bit floats."""

import numpy as np
import pytest

from hccl_platform.lowering.kernels import reduce_words
from hccl_py.call.op_param import OpParam
from hccl_py.enums import DataType, ReduceOp
from tests.platform.running import NUMPY, TILES, Array, run
from tests.recording import recorded

SPECIAL = [np.nan, np.inf, -np.inf, 0.0, 1.0, -1.0]


def patterns(dtype: DataType, seed: int) -> Array:
    """Return 65 536 values: all that 16 bits can be, or special ones and many sizes."""
    rng = np.random.default_rng(seed)
    if dtype.itemsize == 2:
        return rng.permutation(1 << 16).astype(np.uint16).view(dtype.numpy)
    values = rng.standard_normal(1 << 16) * 2.0 ** rng.integers(-140, 120, 1 << 16)
    values[:600] = rng.choice(SPECIAL, 600)
    with np.errstate(over="ignore"):
        return values.astype(dtype.numpy)


@np.errstate(invalid="ignore")  # ml_dtypes minds comparing signalling NaNs
def check_alike(got: Array, wanted: Array, *, zeros_have_signs: bool) -> None:
    """Check that all bits agree, but for those of NaNs and, where numpy leaves them open, zeros."""
    words = f"u{wanted.itemsize}"
    nan, zero = np.isnan(wanted), wanted == 0
    assert (np.isnan(got) == nan).all()
    assert ((got == 0) == zero).all()
    same = got.view(words) == wanted.view(words)
    assert (same | nan | (zero & (not zeros_have_signs))).all()


@pytest.mark.parametrize("reduce", ReduceOp)
@pytest.mark.parametrize("dtype", [DataType.FP16, DataType.BF16, DataType.FP32, DataType.FP64])
def test_floats_equal_numpy_bit_for_bit(dtype: DataType, reduce: ReduceOp) -> None:
    op = OpParam("all_reduce", 1 << 16, dtype, reduce)
    program = recorded("AllReduceComm", op, 2)
    for seed in range(3):
        inputs = [patterns(dtype, seed), patterns(dtype, seed + 100)]
        outputs = zip(run(program, inputs, TILES), run(program, inputs, NUMPY), strict=True)
        for got, wanted in outputs:
            signs = reduce in (ReduceOp.SUM, ReduceOp.PROD)
            check_alike(got, wanted, zeros_have_signs=signs)


@pytest.mark.parametrize("reduce", ReduceOp)
@pytest.mark.parametrize("dtype", [DataType.FP16, DataType.BF16])
def test_words_are_reduced_as_numpy_does(dtype: DataType, reduce: ReduceOp) -> None:
    ufunc = [np.add, np.multiply, np.maximum, np.minimum][reduce]
    got, other = patterns(dtype, 1), patterns(dtype, 2)
    with np.errstate(all="ignore"):
        wanted = ufunc(got, other)
    reduce_words.compiled(
        got.view(np.uint16), other.view(np.uint16), dtype is DataType.BF16, int(reduce)
    )
    check_alike(got, wanted, zeros_have_signs=reduce in (ReduceOp.SUM, ReduceOp.PROD))
