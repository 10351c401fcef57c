"""RHD templates: right for every size and root; steps, bytes and times as the formulas say."""

from collections.abc import Callable

import pytest

from hccl_executors.templates.rhd import (
    rhd_all_gather,
    rhd_all_reduce,
    rhd_broadcast,
    rhd_pattern,
    rhd_reduce,
    rhd_reduce_scatter,
)
from hccl_py.program.program import Program
from tests.executors.flat import (
    FORMULA,
    MANY_SIZES,
    ROOTED,
    check_template,
    flat_executor,
    flat_op,
    formula_us,
    moves,
    record_flat,
)

Template = Callable[..., None]

TEMPLATES: dict[str, Template] = {
    "all_gather": rhd_all_gather,
    "reduce_scatter": rhd_reduce_scatter,
    "all_reduce": rhd_all_reduce,
    "broadcast": rhd_broadcast,
    "reduce": rhd_reduce,
}
ALPHA, BETA, GAMMA = 2 * FORMULA.hccs.alpha_us, FORMULA.hccs.beta_us, FORMULA.gamma_us
"""Both ends meet before a transfer and after it, over SDMA with an Ack each time."""


def recorded(op: str, size: int, count: int, root: int = 0) -> Program:
    pattern = rhd_pattern(root if op in ROOTED else 0)
    executor = flat_executor(op, TEMPLATES[op], pattern)
    return record_flat(executor, size, flat_op(executor, count, root=root))


@pytest.mark.sweep
@pytest.mark.parametrize("op", TEMPLATES)
def test_it_is_right(op: str) -> None:
    check_template(op, TEMPLATES[op], rhd_pattern if op in ROOTED else "rhd")


@pytest.mark.long
@pytest.mark.seeds(1)
@pytest.mark.parametrize("op", TEMPLATES)
def test_it_is_right_everywhere(op: str, seed: int) -> None:
    pattern = rhd_pattern if op in ROOTED else "rhd"
    check_template(op, TEMPLATES[op], pattern, sizes=MANY_SIZES, seed=seed)


@pytest.mark.parametrize("size", range(1, 18))
def test_links_are_mutual_and_those_of_the_named_pattern(size: int) -> None:
    for root in range(size):
        peers = {i: set(rhd_pattern(root)(i, size)) for i in range(size)}
        assert all(i in peers[other] for i, others in peers.items() for other in others)
        alone = {i for i, others in peers.items() if others == {i ^ 1}}
        assert root not in alone or size == 2
    executor = flat_executor("all_reduce", rhd_all_reduce, "rhd")
    program = record_flat(executor, size, flat_op(executor))
    named = set(
        zip(program.transports.rank.tolist(), program.transports.peer.tolist(), strict=True)
    )
    assert named == {(i, other) for i in range(size) for other in rhd_pattern()(i, size)}


@pytest.mark.parametrize("size", [2, 4, 16])
def test_times_of_powers_of_two_equal_the_closed_formulas(size: int) -> None:
    k, share, n = size.bit_length() - 1, (size - 1) / size, 128 * size
    wanted = {
        "all_gather": k * ALPHA + share * n * BETA,
        "reduce_scatter": k * ALPHA + share * n * (BETA + GAMMA),
        "all_reduce": 2 * k * ALPHA + share * n * (2 * BETA + GAMMA),
        "broadcast": k * (ALPHA + n * BETA),
        "reduce": 2 * k * ALPHA + share * n * (2 * BETA + GAMMA),
    }
    for op, time in wanted.items():
        count = 32 if op in ("all_gather", "reduce_scatter") else 32 * size
        program = recorded(op, size, count, root=1)
        assert formula_us(program) == pytest.approx(time, rel=1e-9)


@pytest.mark.parametrize("size", [3, 5, 6, 7, 12])
def test_times_of_other_sizes_equal_the_closed_formulas(size: int) -> None:
    k = size.bit_length() - 1
    b = 1 << k
    n, half = 128 * b * size, (b - 1) / b
    # The first members of the block have two chunks each, as far as there are pairs.
    chunks = 1 + sum((b >> i) + min(size - b, b >> i) for i in range(1, k + 1))
    wanted = {
        "all_reduce": (2 * k + 2) * ALPHA + (2 * half + 2) * n * BETA + (half + 1) * n * GAMMA,
        "broadcast": (k + 1) * (ALPHA + n * BETA),
        "reduce": (2 * k + 1) * ALPHA + (2 * half + 1) * n * BETA + (half + 1) * n * GAMMA,
        "reduce_scatter": (k + 2) * ALPHA
        + (1 + chunks / size) * n * BETA
        + (1 + (chunks - 1) / size) * n * GAMMA,
        "all_gather": (k + 2) * ALPHA + (1 + chunks / size) * n * BETA,
    }
    for op, time in wanted.items():
        count = n // 4 // (size if op in ("all_gather", "reduce_scatter") else 1)
        found = formula_us(recorded(op, size, count, root=1))
        if op in ("all_gather", "reduce_scatter"):
            # Ranks without a pair are ahead, so that a part of a chunk may be hidden behind an Ack.
            assert (k + 2) * ALPHA + n * BETA < found <= time * (1 + 1e-9)
        else:
            assert found == pytest.approx(time, rel=1e-9)


def test_neighbouring_slices_travel_in_one_task() -> None:
    tasks, sizes = moves(recorded("all_reduce", 16, 32 * 16))
    assert tasks == [8] * 16
    assert sizes == [2 * 15 * 128] * 16
    assert set(moves(recorded("all_gather", 16, 32))[0]) == {4}


@pytest.mark.sweep
@pytest.mark.parametrize("op", TEMPLATES)
def test_a_thousand_ranks_are_few_batches(op: str) -> None:
    assert len(recorded(op, 1000, 1000, root=7).batches) <= 20
