"""Pictures and the terminal's chart of comparisons."""

import re
import sys

import pytest

from hccl_py.errors import ParameterError
from hccl_py.tuning.chart import chart
from hccl_py.tuning.compare import Comparison, compare
from hccl_py.tuning.pictures import page, png
from tests.tuning.evaluations import point


@pytest.fixture(scope="module")
def found() -> Comparison:
    slow = point(0, ranks=8, slow=("rank=1:2x",))
    return compare(slow, [1 << 10, 1 << 17, 1 << 24], jobs=1)


def test_a_png_of_the_stated_size(found: Comparison) -> None:
    data = png(found)
    assert data.startswith(b"\x89PNG")
    assert (int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")) == (2080, 832)


def test_a_page_needs_nothing_else_and_is_always_the_same(found: Comparison) -> None:
    text = page(found)
    assert page(found) == text
    links = set(re.findall(r"https?://[^\"'\s<]+", text))
    assert links <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert "<script" not in text
    assert "currentColor" in text
    assert "prefers-color-scheme: dark" in text
    assert "slow rank=1:2x" in text
    assert text.count("slow rank=1:2x") == 1  # below the title, and not in the picture again
    for row in found.winners.values():
        assert f">{row.candidate.name}</td>" in text


def test_without_matplotlib(found: Comparison, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ParameterError, match="Pictures need matplotlib") as error:
        png(found)
    assert "hccl-py[plots]" in error.value.hint


@pytest.mark.parametrize("width", [20, 60, 200])
def test_a_chart_fits_and_shows_all(found: Comparison, width: int) -> None:
    lines = chart(found, width, unicode=False)
    assert all(line.isascii() for line in lines)
    end = next(number for number, line in enumerate(lines) if line.endswith(". others"))
    assert max(map(len, lines[: end - 2])) <= max(width, 20)
    marks = "".join(line.partition("|")[2] for line in lines[: end - 2])
    assert marks.count("*") == 3
    assert marks.count("o") <= 3
    legend = " ".join(lines[end + 1 :])
    names = {row.candidate.name for row in found.rows}
    lettered = dict(part.split(" ", 1) for part in legend.split("; ")[1:])
    assert set(marks) - set("*o. ") <= set(lettered)
    assert set(lettered.values()) <= names
    assert all(row.candidate.name in legend for row in found.winners.values())


def test_a_chart_of_one_size() -> None:
    lines = chart(compare(point(0, "barrier", ranks=2), [0], jobs=1), 80)
    assert "●" in "".join(lines)
