"""Verdicts on two calls, with an input behind every difference."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hccl_py.errors import ParameterError
from hccl_py.numerics.bit_witness import run_elements, share_of_differing, shown, witness_inputs
from hccl_py.numerics.element_trees import ElementTrees, trees_of
from hccl_py.numerics.proofs import assumptions, boundary, same_bits
from hccl_py.numerics.sameness import Bits, same_trees
from hccl_py.program.program import Program
from tests.recording import op_of, recorded

RANKS = 4


def ring(count: int, dtype: str = "fp32", level1: str = "ring") -> Program:
    op = replace(op_of("all_reduce", count, dtype=dtype), level1=level1)
    return recorded("AllReduceComm", op, RANKS)


def test_a_program_has_the_bits_of_itself() -> None:
    found = same_bits(ring(400), ring(400))
    assert (found.bits, found.elements) == (Bits.SAME, RANKS * 400)
    assert found.reason == "every element has the same summation tree"
    assert not found.changed


def test_a_ring_and_a_tree_differ_with_an_input_that_shows_it() -> None:
    one, other = ring(400, level1="ring"), ring(400, level1="NHR")
    found = same_bits(one, other)
    assert found.bits is Bits.DIFFER
    pair = found.changed[0]
    op = one.op
    assert op.reduce is not None
    column = witness_inputs(pair, op.dtype, op.reduce, RANKS)
    assert column is not None
    inputs = [np.zeros(400, np.float32) for _ in range(RANKS)]
    for array, value in zip(inputs, column, strict=True):
        array[pair.element] = value
    got = [run_elements(p, inputs)[pair.rank][pair.element] for p in (one, other)]
    assert got[0].view(np.uint32) != got[1].view(np.uint32)
    witness = shown(one, other, pair)
    assert witness is not None
    assert witness.bits[0] != witness.bits[1]


def test_elements_may_stand_elsewhere_in_the_other_call() -> None:
    """Row 1 of a batch of two rows is row 0 of a batch of one: other chunks of the ring."""
    one, other = ring(128, level1="ring"), ring(256, level1="ring")
    assert same_bits(one, other, shift=0).bits is Bits.DIFFER
    with pytest.raises(ParameterError, match="no element in common"):
        same_bits(one, other, shift=100_000)


def test_an_open_order_is_open_and_integers_are_not() -> None:
    loop = "AllReduceMeshOpbaseLoopExecutor"
    program = recorded(loop, op_of("all_reduce", 1000), RANKS)
    assert same_bits(program, program).bits is Bits.OPEN
    whole = recorded(loop, op_of("all_reduce", 1000, dtype="int32"), RANKS)
    found = same_bits(whole, ring(1000, "int32"))
    assert found.bits is Bits.SAME
    assert "int32 wraps around" in found.reason


def test_calls_that_add_other_values_are_refused() -> None:
    with pytest.raises(ParameterError, match="different data types: fp32 and fp16"):
        same_bits(ring(8), ring(8, "fp16"))
    eight = recorded("AllReduceComm", op_of("all_reduce", 8), 8)
    with pytest.raises(ParameterError, match="different numbers of ranks: 4 and 8"):
        same_bits(ring(8), eight)


def test_the_share_on_random_data_is_that_of_runs() -> None:
    one, other = ring(4096, "bf16", level1="ring"), ring(4096, "bf16", level1="NHR")
    found = same_bits(one, other)
    share = share_of_differing(found.pairs, one.op.dtype, RANKS, found.elements)
    rng = np.random.default_rng(5)
    inputs = [rng.standard_normal(4096).astype(one.op.dtype.numpy) for _ in range(RANKS)]
    got = [np.stack(run_elements(p, inputs)).view(np.uint16) for p in (one, other)]
    assert share == pytest.approx(float((got[0] != got[1]).mean()), abs=0.03)


def test_the_boundary_is_found_to_the_element() -> None:
    """A ring's chunks are whole 128 bytes: 128 elements are 4 chunks of 32, 129 are 3 of up to 64,
    so that element 32 is in another chunk.
    """

    def trees_at(count: int) -> ElementTrees:
        return trees_of(ring(count))

    assert boundary(trees_at, 1, 128, 400) == (128, 129)
    assert same_trees(trees_at(128), trees_at(97)).bits is Bits.SAME
    assert same_trees(trees_at(128), trees_at(129)).bits is Bits.DIFFER
    assert boundary(trees_at, 1, 8, 32) is None  # one chunk


def test_assumptions_speak_of_the_type() -> None:
    floats = assumptions(op_of("all_reduce", 8, dtype="bf16"), "910B")
    assert any("rounds to bf16" in text for text in floats)
    assert any("CCU" in text for text in assumptions(op_of("all_reduce", 8), "950"))
    assert "wraps around" in assumptions(op_of("all_reduce", 8, dtype="int8"), "910B")[0]
