"""Trees: right for every size and root; one transfer per rank, in ceil(log2 p) steps."""

from collections.abc import Callable

import pytest

from hccl_executors.templates.nhr import nhr_all_reduce_one_shot
from hccl_executors.templates.tree import narrow_tree_broadcast, tree_broadcast, tree_reduce
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

Template = Callable[..., None]

TEMPLATES: list[tuple[str, Template]] = [
    ("broadcast", tree_broadcast),
    ("broadcast", narrow_tree_broadcast),
    ("reduce", tree_reduce),
]


WHOLE: list[tuple[str, Template]] = [*TEMPLATES[:2], ("all_reduce", nhr_all_reduce_one_shot)]
"""A reduction alone leaves it open over RDMA whether its last data has come."""


@pytest.mark.sweep
@pytest.mark.parametrize(("op", "template"), WHOLE)
def test_it_is_right(op: str, template: Template) -> None:
    check_template(op, template, "nhr")


@pytest.mark.long
@pytest.mark.seeds(1)
@pytest.mark.parametrize(("op", "template"), WHOLE)
def test_it_is_right_everywhere(op: str, template: Template, seed: int) -> None:
    check_template(op, template, "nhr", sizes=MANY_SIZES, seed=seed)


@pytest.mark.parametrize("size", [2, 3, 8, 13, 32])
@pytest.mark.parametrize(("op", "template"), TEMPLATES)
def test_times_equal_the_closed_formulas(op: str, template: Template, size: int) -> None:
    executor = flat_executor(op, template, "nhr")
    program = record_flat(executor, size, flat_op(executor, 1000, root=1))
    gamma = FORMULA.gamma_us if op == "reduce" else 0.0
    step = FORMULA.hccs.alpha_us + 4000 * (FORMULA.hccs.beta_us + gamma)
    wanted = (size - 1).bit_length() * step
    if op == "broadcast" or size & (size - 1) == 0:
        assert formula_us(program) == pytest.approx(wanted, rel=1e-9)
    else:
        assert formula_us(program) < wanted  # some ranks have nothing to wait for
    assert sum(moves(program)[0]) == size - 1


@pytest.mark.parametrize(("op", "template"), TEMPLATES)
def test_a_thousand_ranks_are_a_dozen_batches(op: str, template: Template) -> None:
    executor = flat_executor(op, template, "nhr")
    assert len(record_flat(executor, 1000, flat_op(executor, 1000, root=7)).batches) <= 20
