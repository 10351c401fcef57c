"""Doubling: right for powers of two, k steps of whole buffers; refuses other sizes."""

import pytest

from hccl_executors.templates.doubling import doubling_all_reduce
from hccl_py.errors import OrchestrationError
from tests.executors.flat import (
    FORMULA,
    REDUCES,
    check_template,
    flat_executor,
    flat_op,
    formula_us,
    moves,
    record_flat,
)

POWERS = (1, 2, 4, 8, 16, 32)
INLINE = [pair for pair in REDUCES if pair[0] in ("fp32", "int8", "bf16")]
EXECUTOR = flat_executor("all_reduce", doubling_all_reduce, "rhd", lands=True)


def test_it_is_right() -> None:
    check_template(
        "all_reduce", doubling_all_reduce, "rhd", sizes=POWERS, reduces=INLINE, lands=True
    )


@pytest.mark.long
@pytest.mark.seeds(1)
def test_it_is_right_everywhere(seed: int) -> None:
    check_template(
        "all_reduce",
        doubling_all_reduce,
        "rhd",
        sizes=POWERS,
        reduces=INLINE,
        lands=True,
        seed=seed,
    )


@pytest.mark.parametrize("size", [2, 8, 32])
def test_times_equal_the_closed_formula(size: int) -> None:
    program = record_flat(EXECUTOR, size, flat_op(EXECUTOR, 1000))
    steps = size.bit_length() - 1
    step = FORMULA.hccs.alpha_us + 4000 * (FORMULA.hccs.beta_us + FORMULA.gamma_us)
    assert formula_us(program) == pytest.approx(steps * step, rel=1e-9)
    assert moves(program) == ([steps] * size, [4000 * steps] * size)
    assert len(program.batches) == 1


def test_other_sizes_are_refused() -> None:
    with pytest.raises(OrchestrationError, match="needs a power of two, and plane flat has 6"):
        record_flat(EXECUTOR, 6, flat_op(EXECUTOR))
