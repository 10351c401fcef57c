"""Drawn trees: ranks as leaves, steps as columns."""

from __future__ import annotations

from hccl_py.enums import DataType, ReduceOp
from hccl_py.numerics.element_trees import trees_of
from hccl_py.numerics.sum_trees import Forest
from hccl_py.numerics.tree_page import numerics_page
from hccl_py.numerics.tree_text import draw_tree
from tests.recording import op_of, recorded


def test_a_tree_of_three_steps() -> None:
    forest = Forest(4)
    a, b, c, d = forest.inputs
    how = DataType.FP32, ReduceOp.SUM
    left, right = forest.sum((a, b), *how), forest.sum((c, d), *how)
    tree = forest.sum((left, right), *how)
    assert draw_tree(tree, 80) == [
        "rank 0 ──┐",
        "rank 1 ──┴─┐",
        "rank 2 ──┐ │",
        "rank 3 ──┴─┴─ sum",
    ]
    assert draw_tree(tree, 80, unicode=False)[0] == "rank 0 --+"
    assert draw_tree(tree, 12) == ["((0 + 1) + (2 + 3))"]


def test_what_comes_in_any_order_meets_at_a_star() -> None:
    forest = Forest(3)
    tree = forest.sum(tuple(forest.inputs), DataType.FP32, ReduceOp.SUM)
    assert draw_tree(tree, 80)[-1].endswith("✱─ sum")


def test_a_sum_in_fp32_is_rounded_at_a_circle() -> None:
    forest = Forest(2)
    tree = forest.rounded(forest.sum((*forest.inputs,), DataType.FP32, ReduceOp.SUM), DataType.BF16)
    assert draw_tree(tree, 80) == ["rank 0 ──┐", "rank 1 ──┴─○─ sum"]


def test_the_page_has_a_strip_of_elements_and_a_picture_per_tree() -> None:
    found = trees_of(recorded("AllReduceComm", op_of("all_reduce", 400), 4))
    page = numerics_page("sums <of> four", "what & why", [("one call", found.trees, found)])
    assert "sums &lt;of&gt; four" in page
    assert "<script" not in page
    assert page.count("rank 3") >= len(found.trees)
