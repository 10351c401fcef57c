"""The tree of every element, from programs whose order of sums is known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hccl_py.enums import DataType, ReduceOp
from hccl_py.errors import NotSupportedError
from hccl_py.numerics.element_trees import order_matters, trees_of
from tests.recording import op_of, recorded, without


def test_a_ring_adds_along_the_ring() -> None:
    """Chunk k starts at rank k + 1 and gets one rank more with every step."""
    op = replace(op_of("all_reduce", 4 * 32), level1="ring")
    found = trees_of(recorded("AllReduceComm", op, 4))
    assert found.is_fixed
    assert found.agrees
    assert len(found.trees) == 4
    for chunk in range(4):
        tree = found.of(0, 32 * chunk)
        assert tree.depth == 3
        leaves = [*tree.leaves()]
        assert sorted(leaves) == [0, 1, 2, 3]
    assert {found.of(rank, 0) for rank in range(4)} == {found.of(0, 0)}


def test_sums_onto_one_place_in_no_order_are_said_to_be_open() -> None:
    found = trees_of(recorded("AllReduceMeshOpbaseLoopExecutor", op_of("all_reduce", 1000), 4))
    assert not found.is_fixed
    assert all(len(tree.parts) > 2 or not tree.is_fixed for tree in found.trees)


def test_integers_have_fixed_bits_in_any_order() -> None:
    op = op_of("all_reduce", 1000, dtype="int32")
    found = trees_of(recorded("AllReduceMeshOpbaseLoopExecutor", op, 4))
    assert not order_matters(op)
    assert found.is_fixed
    assert order_matters(op_of("all_reduce", 8))


def test_what_has_no_trees() -> None:
    with pytest.raises(NotSupportedError, match="reduces nothing"):
        trees_of(recorded("AllGatherMeshOpbaseExecutor", op_of("all_gather", 8), 4))
    program = recorded("AllReduceComm", op_of("all_reduce", 400), 4)
    lacking = without(program, lambda i: i.kind.moves_data and i.reduce >= 0)
    with pytest.raises(NotSupportedError, match="its result is not that of the op"):
        trees_of(lacking)
    with pytest.raises(NotSupportedError, match="is no reduction"):
        trees_of(program).of(0, 400)
    assert (program.op.dtype, program.op.reduce) == (DataType.FP32, ReduceOp.SUM)


def test_a_digest_tells_where_trees_stand() -> None:
    one = trees_of(recorded("AllReduceComm", op_of("all_reduce", 400), 4))
    again = trees_of(recorded("AllReduceComm", op_of("all_reduce", 400), 4))
    longer = trees_of(recorded("AllReduceComm", op_of("all_reduce", 800), 4))
    assert one.digest == again.digest != longer.digest
    assert set(one.trees) == set(longer.trees)
