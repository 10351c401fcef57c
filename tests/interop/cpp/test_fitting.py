"""Numbers by rank and turn become formulas: the plainest that is right everywhere, else tables."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_interop.cpp.export.fitting import Fitter
from hccl_interop.cpp.export.formulas import (
    SUMMAND,
    Binary,
    Either,
    Number,
    Spelling,
    Variable,
    entries,
    evaluated,
    text_of,
)
from hccl_interop.cpp.export.points import Points
from hccl_py.values import IntArray

FITTER = Fitter(ranks=16, devices=4)


class Names(dict[str, str]):
    def __missing__(self, name: str) -> str:
        return {"loop0": "k", "loop1": "i"}.get(name, name)


def points(turns: int, number: Callable[[int, int], int], ranks: int = 16) -> Points:
    places = [(r, k) for k in range(turns) for r in range(ranks)]
    values = np.array([number(r, k) for r, k in places])
    return Points(np.array(places), values)


def text(turns: int, number: Callable[[int, int], int]) -> str:
    spelling = Spelling(Names(), lambda table: f"T{list(table.values[:4])}")
    return text_of(FITTER.formula(points(turns, number)), spelling)


@pytest.mark.parametrize(
    ("turns", "number", "formula"),
    [
        (3, lambda r, k: 7, "7"),
        (5, lambda r, k: 14 - 2 * k, "14 - k * 2"),
        (4, lambda r, k: 1 << k, "1 << k"),
        (4, lambda r, k: 8 >> k, "8 >> k"),
        (6, lambda r, k: (k + 1) % 6, "(k + 1) % 6"),
        (15, lambda r, k: (k + 14) % 15, "(k + ranks - 2) % (ranks - 1)"),
        (2, lambda r, k: (r + 2 - k) % 16, "(rank + 2 - k) % ranks"),
        (1, lambda r, k: r, "rank"),
        (15, lambda r, k: (r + 1 + k) % 16, "(rank + k + 1) % ranks"),
        (15, lambda r, k: (r - 2 - k) % 16, "(rank + ranks - 2 - k) % ranks"),
        (4, lambda r, k: (r - (1 << k)) % 16, "(rank + ranks - (1 << k)) % ranks"),
        (15, lambda r, k: k + (k >= r), "k < rank ? k : k + 1"),
        (4, lambda r, k: r ^ (1 << k), "rank ^ (1 << k)"),
        (
            4,
            lambda r, k: (r ^ (8 >> k)) >> (3 - k) << (3 - k),
            "(rank ^ (8 >> k)) / (8 >> k) * (8 >> k)",
        ),
        (
            3,
            lambda r, k: r // 4 * 4 + (r + k + 1) % 4,
            "server * devices + (device + k + 1) % devices",
        ),
        (3, lambda r, k: (r + 4 * k + 4) % 16, "(rank + k * 4 + 4) % ranks"),
        (2, lambda r, k: 4096 * (r % 4) + 100 * k, "device * 4096 + k * 100"),
        (2, lambda r, k: (r + 8 + k) % 16, "(rank + k + 8) % ranks"),
        (2, lambda r, k: (r + 9 + k) % 16, "(rank + k + ranks - 7) % ranks"),
        (3, lambda r, k: (3 + k - r) % 16, "(ranks + k + 3 - rank) % ranks"),
        (3, lambda r, k: 20 + k - r, "k + 20 - rank"),
        (3, lambda r, k: r // 4 * 3 + k, "server * 3 + k"),
        (1, lambda r, k: (r // 4 + 1) % 4, "(server + 1) % servers"),
        (1, lambda r, k: (r % 4 + 3) % 4, "(device + devices - 1) % devices"),
        (1, lambda r, k: 3 if r < 5 else 9, "rank < 5 ? 3 : 9"),
        (1, lambda r, k: 5 if r == 3 else 2, "rank == 3 ? 5 : 2"),
        (3, lambda r, k: k + (k >= r % 4), "k < device ? k : k + 1"),
        (
            3,
            lambda r, k: r // 4 * 4 + k + (k >= r % 4),
            "server * devices + (k < device ? k : k + 1)",
        ),
        (1, lambda r, k: r % 4 // 2 * 2, "device / 2 * 2"),
        (1, lambda r, k: ((r % 4) ^ 2) // 2 * 2, "(device ^ 2) / 2 * 2"),
        (1, lambda r, k: (r * r + 3) % 7, "T[3, 4, 0, 5][rank]"),
    ],
)
def test_the_plainest_formula(turns: int, number: Callable[[int, int], int], formula: str) -> None:
    assert text(turns, number) == formula


@given(
    st.integers(1, 9),
    st.lists(st.integers(0, 40), min_size=1, max_size=6),
    st.sampled_from([(1, 0), (1, 3), (5, 1), (-1, 8)]),
    st.booleans(),
)
def test_every_formula_is_right(
    ranks: int, shifts: list[int], line: tuple[int, int], is_odd: bool
) -> None:
    factor, start = line
    fitter = Fitter(ranks, ranks)

    def number(r: int, k: int) -> int:
        odd = shifts[(r * 3 + k) % len(shifts)] if is_odd else 0
        return (factor * r + shifts[k] + start) % 11 + odd

    given_points = points(len(shifts), number, ranks)
    found = fitter.formula(given_points)
    where = given_points.where
    known: dict[str, IntArray] = {"rank": where[:, 0], "loop0": where[:, 1]}
    known |= {"server": where[:, 0] // ranks, "device": where[:, 0] % ranks}
    known |= {"ranks": np.array(ranks), "devices": np.array(ranks), "servers": np.array(1)}
    assert (evaluated(found, known) == given_points.values).all()
    assert entries(found) <= len(given_points.values)


def test_what_binds_less_than_a_sum_stands_in_brackets_in_one() -> None:
    spelling = Spelling({"rank": "rank"}, lambda table: "kTable")
    rank = Variable("rank")
    choice = Either(Binary("<", rank, Number(8)), Number(4), Number(2))
    assert text_of(choice, spelling, SUMMAND) == "(rank < 8 ? 4 : 2)"
    assert text_of(Binary("<<", Number(1), rank), spelling, SUMMAND) == "(1 << rank)"
    assert text_of(Binary("*", rank, Number(8)), spelling, SUMMAND) == "rank * 8"


@pytest.mark.parametrize(
    ("ranks", "condition"),
    [
        ([9], "rank == 9"),
        ([0, 4, 8, 12], "device == 0"),
        ([4, 5, 6, 7], "server == 1"),
        ([0, 1, 2], "rank < 3"),
        ([1, 3, 5, 7, 9, 11, 13, 15], "rank % 2 == 1"),
    ],
)
def test_some_ranks_are_told_by_server_or_device_first(ranks: list[int], condition: str) -> None:
    found = FITTER.condition(ranks, range(16))
    assert found is not None
    assert text_of(found, Spelling(Names(), lambda table: "T")) == condition


def test_the_rank_of_the_next_server_is_so_many_devices_further() -> None:
    assert text(2, lambda r, k: (r + 4) % 16) == "(rank + devices) % ranks"
