from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hccl_py.cli.options import Sizes
from hccl_py.cli.sizes import first_size, last_size, parse_size, row_sizes, starting_at
from hccl_py.errors import ParameterError

SUFFIXES = {"": 1, "K": 1024, "M": 1024**2, "G": 1024**3, "k": 1024, "m": 1024**2, "g": 1024**3}

TERABYTES = {"T": 1024**4, "t": 1024**4, "P": 1024**5, "p": 1024**5}


@given(st.integers(0, 10**8), st.sampled_from(list(SUFFIXES)))
def test_numbers_with_suffixes(number: int, suffix: str) -> None:
    assert parse_size(f"{number}{suffix}", "-b") == number * SUFFIXES[suffix]


@given(st.integers(0, 1024), st.sampled_from(list(TERABYTES)))
def test_large_numbers_with_suffixes(number: int, suffix: str) -> None:
    assert parse_size(f"{number}{suffix}", "-b") == number * TERABYTES[suffix]


def test_more_than_2_to_the_60_bytes_are_refused() -> None:
    assert parse_size("1024P", "-b") == 1 << 60
    for text in ("1025P", str((1 << 60) + 1)):
        with pytest.raises(ParameterError, match="more than 2\\^60 bytes"):
            parse_size(text, "-b")


@given(st.text())
def test_any_text_is_a_size_or_refused_with_a_sentence(text: str) -> None:
    try:
        size = parse_size(text, "-b")
    except ParameterError as error:
        assert error.message.startswith("-b ")  # noqa: PT017 - either outcome is right
        assert error.hint  # noqa: PT017
    else:
        assert 0 <= size <= 1 << 60


@pytest.mark.parametrize(
    ("first", "sizes", "rows"),
    [
        ("1M", Sizes(), [1 << 20]),
        ("1M", Sizes(maxbytes="1M"), [1 << 20]),
        ("1K", Sizes(maxbytes="16K", stepfactor=4), [1024, 4096, 16384]),
        ("1K", Sizes(maxbytes="5000", stepfactor=2), [1024, 2048, 4096]),
        ("10", Sizes(maxbytes="110"), list(range(10, 111, 10))),  # a tenth of the difference
        ("1", Sizes(maxbytes="4"), [1, 2, 3, 4]),
        ("1K", Sizes(maxbytes="3K", stepbytes="1K"), [1024, 2048, 3072]),
        ("1K", Sizes(maxbytes="3K", stepbytes="0"), [1024]),  # hccl_test repeats it
        ("1K", Sizes(maxbytes="4K", stepbytes="1K", stepfactor=4), [1024, 4096]),  # -f wins
        ("0", Sizes(), [0]),
        ("0", Sizes(maxbytes="0", stepfactor=2), [0]),
    ],
)
def test_rows_by_hccl_test_s_rules(first: str, sizes: Sizes, rows: list[int]) -> None:
    assert list(row_sizes(first, sizes)) == rows


@given(st.integers(1, 1 << 40), st.integers(0, 1 << 40), st.integers(2, 64))
def test_multiplied_rows_go_as_far_as_they_can(first: int, more: int, factor: int) -> None:
    last = first + more
    rows = list(row_sizes(str(first), Sizes(maxbytes=str(last), stepfactor=factor)))
    assert rows[0] == first
    assert rows[-1] <= last < rows[-1] * factor
    assert all(b == a * factor for a, b in pairwise(rows))


@given(st.integers(0, 1 << 40), st.integers(0, 1 << 40))
def test_added_rows_are_at_most_eleven_unless_asked_for(first: int, more: int) -> None:
    rows = row_sizes(str(first), Sizes(maxbytes=str(first + more)))
    assert rows[0] == first
    assert rows[-1] <= first + more
    assert len(rows) <= 11


def test_there_are_at_most_65536_rows() -> None:
    most = row_sizes("1", Sizes(maxbytes="65536", stepbytes="1"))
    assert (len(most), most[-1]) == (65536, 65536)
    with pytest.raises(ParameterError, match="65537 sizes are too many"):
        row_sizes("0", Sizes(maxbytes="65536", stepbytes="1"))


@pytest.mark.parametrize(
    ("first", "sizes", "words"),
    [
        ("2K", Sizes(maxbytes="2047"), "-e/--maxbytes '2047' is less than -b/--minbytes '2K'"),
        (None, Sizes(maxbytes="1K"), "'1K' is less than -b/--minbytes '1M'"),
        ("1", Sizes(maxbytes="9", stepfactor=1), "-f/--stepfactor is 1"),
        ("0", Sizes(maxbytes="1", stepfactor=2), "never leads away from 0 bytes"),
    ],
)
def test_rows_that_lead_nowhere_are_refused(first: str | None, sizes: Sizes, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        row_sizes(first, sizes)


def test_the_first_and_the_last_size_have_defaults() -> None:
    assert (first_size(None), first_size("3")) == (1 << 20, 3)
    assert (last_size("3", Sizes()), last_size("3", Sizes(maxbytes="4"))) == (3, 4)
    assert [starting_at(*given) for given in ((None, 1 << 20), (None, 64), ("3", 64))] == [
        None,
        "64",
        "3",
    ]
