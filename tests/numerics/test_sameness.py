"""Elements of two calls held against each other, by trees made up here."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hccl_py.enums import DataType, ReduceOp
from hccl_py.errors import ParameterError
from hccl_py.numerics.element_trees import ElementTrees
from hccl_py.numerics.sameness import Bits, same_trees
from hccl_py.numerics.sum_trees import Forest
from tests.recording import op_of

FOREST = Forest(3)
A, B, C = FOREST.inputs
HOW = DataType.FP32, ReduceOp.SUM
LEFT = FOREST.sum((FOREST.sum((A, B), *HOW), C), *HOW)
RIGHT = FOREST.sum((A, FOREST.sum((B, C), *HOW)), *HOW)
OPEN = FOREST.sum((A, B, C), *HOW)


def of_ranges(*ranges: tuple[int, int, int]) -> ElementTrees:
    """Return trees of rank 0: (start, stop, number of the tree among LEFT, RIGHT, OPEN)."""
    start, stop, tree = (np.array(column, np.int64) for column in zip(*ranges, strict=True))
    rank = np.zeros(len(ranges), np.int64)
    op = op_of("all_reduce", int(stop.max()))
    return ElementTrees(op, 3, "Made", 1, 0, (LEFT, RIGHT, OPEN), rank, start, stop, tree)


def test_only_common_elements_count() -> None:
    found = same_trees(of_ranges((0, 10, 0)), of_ranges((0, 4, 0)))
    assert (found.bits, found.elements) == (Bits.SAME, 4)


def test_one_element_of_another_tree_makes_a_difference() -> None:
    one, other = of_ranges((0, 10, 0)), of_ranges((0, 7, 0), (7, 8, 1), (8, 10, 0))
    found = same_trees(one, other)
    assert found.bits is Bits.DIFFER
    (pair,) = found.changed
    assert (pair.element, pair.elements, pair.one, pair.other) == (7, 1, LEFT, RIGHT)
    assert sum(pair.elements for pair in found.pairs) == 10


def test_elements_may_be_shifted() -> None:
    one, other = of_ranges((0, 4, 1)), of_ranges((0, 4, 0), (4, 8, 1))
    assert same_trees(one, other).bits is Bits.DIFFER
    assert same_trees(one, other, shift=4).bits is Bits.SAME
    assert same_trees(other, one, shift=-4).bits is Bits.SAME
    with pytest.raises(ParameterError, match="no element in common"):
        same_trees(one, other, shift=8)


def test_an_open_order_is_no_sameness_even_with_itself() -> None:
    assert same_trees(of_ranges((0, 4, 2)), of_ranges((0, 4, 2))).bits is Bits.OPEN
    mixed = same_trees(of_ranges((0, 2, 0), (2, 4, 2)), of_ranges((0, 2, 1), (2, 4, 2)))
    assert mixed.bits is Bits.DIFFER


def test_integers_and_maxima_are_the_same_for_a_reason() -> None:
    one, other = of_ranges((0, 4, 0)), of_ranges((0, 4, 1))
    for op, words in (
        (op_of("all_reduce", 4, dtype="int32"), "int32 wraps around"),
        (replace(op_of("all_reduce", 4), reduce=ReduceOp.MAX), "max picks one of its operands"),
    ):
        found = same_trees(replace(one, op=op), replace(other, op=op))
        assert found.bits is Bits.SAME
        assert found.reason.startswith(words)
