"""The table of commands: each has its file, and the overview is not cut."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hccl_py.cli import (
    advise,
    check,
    compare,
    convert,
    doctor,
    explain,
    export,
    fit,
    listing,
    main,
    new,
    numerics,
    record,
    run,
    simulate,
    trace,
    tuning,
    view,
)
from hccl_py.cli.app import COMMANDS


def test_every_command_has_its_file() -> None:
    files = {
        m.__name__.rpartition(".")[2] for m in (run, trace, simulate, numerics, compare, explain)
    }
    files |= {m.__name__.rpartition(".")[2] for m in (fit, tuning, check, new, doctor, record)}
    files |= {m.__name__.rpartition(".")[2] for m in (convert, export, view, advise)} | {"list"}
    assert files == set(COMMANDS)
    assert callable(listing.command)


def test_the_overview_is_not_cut(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    words = " ".join(capsys.readouterr().out.split())
    assert all(f"{name} {text}" in words for name, text in COMMANDS.items())


def test_the_package_is_the_command() -> None:
    command = [sys.executable, "-m", "hccl_py", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("hccl-py ")


def test_a_saved_program_goes_wherever_an_op_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    call = ["all_gather", "--ranks", "2", "-b", "1K"]
    assert main(["trace", *call, "--save", "a.json"]) == 0
    for command in (["run", "a.json", "-n", "1"], ["simulate", "a.json"], ["trace", "a.json"]):
        assert main(command) == 0
    capsys.readouterr()
    for name in ("compare", "explain"):
        assert main([name, "a.json"]) == 2
        assert f"{name} takes an op, and a.json is a program file." in capsys.readouterr().err
    assert main(["simulate", "a.json", "--ranks", "2"]) == 2
    assert "--ranks does not go with a program file" in capsys.readouterr().err
    Path("mine.json").write_text("{}")
    assert main(["simulate", *call, "--save", "mine.json"]) == 2
    assert Path("mine.json").read_text() == "{}"
    assert os.listdir(".").count("a.json") == 1


def test_a_program_that_was_read_was_not_recorded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "a.json")
    assert main(["simulate", "all_gather", "--ranks", "2", "-b", "1K", "--save", path]) == 0
    assert "recorded in" in capsys.readouterr().out
    assert main(["simulate", path]) == 0
    output = capsys.readouterr().out
    assert "recorded in" not in output
    assert "simulated in" in output


def test_shells_complete_commands_and_ops() -> None:
    def completed(words: str, at: int) -> list[str]:
        environment = os.environ | {
            "_HCCL_PY_COMPLETE": "complete_bash",
            "COMP_WORDS": words,
            "COMP_CWORD": str(at),
        }
        command = [str(Path(sys.executable).parent / "hccl-py")]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return done.stdout.split()

    assert completed("hccl-py sim", 1) == ["simulate"]
    assert completed("hccl-py run all_g", 2) == ["all_gather", "all_gather_v"]
    # Typer asks which shell is its parent, so it gets one, whoever started the tests.
    command = [str(Path(sys.executable).parent / "hccl-py"), "--show-completion; exit $?"]
    done = subprocess.run(
        ["bash", "-c", " ".join(command)], capture_output=True, text=True, check=True
    )
    assert "complete_bash" in done.stdout
    assert "hccl-py" in done.stdout
