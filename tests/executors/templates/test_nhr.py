"""NHR templates: right for every size and root; steps, tasks, bytes and times as HCCL has them."""

from collections.abc import Callable
from functools import partial

import pytest

from hccl_executors.templates.nhr import (
    nhr_all_gather,
    nhr_all_reduce,
    nhr_all_reduce_one_shot,
    nhr_broadcast,
    nhr_broadcast_in_parts,
    nhr_gather,
    nhr_order,
    nhr_reduce,
    nhr_reduce_scatter,
    nhr_scatter,
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
    ("all_gather", nhr_all_gather),
    ("reduce_scatter", nhr_reduce_scatter),
    ("all_reduce", nhr_all_reduce),
    ("all_reduce", nhr_all_reduce_one_shot),
    ("broadcast", nhr_broadcast),
    ("broadcast", nhr_broadcast_in_parts),
    ("reduce", nhr_reduce),
    ("scatter", nhr_scatter),
    ("gather", nhr_gather),
]
TO_A_ROOT = (nhr_all_reduce_one_shot, nhr_reduce, nhr_gather)
ALPHA, BETA, GAMMA = FORMULA.hccs.alpha_us, FORMULA.hccs.beta_us, FORMULA.gamma_us


def recorded(op: str, template: Template, size: int, chunk: int = 128, root: int = 0) -> Program:
    """Record a call in which every rank has a chunk of so many bytes."""
    executor = flat_executor(op, template, "nhr")
    per_rank = op in ("all_gather", "reduce_scatter", "scatter", "gather")
    count = chunk // 4 * (1 if per_rank else size)
    return record_flat(executor, size, flat_op(executor, count, root=root))


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
@pytest.mark.parametrize("template", [nhr_all_gather, nhr_reduce_scatter])
def test_every_rank_moves_every_chunk_but_its_own(template: Template, size: int) -> None:
    op = template.__name__.removeprefix("nhr_")
    program = recorded(op, template, size)
    assert moves(program) == ([size - 1] * size, [128 * (size - 1)] * size)
    assert len(program.labels) == (size - 1).bit_length()


@pytest.mark.parametrize(("size", "tasks"), [(8, 3), (32, 5), (12, 4)])
def test_renumbered_chunks_travel_in_few_tasks(size: int, tasks: int) -> None:
    counts, sizes = moves(recorded("all_reduce", nhr_all_reduce, size))
    assert counts == [2 * tasks] * size
    assert sizes == [2 * 128 * (size - 1)] * size


def test_places_of_powers_of_two_are_reversed_bits() -> None:
    assert nhr_order(8) == (0, 4, 2, 6, 1, 5, 3, 7)
    assert nhr_order(1) == (0,)
    assert sorted(nhr_order(13)) == list(range(13))


TIMES: dict[Template, Callable[[int, int, int], float]] = {
    nhr_all_gather: lambda p, n, L: L * ALPHA + (p - 1) / p * n * BETA,
    nhr_reduce_scatter: lambda p, n, L: L * ALPHA + (p - 1) / p * n * (BETA + GAMMA),
    nhr_all_reduce: lambda p, n, L: 2 * L * ALPHA + (p - 1) / p * n * (2 * BETA + GAMMA),
    nhr_all_reduce_one_shot: lambda p, n, L: L * (2 * ALPHA + n * (2 * BETA + GAMMA)),
    nhr_broadcast: lambda p, n, L: L * (ALPHA + n * BETA),
    nhr_broadcast_in_parts: lambda p, n, L: 2 * L * ALPHA + 2 * (p - 1) / p * n * BETA,
    nhr_reduce: lambda p, n, L: 2 * L * ALPHA + (p - 1) / p * n * (2 * BETA + GAMMA),
    nhr_scatter: lambda p, n, L: L * ALPHA + (p - 1) / p * n * BETA,
    nhr_gather: lambda p, n, L: L * ALPHA + (p - 1) / p * n * BETA,
}


@pytest.mark.parametrize("size", [2, 3, 8, 13])
@pytest.mark.parametrize(("op", "template"), TEMPLATES)
def test_times_equal_the_closed_formulas(op: str, template: Template, size: int) -> None:
    wanted = TIMES[template](size, 512 * size, (size - 1).bit_length())
    program = recorded(op, template, size, 512, root=size // 2)
    if template in TO_A_ROOT and size & (size - 1):
        assert formula_us(program) < wanted  # some ranks have nothing to wait for
    else:
        assert formula_us(program) == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("limit", [511, 512])
def test_broadcast_goes_over_a_tree_up_to_a_limit(limit: int) -> None:
    template = partial(nhr_broadcast, one_shot=limit)
    labels = recorded("broadcast", template, 4).labels
    assert ("scatter 1/2" in labels) == (limit < 512)
    assert ("broadcast 1/2" in labels) == (limit >= 512)


@pytest.mark.parametrize(("size", "tree"), [(2 << 20, True), ((2 << 20) + 4, False)])
def test_hccl_broadcasts_two_megabytes_over_a_tree(size: int, tree: bool) -> None:
    executor = flat_executor("broadcast", nhr_broadcast, "nhr")
    labels = record_flat(executor, 4, flat_op(executor, size // 4, root=0), 4 << 20).labels
    assert ("broadcast 1/2" in labels) == tree
    assert ("scatter 1/2" in labels) != tree


@pytest.mark.parametrize(("op", "template"), TEMPLATES)
def test_a_thousand_ranks_are_few_batches(op: str, template: Template) -> None:
    assert len(recorded(op, template, 1000).batches) <= 30


@pytest.mark.parametrize("ranks", [2048, pytest.param(8192, marks=pytest.mark.long)])
def test_thousands_of_ranks_are_recorded_in_one_attempt(ranks: int) -> None:
    assert len(recorded("all_reduce", nhr_all_reduce, ranks).batches) == 1
    assert len(recorded("all_reduce", nhr_all_reduce, ranks - 1).batches) == 3
