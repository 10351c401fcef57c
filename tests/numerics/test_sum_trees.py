"""Trees as values: equal up to the order of two operands, and evaluated with a rounding a hop."""

from __future__ import annotations

import ml_dtypes
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hccl_py.enums import DataType, ReduceOp
from hccl_py.numerics.sum_trees import Forest, SumTree
from hccl_py.testing.strategies import sum_inputs

SUM, BF16, FP32 = ReduceOp.SUM, DataType.BF16, DataType.FP32


def added(forest: Forest, *parts: SumTree, dtype: DataType = FP32) -> SumTree:
    return forest.sum(parts, dtype, SUM)


def test_operands_may_change_places_and_groups_may_not() -> None:
    forest = Forest(3)
    a, b, c = forest.inputs
    left = added(forest, added(forest, a, b), c)
    assert left == added(forest, c, added(forest, b, a))
    assert left != added(forest, a, added(forest, b, c))
    assert left != added(forest, added(forest, a, b), c, dtype=BF16)
    assert left.formula() == "((0 + 1) + 2)"
    assert (left.depth, sorted(left.leaves())) == (2, [0, 1, 2])


def test_trees_of_two_programs_are_equal_by_digest() -> None:
    one, other = Forest(4), Forest(8)
    assert added(one, *one.inputs[:2]) == added(other, *other.inputs[:2])
    assert added(one, *one.inputs[:2]) != added(other, other.inputs[0], other.inputs[2])


def test_parts_in_the_order_of_arrival_are_not_fixed() -> None:
    forest = Forest(4)
    a, b, c, d = forest.inputs
    first, other = added(forest, a, b, c), added(forest, a, c, b)
    assert first == other
    assert not first.is_fixed
    assert not added(forest, first, d).is_fixed
    assert first.formula() == "(0 + {1, 2})"


def test_every_hop_rounds() -> None:
    """256 + 1 is 256 in bf16, so that two halves added first make a difference."""
    forest = Forest(3)
    a, b, c = forest.inputs
    inputs = np.array([[256.0], [1.0], [1.0]], ml_dtypes.bfloat16)
    in_turn = added(forest, added(forest, a, b, dtype=BF16), c, dtype=BF16)
    small_first = added(forest, a, added(forest, b, c, dtype=BF16), dtype=BF16)
    assert float(in_turn.value(inputs)[0]) == 256
    assert float(small_first.value(inputs)[0]) == 258


def test_a_sum_in_fp32_is_rounded_once() -> None:
    """256 + 1 + 1 is 258 where the partial sum is not rounded to bf16."""
    forest = Forest(3)
    a, b, c = forest.inputs
    inputs = np.array([[256.0], [1.0], [1.0]], ml_dtypes.bfloat16)
    unrounded = added(forest, added(forest, a, b), c)
    tree = forest.rounded(unrounded, BF16)
    assert float(tree.value(inputs)[0]) == 258
    assert tree.value(inputs).dtype == inputs.dtype
    assert tree.formula() == "bf16((0 + 1) + 2)"
    assert tree == forest.rounded(added(forest, c, added(forest, b, a)), BF16)
    assert tree != unrounded
    assert tree != forest.rounded(unrounded, DataType.FP16)
    assert tree.is_fixed


def test_an_order_of_arrival_can_be_turned() -> None:
    forest = Forest(3)
    tree = added(forest, *forest.inputs)
    inputs = np.array([[1.0], [2.0**24], [-(2.0**24)]], np.float32)
    assert tree.value(inputs)[0] == 0  # 1 vanishes beside the large one
    inputs = inputs[[1, 0, 2]]
    assert tree.value(inputs)[0] == 0
    assert tree.value(inputs, turn=1)[0] == 1


@given(st.lists(sum_inputs(FP32), min_size=2, max_size=2))
def test_two_operands_have_the_same_bits_in_both_orders(values: list[float]) -> None:
    forest = Forest(2)
    a, b = forest.inputs
    inputs = np.array(values, np.float32)[:, None]
    found = [added(forest, *pair).value(inputs) for pair in ((a, b), (b, a))]
    same = found[0].view(np.uint32) == found[1].view(np.uint32)
    assert same.all() or np.isnan(found[0]).all()
