"""Ring templates: right for every size and root; steps, bytes and times as the formulas say."""

from collections.abc import Callable

import pytest

from hccl_executors.templates.ring import (
    ring_all_gather,
    ring_all_reduce,
    ring_broadcast,
    ring_gather,
    ring_reduce,
    ring_reduce_scatter,
    ring_scatter,
)
from tests.executors.flat import (
    FORMULA,
    MANY_SIZES,
    check_template,
    flat_executor,
    flat_op,
    formula_us,
    moves,
    record_flat,
)

TEMPLATES: dict[str, Callable[..., None]] = {
    "all_gather": ring_all_gather,
    "reduce_scatter": ring_reduce_scatter,
    "all_reduce": ring_all_reduce,
    "broadcast": ring_broadcast,
    "reduce": ring_reduce,
    "scatter": ring_scatter,
    "gather": ring_gather,
}
ALPHA, BETA, GAMMA = FORMULA.hccs.alpha_us, FORMULA.hccs.beta_us, FORMULA.gamma_us


@pytest.mark.sweep
@pytest.mark.parametrize("op", TEMPLATES)
def test_it_is_right(op: str) -> None:
    check_template(op, TEMPLATES[op], "ring")


@pytest.mark.long
@pytest.mark.seeds(1)
@pytest.mark.parametrize("op", TEMPLATES)
def test_it_is_right_everywhere(op: str, seed: int) -> None:
    check_template(op, TEMPLATES[op], "ring", sizes=MANY_SIZES, seed=seed)


TIMES: dict[str, Callable[[int, int], float]] = {
    "all_gather": lambda p, n: p * ALPHA + (p - 1) * n / p * BETA,
    "reduce_scatter": lambda p, n: p * ALPHA + (p - 1) * n / p * (BETA + GAMMA),
    "all_reduce": lambda p, n: (2 * p - 1) * ALPHA + (p - 1) * n / p * (2 * BETA + GAMMA),
    "broadcast": lambda p, n: (p + 1) * ALPHA + (3 * (p - 1) if p > 2 else 2) * n / p * BETA,
    "reduce": lambda p, n: 2 * ALPHA + (p - 1) * n * (BETA + GAMMA),
    "scatter": lambda p, n: p * ALPHA + (p - 1) * n / p * BETA,
    "gather": lambda p, n: p * ALPHA + (p - 1) * n / p * BETA,
}


@pytest.mark.parametrize("size", [2, 3, 8, 13])
@pytest.mark.parametrize("op", TEMPLATES)
def test_times_equal_the_closed_formulas(op: str, size: int) -> None:
    executor = flat_executor(op, TEMPLATES[op], "ring")
    count = 32 if op in ("all_gather", "reduce_scatter", "scatter", "gather") else 32 * size
    program = record_flat(executor, size, flat_op(executor, count, root=size // 2))
    assert formula_us(program) == pytest.approx(TIMES[op](size, 128 * size), rel=1e-9)


@pytest.mark.parametrize("count", [0, 1, 4000])
def test_broadcast_has_as_many_rounds_for_every_amount(count: int) -> None:
    executor = flat_executor("broadcast", ring_broadcast, "ring")
    program = record_flat(executor, 5, flat_op(executor, count, root=2))
    assert moves(program)[0] == [5, 5, 0, 5, 5]
    assert len(program.batches) == 3


def test_scatter_and_gather_pass_on_what_is_for_others() -> None:
    for op, template in (("scatter", ring_scatter), ("gather", ring_gather)):
        executor = flat_executor(op, template, "ring")
        tasks, sizes = moves(record_flat(executor, 5, flat_op(executor, 32, root=1)))
        assert tasks == ([1, 0, 4, 3, 2] if op == "scatter" else [3, 4, 0, 1, 2])
        assert sizes == [128 * n for n in tasks]


def test_a_thousand_ranks_are_one_batch() -> None:
    executor = flat_executor("all_reduce", ring_all_reduce, "ring")
    assert len(record_flat(executor, 1024, flat_op(executor, 1 << 16)).batches) == 1
