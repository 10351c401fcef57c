"""NB templates: right for every size and root; steps, tasks, bytes and times as HCCL has them."""

from collections.abc import Callable
from functools import partial

import pytest

from hccl_executors.templates.nb import (
    SMALL_SLICE,
    nb_all_gather,
    nb_all_reduce,
    nb_broadcast,
    nb_broadcast_in_parts,
    nb_reduce_scatter,
    nb_scatter,
    nb_tree_limit,
)
from hccl_py.program.program import Program
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
    ("all_gather", nb_all_gather),
    ("reduce_scatter", nb_reduce_scatter),
    ("all_reduce", nb_all_reduce),
    ("broadcast", nb_broadcast),
    ("broadcast", nb_broadcast_in_parts),
    ("scatter", nb_scatter),
]
ALPHA, BETA, GAMMA = FORMULA.hccs.alpha_us, FORMULA.hccs.beta_us, FORMULA.gamma_us


def recorded(op: str, template: Template, size: int, chunk: int = 128, root: int = 0) -> Program:
    """Record a call in which every rank has a chunk of so many bytes."""
    executor = flat_executor(op, template, "nhr")
    per_rank = op in ("all_gather", "reduce_scatter", "scatter")
    count = chunk // 4 * (1 if per_rank else size)
    return record_flat(executor, size, flat_op(executor, count, root=root), 256 << 20)


@pytest.mark.sweep
@pytest.mark.parametrize(("op", "template"), TEMPLATES)
def test_it_is_right(op: str, template: Template) -> None:
    check_template(op, template, "nhr")


@pytest.mark.long
@pytest.mark.seeds(1)
@pytest.mark.parametrize(("op", "template"), TEMPLATES)
def test_it_is_right_everywhere(op: str, template: Template, seed: int) -> None:
    check_template(op, template, "nhr", sizes=MANY_SIZES, seed=seed)


@pytest.mark.parametrize("size", MANY_SIZES)
def test_every_rank_moves_every_chunk_but_its_own(size: int) -> None:
    steps = (size - 1).bit_length()
    program = recorded("reduce_scatter", nb_reduce_scatter, size)
    assert moves(program) == ([size - 1] * size, [128 * (size - 1)] * size)
    assert len(program.labels) == steps
    tasks, sizes = moves(recorded("all_gather", nb_all_gather, size))
    assert sizes == [128 * (size - 1)] * size
    assert tasks == [size - 1] * size
    assert steps == len(recorded("all_gather", nb_all_gather, size).labels)


TIMES: dict[Template, Callable[[int, int, int], float]] = {
    nb_all_gather: lambda p, n, L: 2 * L * ALPHA + (p - 1) / p * n * BETA,
    nb_reduce_scatter: lambda p, n, L: 2 * L * ALPHA + (p - 1) / p * n * (BETA + GAMMA),
    nb_all_reduce: lambda p, n, L: 4 * L * ALPHA + (p - 1) / p * n * (2 * BETA + GAMMA),
    nb_broadcast: lambda p, n, L: L * (ALPHA + n * BETA),
    nb_broadcast_in_parts: lambda p, n, L: (2 * L + 1) * ALPHA + 2 * (p - 1) / p * n * BETA,
    nb_scatter: lambda p, n, L: 2 * ALPHA + (p - 1) / p * n * BETA,
}


@pytest.mark.parametrize("size", [2, 3, 8, 13])
@pytest.mark.parametrize(("op", "template"), TEMPLATES)
def test_times_equal_the_closed_formulas(op: str, template: Template, size: int) -> None:
    chunk = SMALL_SLICE if op == "all_reduce" else 512  # it cuts no smaller ones
    wanted = TIMES[template](size, chunk * size, (size - 1).bit_length())
    program = recorded(op, template, size, chunk, root=size // 2)
    assert formula_us(program) == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize(
    ("size", "limit"), [(3, 3_600_000), (4, 4_800_000), (5, 4_800_000), (17, 3_200_000)]
)
def test_the_limit_of_the_tree_follows_bandwidth_and_size(size: int, limit: int) -> None:
    assert nb_tree_limit(size, 20.0) == limit
    assert nb_tree_limit(size, 10.0) == limit // 2


@pytest.mark.parametrize(("size", "tree"), [(2, True), (3, False), (5, False)])
def test_broadcast_in_parts_from_the_limit_on_but_not_of_two(size: int, tree: bool) -> None:
    slow = partial(nb_broadcast, bandwidth=1e-6)
    labels = recorded("broadcast", slow, size).labels
    assert any(label.startswith("broadcast") for label in labels) == tree
    assert any(label.startswith("scatter") for label in labels) != tree


@pytest.mark.parametrize(("size", "tree"), [(3_599_996, True), (3_600_000, False)])
def test_three_ranks_use_the_tree_below_their_limit(size: int, tree: bool) -> None:
    executor = flat_executor("broadcast", nb_broadcast, "nhr")  # 3 x 20 GB/s x 60 us are 3.6 MB
    labels = record_flat(executor, 3, flat_op(executor, size // 4, root=0), 4 << 20).labels
    assert any(label.startswith("broadcast") for label in labels) == tree
    assert any(label.startswith("scatter") for label in labels) != tree


@pytest.mark.parametrize(("op", "template"), TEMPLATES)
def test_a_thousand_ranks_are_few_batches(op: str, template: Template) -> None:
    chunk = SMALL_SLICE if op == "all_reduce" else 128
    assert len(recorded(op, template, 1000, chunk).batches) <= 40


def test_small_sums_are_one_slice() -> None:
    """Every rank but 0 sends it once, and all but it receive it once."""
    program = recorded("all_reduce", nb_all_reduce, 6)
    assert sum(moves(program)[1]) == 2 * 5 * 6 * 128
