"""`--zero-copy`: the option, the variable that it goes before, and who takes it."""

import json

import pytest

from hccl_py.cli import main

CALL = ("all_gather", "--topology", "atlas-900-a3", "--servers", "2", "--devices", "2", "-b", "64M")
REGISTERED, USUAL = "AllGatherRingZerocopyExecutor", "AllGatherRingFor91093Executor"
RUN = ("run", "-n", "1", "-w", "0")


@pytest.mark.parametrize("command", [("explain",), ("simulate",), RUN])
@pytest.mark.parametrize(
    ("variable", "option", "asked"),
    [
        (None, None, False),
        (None, "--zero-copy", True),
        ("true", None, True),
        ("true", "--no-zero-copy", False),
        ("false", "--zero-copy", True),
    ],
)
def test_the_option_goes_before_the_variable(
    command: tuple[str, ...],
    variable: str | None,
    option: str | None,
    asked: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if variable is not None:
        monkeypatch.setenv("HCCL_PY_ZERO_COPY", variable)
    options = [] if option is None else [option]
    assert main([command[0], *CALL, *command[1:], *options, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    (found,) = document.get("rows") or [document]
    assert found["executor"] == (REGISTERED if asked else USUAL)


def test_candidates_are_those_of_registered_memory(capsys: pytest.CaptureFixture[str]) -> None:
    for options in ([], ["--zero-copy"]):
        assert main(["compare", *CALL, *options, "--jobs", "1", "--json"]) == 0
        rows = json.loads(capsys.readouterr().out)["rows"]
        assert (REGISTERED in {row["executor"] for row in rows}) == bool(options)
        assert next(row for row in rows if row["is_hccl"])["executor"] == (
            REGISTERED if options else USUAL
        )


def test_an_executor_of_registered_memory_is_refused_without_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["run", *CALL, "--executor", REGISTERED, "-n", "1"]) == 2
    assert "needs user memory that all ranks have registered" in capsys.readouterr().err
    assert main(["run", *CALL, "--executor", REGISTERED, "-n", "1", "-w", "0", "--zero-copy"]) == 0


def test_check_verifies_an_executor_whatever_selection_would_take(
    capsys: pytest.CaptureFixture[str],
) -> None:
    narrowed = ("--topology", "atlas-900-a3", "--servers", "2", "--devices", "2", "--count", "100")
    assert main(["check", REGISTERED, *narrowed, "-d", "fp32", "--json"]) == 0
    (report,) = json.loads(capsys.readouterr().out)["reports"]
    assert report["cases"] > 0


def test_what_was_selected_before_takes_no_such_option(
    tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = str(tmp_path_factory.mktemp("kept") / "ring.json")
    assert main(["simulate", "all_reduce", "--ranks", "2", "-b", "1K", "--save", kept]) == 0
    for option in ("--zero-copy", "--no-zero-copy"):
        assert main(["simulate", kept, option]) == 2
        assert "--zero-copy" in capsys.readouterr().err
