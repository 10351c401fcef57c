"""Star templates: right for every size and root; everybody is served at once."""

from collections.abc import Callable

import pytest

from hccl_executors.templates.star import (
    star_all_reduce,
    star_broadcast,
    star_gather,
    star_pattern,
    star_reduce,
    star_scatter,
)
from hccl_py.topology import Topology, topology_of
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

TEMPLATES: dict[str, Template] = {
    "broadcast": star_broadcast,
    "scatter": star_scatter,
    "gather": star_gather,
    "reduce": star_reduce,
    "all_reduce": star_all_reduce,
}
ALPHA, BETA, GAMMA = FORMULA.hccs.alpha_us, FORMULA.hccs.beta_us, FORMULA.gamma_us


@pytest.mark.sweep
@pytest.mark.parametrize("op", TEMPLATES)
def test_it_is_right(op: str) -> None:
    check_template(op, TEMPLATES[op], star_pattern)


@pytest.mark.long
@pytest.mark.seeds(1)
@pytest.mark.parametrize("op", TEMPLATES)
def test_it_is_right_everywhere(op: str, seed: int) -> None:
    check_template(op, TEMPLATES[op], star_pattern, sizes=MANY_SIZES, seed=seed)


TIMES: dict[str, Callable[[int, int], float]] = {
    "broadcast": lambda p, n: ALPHA + n * BETA,
    "scatter": lambda p, n: ALPHA + n / p * BETA,
    "gather": lambda p, n: ALPHA + (p - 1) / p * n * BETA,
    "reduce": lambda p, n: ALPHA + (p - 1) * n * (BETA + GAMMA),
    "all_reduce": lambda p, n: 2 * ALPHA + p * n * BETA + (p - 1) * n * GAMMA,
}


@pytest.mark.parametrize("op", TEMPLATES)
def test_times_equal_the_closed_formulas(op: str) -> None:
    size, root = 7, 0 if op == "all_reduce" else 3
    executor = flat_executor(op, TEMPLATES[op], star_pattern(root))
    count = 32 if op in ("scatter", "gather") else 32 * size
    program = record_flat(executor, size, flat_op(executor, count, root=root))
    assert formula_us(program) == pytest.approx(TIMES[op](size, 128 * size), rel=1e-9)
    assert len(program.batches) == 2


def test_writes_over_the_wire_leave_the_root_together() -> None:
    """Acks arrive in the same α; the wires are a connection each."""
    topology = topology_of(servers=6, devices=1)
    alpha, beta = FORMULA.roce.alpha_us, FORMULA.roce.beta_us
    for op, share in (("broadcast", 6 * 128), ("scatter", 128), ("gather", 128)):
        executor = flat_executor(op, TEMPLATES[op], star_pattern(2))
        count = 32 * 6 if op == "broadcast" else 32
        program = record_flat(executor, topology, flat_op(executor, count, root=2))
        assert formula_us(program) == pytest.approx(alpha + share * beta, rel=1e-9)


def test_a_root_with_links_of_both_kinds_moves_everything_once() -> None:
    topology = Topology(topology_of(5, preset="mesh").product, (2, 3))
    executor = flat_executor("broadcast", star_broadcast, star_pattern(1))
    tasks, _ = moves(record_flat(executor, topology, flat_op(executor, root=1)))
    assert tasks == [1, 3, 0, 0, 0]
