"""Commands on a program file whose notifies count and whose scratch alternates."""

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from hccl_py.cli import main
from hccl_py.program.program import Program
from hccl_py.verifier import verify_program
from tests.platform.counting_programs import all_gather
from tests.simulator.test_counting import late_first


def clean() -> Program:
    """An all-gather on several streams whose SCRATCH alternates."""
    drawn = (all_gather(Random(seed)) for seed in range(100))
    return next(
        p for p in drawn if p.alternating and p.streams > 1 and not verify_program(p).errors
    )


def document(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    capsys.readouterr()
    assert main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("name", ["plan.json", "plan.npz"])
def test_what_runs_and_judges_a_program(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / name)
    clean().save(path)
    (report,) = document(capsys, "check", path, "--numeric")["reports"]
    assert report["ok"]
    assert report["numeric"]["ok"]
    rows = document(capsys, "run", path, "-n", "5")["rows"]
    assert [row["check"] for row in rows] == ["success"]


def test_times_say_that_notifies_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(tmp_path / "late.json")
    late_first().save(path)
    for words in ([], ["--notifies", "counting"], ["--network", "contended"]):
        found = document(capsys, "simulate", path, *words)
        assert (found["notifies"], found["overruns"]) == ("counting", 0)
    assert main(["simulate", path]) == 0
    assert "notifies count posts\n" in capsys.readouterr().out


def test_drawings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, page, file = (str(tmp_path / name) for name in ("plan.json", "a.html", "a.pftrace"))
    clean().save(path)
    assert main(["trace", path, "--html", page, "--perfetto", file]) == 0
    assert Path(page).stat().st_size > 10_000
    assert Path(file).stat().st_size > 1_000
    assert len(document(capsys, "trace", path)["tasks"]) == clean().task_count
