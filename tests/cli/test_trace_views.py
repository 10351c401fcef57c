"""`hccl-py trace` over time and step by step, `hccl-py view`: options, status, keys."""

import io
import os
import re
import sys
import threading
from pathlib import Path
from xml.etree import ElementTree

import pytest

from hccl_py.cli import main, output
from hccl_py.cli.output import Screen
from hccl_py.cli.trace_report import step_through
from hccl_py.trace.board import Board, BoardDrawing
from hccl_py.trace.words import Words
from tests.trace.drawn import SCENES

MESH = ["trace", "all_gather", "--ranks", "4"]


def out(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> str:
    assert main(list(arguments)) == status
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


@pytest.fixture
def stuck(tmp_path: Path) -> str:
    path = tmp_path / "stuck.json"
    SCENES["deadlock"]().program.save(path)
    return str(path)


def test_the_drawing_comes_first_and_tasks_are_asked_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = out(capsys, *MESH)
    assert "ranks 0-3, as rank 0" in text
    assert "critical path: transfer 11.06 us (52%)" in text
    assert "TxAck" not in text
    assert text.rstrip().endswith("--rank R lists the tasks of a rank, --all-ranks those of all.")
    listed = out(capsys, *MESH, "--rank", "1")
    assert listed.index("\nrank 1 ") < listed.index("rank 1: 43 tasks") < listed.index("TxAck")
    assert "rank 0:" not in listed


def test_ranks_that_are_not_drawn_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    nhr = ["trace", "all_reduce", "--ranks", "5", "--executor", "AllReduceComm"]
    nhr += ["--algo", "level0:NA;level1:NHR"]
    text = out(capsys, *nhr, "--ranks-shown", "2")
    assert re.findall(r"^(rank \d)  ", text, re.MULTILINE) == ["rank 0", "rank 1"]
    assert "\nranks 2-4: not drawn; --ranks-shown 5 draws all\n" in text
    assert "not drawn" not in out(capsys, *nhr)


def test_a_part_of_the_time(capsys: pytest.CaptureFixture[str]) -> None:
    text = out(capsys, *MESH, "--from", "12", "--to", "20")
    (scale,) = (line for line in text.splitlines() if line.startswith("  us "))
    assert scale.split()[1] == "12"
    assert scale.endswith("20.00")
    assert out(capsys, *MESH, "--to", "1e9") == out(capsys, *MESH)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--from", "5", "--to", "5"], "--from 5 --to 5 is no span of time."),
        (["--from", "-1"], "--from -1 is no span of time."),
        (["--from", "nan"], "--from nan is no span of time."),
        (["--to", "5e-324"], "--from 0 --to 4.94066e-324 is no span of time."),
        (["--from", "1000"], "--from 1000 is behind the end."),
        (["--rank", "4"], "--rank 4 is out of range."),
        (["--svg", "x.txt"], "x.txt"),
    ],
)
def test_what_makes_no_sense_is_refused(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*MESH, *options]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.out == ""


@pytest.mark.parametrize("more", [[], ["--rank", "2"], ["--all-ranks"], ["--step"]])
def test_a_deadlock_is_drawn_and_is_status_1(
    more: list[str], stuck: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = out(capsys, "trace", stuck, *more, status=1)
    if more != ["--step"]:
        assert re.search(r"\d us of model time, and no end: \d+ tasks cannot begin", text)
        assert "!1 error: WAIT_WITHOUT_POST" in text
        assert "╍" in text
    if more == ["--rank", "2"]:
        assert re.search(r"^  never  wait ◂\?", text, re.MULTILINE)
        assert re.search(r"#12    [\d.]+    never  wait ◂ unmatched", text)
        assert re.search(r"#6    [\d.]+    never  RxDataSignal ◂ rank 1, unmatched", text)
        assert re.search(r"#7             never  post ▸ unmatched", text)


def test_a_deadlock_has_no_json(stuck: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", stuck, "--json"]) == 2
    assert "Deadlock: 10 of 16 streams can never go on" in capsys.readouterr().err


def test_warnings_are_no_failure(capsys: pytest.CaptureFixture[str]) -> None:
    text = out(capsys, "trace", "all_reduce", "--servers", "2", "--devices", "4")
    assert "!1 warning: REDUCE_ORDER_NONDET" in text
    assert text.count("REDUCE_ORDER_NONDET") == 1


def test_the_picture_of_the_steps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "steps.svg"
    out(capsys, *MESH, "--svg", str(path))
    picture = ElementTree.fromstring(path.read_text("utf-8"))
    assert picture.tag.endswith("svg")
    out(capsys, "trace", "all_gather", "--ranks", "20", "--topology", "ring", "--svg", str(path))
    many = ElementTree.fromstring(path.read_text("utf-8"))
    assert len([*many.iter()]) > len([*picture.iter()])


# ---- step by step ----


def test_steps_below_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    text = out(capsys, *MESH, "--step")
    assert re.findall(r"^step (\d+) of 20", text, re.MULTILINE) == [str(k) for k in range(21)]
    assert text.rstrip().splitlines()[-1] == "rank 3 | 3 |    ( 3 )    | 0 | 1 | 2 | 3 |"
    few = out(capsys, *MESH, "--step", "--limit", "3")
    assert few.count("\nstep ") == 3
    assert "the first 3 steps of 20; --limit 0 shows all" in few
    assert "this was the first step of 20;" in out(capsys, *MESH, "--step", "--limit", "1")
    one = out(capsys, *MESH, "--step", "--rank", "2")
    assert "rank 2 |" in one
    assert "rank 1 |" not in one


class Terminal(io.StringIO):
    """A screen."""

    encoding = "utf-8"

    def __init__(self) -> None:
        super().__init__()
        self.began = threading.Event()

    def isatty(self) -> bool:
        return True

    def flush(self) -> None:
        self.began.set()


def typed(keys: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return what the screen shows while somebody types."""
    scene, screen = SCENES["all_gather_mesh"](), Terminal()
    drawing = BoardDrawing(Board(scene), Words.of(scene, unicode=True), range(4))
    ours, theirs = os.openpty()
    with os.fdopen(theirs) as keyboard:
        monkeypatch.setattr(sys, "stdin", keyboard)
        monkeypatch.setattr(sys, "stdout", screen)
        monkeypatch.setenv("COLUMNS", "80")
        monkeypatch.setenv("LINES", "24")
        pressing = threading.Thread(target=_press, args=(ours, keys, screen))
        pressing.start()
        step_through(drawing, Screen(), 0)
        pressing.join()
    os.close(ours)
    return screen.getvalue()


def _press(keyboard: int, keys: str, screen: Terminal) -> None:
    assert screen.began.wait(10)  # what is typed before belongs to the shell
    os.write(keyboard, keys.encode())


@pytest.mark.parametrize(
    ("keys", "steps"),
    [
        ("nn q", [0, 1, 2, 3]),
        ("\x1b[C\x1b[C\x1b[Dq", [0, 1, 2, 1]),
        ("12\rpq", [0, 0, 0, 12, 11]),
        ("\x1b[F\x1b[Hq", [0, 20, 0]),
        ("Gg\r?q", [0, 20, 0, 1, 1]),
        ("99999\rn\x1b", [0, 0, 0, 0, 0, 0, 20, 20]),
        ("n\x04", [0, 1]),
    ],
)
def test_keys_go_forwards_and_back(
    keys: str, steps: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    shown = typed(keys, monkeypatch)
    assert [int(k) for k in re.findall(r"step (\d+) of 20", shown)] == steps
    assert shown.startswith("\x1b[?1049h")
    assert shown.endswith("\x1b[?1049l")


# ---- view ----


def test_the_view_needs_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["view", "all_gather"]) == 2
    assert "The view needs a terminal." in capsys.readouterr().err


# ---- long work ----


def test_long_work_says_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(output, "PATIENCE_S", 0.01)
    with output.working("recording \x1b"):
        assert screen.began.wait(10)
    assert screen.getvalue().startswith("\r\x1b[Krecording \\x1b, 0 s")
    assert screen.getvalue().endswith("\r\x1b[K")


def test_short_work_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    with output.working("recording"):
        pass
    assert screen.getvalue() == ""
