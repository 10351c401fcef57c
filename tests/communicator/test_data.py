"""The inputs of `run` are exact in every order of reduction, and tell misplaced blocks apart."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_py.call.op_param import OpParam
from hccl_py.communicator.data import PERIOD, expected_outputs, first_wrong, inputs_of, poison
from hccl_py.enums import DataType, ReduceOp
from hccl_py.operators import make_operator
from hccl_py.operators.base import UFUNCS


@given(
    st.sampled_from([dtype for dtype in DataType if not dtype.is_moved]),
    st.sampled_from(list(ReduceOp)),
    st.integers(1, 600),
    st.randoms(use_true_random=False),
)
def test_reductions_are_exact_in_any_order(
    dtype: DataType, reduce: ReduceOp, ranks: int, random: Any
) -> None:
    op = OpParam("all_reduce", 5, dtype, reduce)
    inputs = inputs_of(op, ranks)
    expected = expected_outputs(make_operator("all_reduce"), op, inputs)[0]
    random.shuffle(inputs)
    while len(inputs) > 1:  # a random tree, one rounding per step
        a = inputs.pop(random.randrange(len(inputs)))
        b = inputs.pop(random.randrange(len(inputs)))
        inputs.append(UFUNCS[reduce](a, b).astype(dtype.numpy))
    assert expected is not None
    assert inputs[0].tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", list(DataType))
@pytest.mark.parametrize("reduce", [None, *ReduceOp])
def test_values_differ_by_rank_and_element(dtype: DataType, reduce: ReduceOp | None) -> None:
    if dtype.is_moved:
        reduce = None
    op = OpParam("all_reduce" if reduce is not None else "all_gather", 1000, dtype, reduce)
    a, b = inputs_of(op, 2)
    assert (a != b).mean() > 0.2
    for shift in (1, 8, 128, 256, 500):
        assert (a[shift:] != a[:-shift]).mean() > 0.2


def test_values_do_not_repeat_where_a_block_could_begin() -> None:
    op = OpParam("all_gather", PERIOD + 10, DataType.INT32)
    (values,) = inputs_of(op, 1)
    assert values[PERIOD:].tolist() == values[:10].tolist()
    assert len(values) == PERIOD + 10


def test_every_poisoned_element_is_wrong() -> None:
    op = OpParam("all_gather", 100, DataType.INT8)
    inputs = inputs_of(op, 3)
    expected = expected_outputs(make_operator("all_gather"), op, inputs)
    outputs = [np.empty_like(array) for array in expected]
    poison(outputs, expected)
    assert all((output != right).all() for output, right in zip(outputs, expected, strict=True))


def test_the_first_wrong_element_is_named() -> None:
    right = [np.arange(6, dtype=np.float32)] * 2
    found = [right[0].copy(), right[0].copy()]
    assert first_wrong(found, right, range(2)) is None
    found[1][4] = 9
    wrong = first_wrong(found, right, range(2))
    assert str(wrong) == "rank 1 element 4: expected 4.0, found 9.0"


def test_a_negative_zero_is_wrong() -> None:
    right = [np.zeros(1, np.float32)]
    assert first_wrong([-right[0]], right, range(1)) is not None
