"""What commands write: documents, tables and lines on stdout, progress on a terminal's stderr."""

from __future__ import annotations

import io
import json
import sys
from types import SimpleNamespace

import pytest
from rich.console import Console

from hccl_py.cli import output
from hccl_py.cli.output import (
    Bar,
    Screen,
    counted,
    facts,
    format_levels,
    print_json,
    table,
    working,
)


def test_a_document_is_indented(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"a": 1, "b": [2]})
    assert capsys.readouterr().out == '{\n  "a": 1,\n  "b": [\n    2\n  ]\n}\n'


def test_long_lists_have_a_row_on_each_line(capsys: pytest.CaptureFixture[str]) -> None:
    parts = iter(['{"k": ', "3}"])
    print_json({"a": 1}, rows=[{"k": 1}, {"k": 2}, parts], none=[])
    out = capsys.readouterr().out
    assert out.splitlines() == [
        *("{", '  "a": 1,', '  "rows": ['),
        *('    {"k": 1},', '    {"k": 2},', '    {"k": 3}'),
        *("  ],", '  "none": []', "}"),
    ]
    assert json.loads(out) == {"a": 1, "rows": [{"k": 1}, {"k": 2}, {"k": 3}], "none": []}


class Terminal(io.StringIO):
    """A stream in memory that says it is a terminal."""

    encoding = "UTF-8"

    def isatty(self) -> bool:
        return True


def test_lines_end_without_spaces(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen()
    screen.show("one  \n\ntwo ")
    screen.show()
    assert capsys.readouterr().out == "one\n\ntwo\n\n"


@pytest.mark.parametrize(
    ("columns", "width"), [("10", 20), ("20", 20), ("57", 57), ("20000", 10_000)]
)
def test_a_screen_has_between_20_and_10000_columns(
    columns: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert Screen().console.width == width


def numbers() -> object:
    made = table("bytes", "us", left=("executor",))
    made.add_row("1", "2.5", "one word " * 6 + "more")
    return made


def test_a_table_is_whole_in_a_file_and_folded_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    Screen().show_whole(numbers())  # type: ignore[arg-type]
    head, row = capsys.readouterr().out.splitlines()
    assert head.split() == ["bytes", "us", "executor"]
    assert row == "    1  2.5  " + "one word " * 6 + "more"
    monkeypatch.setattr(sys, "stdout", terminal := Terminal())
    Screen().show_whole(numbers())  # type: ignore[arg-type]
    lines = terminal.getvalue().splitlines()
    assert [line.strip() for line in lines[1:]] == [
        "1  2.5  one word one word one word",
        "one word one word one word",
        "more",
    ]
    assert "\x1b[1m" in lines[0]  # a bold head


def rendered(rows: list[tuple[str, list[str]]], width: int, **more: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    console.print(facts(rows, **more))
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_facts_have_a_name_and_lines() -> None:
    rows = [("runs", ["Mesh", "in two rounds"]), ("not", []), ("because", ["it suits"])]
    assert rendered(rows, 40) == [
        "runs     Mesh",
        "         in two rounds",
        "because  it suits",
    ]
    assert rendered([("a", ["b"])], 40, least=6) == ["a       b"]


def test_long_lines_are_folded_and_paths_behind_slashes() -> None:
    assert rendered([("at", ["/first/second/third/f.py"])], 20) == [
        "at  /first/second/",
        "    third/f.py",
    ]
    assert rendered([("at", ["/first/second/t.py"])], 22) == ["at  /first/second/t.py"]
    assert rendered([("at", ["/one/averyveryverylongname/x"])], 20) == [
        "at  /one/",
        "    averyveryverylon",
        "    gname/",
        "    x",
    ]
    assert rendered([("at", ["one two/three four five"])], 20) == [
        "at  one two/three",
        "    four five",
    ]


def test_counts_and_levels_in_words() -> None:
    assert [counted(n, "task") for n in (0, 1, 2)] == ["0 tasks", "1 task", "2 tasks"]
    assert format_levels({"level0": "mesh", "level1": "ring"}) == "level0 mesh, level1 ring"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A clock that stands still."""
    made = SimpleNamespace(now=10.0)
    monkeypatch.setattr(output, "time", SimpleNamespace(monotonic=lambda: made.now))
    return made


def on_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Put a terminal in the place of stderr, for the rest of the test."""
    monkeypatch.setattr(sys, "stderr", made := Terminal())
    return made


def test_a_bar_is_shown_after_a_second(
    clock: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = on_terminal(monkeypatch)
    with Bar("points", 4) as bar:
        bar.advance()
        clock.now = 10.99
        bar.advance()
        assert terminal.getvalue() == ""
        clock.now = 11.0
        bar.advance()
        first = terminal.getvalue()
        assert "points" in first
        assert "75%" in first
        clock.now = 11.09
        bar.advance_to(4, 5)
        assert terminal.getvalue() == first  # drawn no more than ten times a second
        clock.now = 11.11
        bar.advance_to(4, 5)
        assert "80%" in terminal.getvalue()


def test_no_bar_is_drawn_into_a_file(
    clock: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", file := io.StringIO())
    with Bar("points", 4) as bar, working("Compiling"):
        clock.now = 20.0
        bar.advance()
    assert file.getvalue() == ""
    with Bar("points", 4, notices=True) as bar:
        clock.now += 5.0
        bar.advance_to(1, 4)
        clock.now += 6.0
        bar.advance_to(3, 4)
    assert file.getvalue() == "points: 3 of 4 after 11 s\n"


def test_work_that_ends_soon_is_not_told(
    clock: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = on_terminal(monkeypatch)
    with working("Compiling"):
        pass
    assert terminal.getvalue() == ""


def test_work_is_told_and_wiped_out(
    clock: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Ended:
        """Lets two looks happen, and then the end."""

        def __init__(self) -> None:
            self.pauses: list[float] = []

        def wait(self, pause: float) -> bool:
            self.pauses.append(pause)
            clock.now += pause
            return len(self.pauses) > 2

        def set(self) -> None:
            assert self.pauses == [1.0, 0.1, 0.1]

    class Thread:
        """Works when it is waited for."""

        def __init__(self, target: object, daemon: bool) -> None:
            self.start = target

        def join(self) -> None:
            pass

    monkeypatch.setattr(output, "threading", SimpleNamespace(Event=Ended, Thread=Thread))
    terminal = on_terminal(monkeypatch)
    with working("Compiling"):
        pass
    assert terminal.getvalue() == "\r\x1b[KCompiling, 1 s\r\x1b[KCompiling, 1 s\r\x1b[K"
