"""Per-rank values compute what ints compute, rank by rank, and split where ranks disagree."""

import operator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_py.values import Diverged, PerBool, PerRank, values_of

SIZES = st.integers(1, 9)
BINARY = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.and_,
    operator.or_,
    operator.xor,
]
NONZERO = [operator.floordiv, operator.mod]
COMPARE = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]


def lanes_of(value: object, n: int) -> list[int]:
    found: list[int] = np.broadcast_to(np.atleast_1d(values_of(value)), n).tolist()
    return found


@given(data=st.data(), n=SIZES, steps=st.integers(1, 6))
def test_arithmetic_is_that_of_ints(data: st.DataObject, n: int, steps: int) -> None:
    value: object = PerRank.of(np.arange(n))
    wanted = list(range(n))
    for _ in range(steps):
        other = data.draw(st.integers(-7, 7))
        operate = data.draw(st.sampled_from(BINARY + (NONZERO if other > 0 else [])))
        if data.draw(st.booleans()) or operate in NONZERO:
            value, wanted = operate(value, other), [operate(w, other) for w in wanted]
        else:
            value, wanted = operate(other, value), [operate(other, w) for w in wanted]
        assert lanes_of(value, n) == wanted


@given(n=st.integers(2, 9), a=st.integers(-9, 9), b=st.integers(-9, 9), data=st.data())
def test_two_values_combine_lane_by_lane(n: int, a: int, b: int, data: st.DataObject) -> None:
    operate = data.draw(st.sampled_from([*BINARY, *COMPARE]))
    ranks = PerRank.of(np.arange(n))
    left, right = ranks + a, (ranks + b) % n
    wanted = [operate(r + a, (r + b) % n) for r in range(n)]
    result = operate(left, right)
    found = result.mask.tolist() if isinstance(result, PerBool) else lanes_of(result, n)
    assert found == wanted


def test_sums_and_remainders_stay_formulas() -> None:
    ranks = PerRank(np.arange(8))
    moved = (ranks + 3 - 1) % 8
    assert isinstance(moved, PerRank)
    assert moved.base is ranks.base
    assert (moved.add, moved.mod) == (2, 8)


@given(n=st.integers(2, 9), add=st.integers(-9, 9), size=st.integers(1, 12))
def test_wrapped_counts_from_the_end_or_refuses(n: int, add: int, size: int) -> None:
    index = PerRank(np.arange(n)) + add
    inside = all(-size <= r + add < size for r in range(n))
    if inside:
        assert lanes_of(index.wrapped(size, "chunk"), n) == [(r + add) % size for r in range(n)]
    else:
        with pytest.raises(IndexError, match=f"of {size}"):
            index.wrapped(size, "chunk")


@pytest.mark.parametrize(
    "use", [int, float, bool, str, hash, range, lambda v: f"{v}", lambda v: [0] * v]
)
def test_needing_one_number_splits_by_value_and_names_the_line(use: object) -> None:
    with pytest.raises(Diverged) as caught:
        use(PerRank(np.arange(3)))  # type: ignore[operator]
    assert len(caught.value.keys) == 3
    assert caught.value.line[0] == __file__


def test_equal_lanes_are_one_number() -> None:
    same = PerRank(np.array([4, 4]))
    assert int(same) == 4
    assert bool(same == 4)
    assert PerRank.of(np.array([4, 4])) == 4


def test_an_except_exception_does_not_swallow_a_split() -> None:
    def careless() -> None:
        try:
            if PerRank(np.arange(2)) == 1:
                raise AssertionError("not reached")
        except Exception:
            pass

    with pytest.raises(Diverged):
        careless()


def test_numpy_does_not_read_a_wrong_number() -> None:
    ranks = PerRank(np.arange(4))
    with pytest.raises(TypeError):
        np.add(1, ranks)  # type: ignore[call-overload]
    with pytest.raises(IndexError, match="only integers"):
        np.arange(9)[ranks]


def test_division_of_whole_numbers_says_what_to_do() -> None:
    with pytest.raises(TypeError, match="use //"):
        PerRank(np.arange(4)) / 2
    with pytest.raises(TypeError):
        PerRank(np.arange(4)) + 0.5


def test_unrelated_types_compare_as_python_expects() -> None:
    assert (PerRank(np.arange(2)) == None) is False  # noqa: E711
    assert PerRank(np.arange(2)) != "x"


def test_truth_values_count_as_in_python() -> None:
    above = PerRank(np.arange(4)) > 1
    assert lanes_of(above * 2, 4) == [0, 0, 2, 2]
    assert lanes_of(1 + above, 4) == [1, 1, 2, 2]
    assert lanes_of(sum([above, above]), 4) == [0, 0, 2, 2]
    assert lanes_of(PerRank(np.arange(4)) - above, 4) == [0, 1, 1, 2]
    with pytest.raises(Diverged):
        int(above)


def test_comparisons_with_floats_are_python_s() -> None:
    ranks = PerRank(np.arange(4))
    assert (ranks == 2.0).mask.tolist() == [False, False, True, False]
    assert (ranks < 1.5).mask.tolist() == [True, True, False, False]


@pytest.mark.parametrize(
    ("use", "error"),
    [
        (lambda r: r % 0, ZeroDivisionError),
        (lambda r: r // 0, ZeroDivisionError),
        (lambda r: 5 % r, ZeroDivisionError),
        (lambda r: r << 70, OverflowError),
        (lambda r: r * 2**62, OverflowError),
        (lambda r: (r + 2) ** 63, OverflowError),
        (lambda r: r << -1, ValueError),
    ],
)
def test_what_64_bits_cannot_do_is_an_error(use: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        use(PerRank(np.arange(4)))
