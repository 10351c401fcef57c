"""`hccl-py advise`: one answer in four forms, partial after Ctrl-C, errors."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from hccl_py.cli import main
from hccl_py.tuning import compare as comparing
from hccl_py.tuning import timing

CALL = ("all_reduce", "--servers", "4", "--devices", "8", "-b", "16M", "--jobs", "1")
NAMES = ("takes", "levels", "by size", "time", "goes into", "if slow", "trust", "better")


def advise_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main(["advise", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_parts_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    assert main(["advise", *CALL]) == 0
    lines = capsys.readouterr().out.splitlines()
    named = [line[:12].strip() for line in lines[3:]]
    assert [name for name in named if name] == list(NAMES)
    assert len(lines) < 50


def test_the_document_agrees_with_the_other_commands(capsys: pytest.CaptureFixture[str]) -> None:
    document = advise_json(capsys, *CALL)
    assert document["schema"] == "hccl-py.advise/1"
    assert document["is_partial"] is False
    call = [*CALL[:-2], "--json"]
    assert main(["simulate", *call]) == 0
    simulated = json.loads(capsys.readouterr().out)
    assert document["time"]["time_us"] == pytest.approx(simulated["simulated_us"])
    assert document["time"]["lower_bound_us"] == simulated["lower_bound_us"]
    assert document["choice"]["executor"] == simulated["executor"]
    assert main(["compare", *CALL, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    times = {round(row["time_us"], 6) for row in rows}
    faster = document["alternatives"]["faster"]
    assert all(one["time_us"] < document["time"]["time_us"] for one in faster)
    assert {round(one["time_us"], 6) for one in faster if one["fidelity"]} <= times
    assert main(["explain", *call]) == 0
    assert document["ranges"] == json.loads(capsys.readouterr().out)["ranges"]


def test_times_with_slow_parts_are_those_of_simulate(capsys: pytest.CaptureFixture[str]) -> None:
    for one in advise_json(capsys, *CALL)["what_if"]:
        assert main(["simulate", *CALL[:-2], "--slow", one["slow"], "--json"]) == 0
        simulated = json.loads(capsys.readouterr().out)
        assert one["time_us"] == pytest.approx(simulated["simulated_us"])
        assert one["times_longer"] > 1


def test_a_link_that_is_lost_is_said_with_the_bytes_that_go_over_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In a mesh of 4, each rank of a pair reads the other one's whole input."""
    assert main(["advise", "all_gather", "--ranks", "4", "-b", "1M", "--jobs", "1"]) == 0
    assert (
        f"the same link lost: no end, since {2 << 18} bytes go over it" in capsys.readouterr().out
    )


def test_a_link_that_is_not_used_may_be_lost(capsys: pytest.CaptureFixture[str]) -> None:
    """NHR over all ranks of two servers takes the Clos network, not the mesh."""
    call = ("all_gather", "--topology", "ascend950-2x8", "-b", "16M", "--jobs", "1")
    document = advise_json(capsys, *call)
    assert [one.get("bytes_if_lost") for one in document["what_if"]] == [None, 0, 1 << 23]


def test_the_doors_without_a_setting_are_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    call = ("--topology", "atlas-900-a3", "--servers", "2", "--devices", "16", "-b", "64M")
    assert main(["advise", "all_reduce", *call, "--jobs", "1", "--markdown"]) == 0
    text = capsys.readouterr().out
    assert text.count("; no setting\n") > 1
    assert text.count("no setting: only a row of HCCL's selection or a custom op") == 1


def test_a_setting_gets_its_time(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    call = ["reduce_scatter", "--servers", "4", "--devices", "8", "-b", "16M"]
    document = advise_json(capsys, *call, "--algo", "level0:NA;level1:ring", "--jobs", "1")
    settings = [one for one in document["alternatives"]["faster"] if one["setting"]]
    assert settings
    for one in settings:
        found = re.findall(r'(\w+)="?([^" ,]+)"?', one["setting"])
        with monkeypatch.context() as patch:
            for name, value in found:
                patch.setenv(name, value)
            assert main(["simulate", *call, "--json"]) == 0
        simulated = json.loads(capsys.readouterr().out)
        assert simulated["simulated_us"] == pytest.approx(one["time_us"])


def test_markdown_and_the_page_have_the_same_parts(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    page = tmp_path / "advice.html"
    assert main(["advise", *CALL, "--markdown", "--html", str(page)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("# all\\_reduce sum of 16M bytes")
    assert [line[3:] for line in lines if line.startswith("## ")] == list(NAMES)
    text = page.read_text(encoding="utf-8")
    assert re.findall("<h2>(.*)</h2>", text) == list(NAMES)
    bullets = [line for line in lines if line.startswith("- ")]
    assert text.count("<li>") == len(bullets)


def test_ctrl_c_keeps_what_was_found(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    timed = timing.timed

    def interrupted(*arguments: Any) -> Any:
        for count, one in enumerate(timed(*arguments)):
            yield one
            if count == 3:
                raise KeyboardInterrupt

    monkeypatch.setattr(comparing, "timed", interrupted)
    assert main(["advise", *CALL, "--json"]) == 130
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert document["is_partial"] is True
    assert document["alternatives"]["left_out"] > document["alternatives"]["timed"] > 0
    assert "not complete" in err


def test_an_overruled_word_is_told_by_all_commands(
    capsys: pytest.CaptureFixture[str],
) -> None:
    call = ["all_reduce", "--topology", "atlas-900-a3", "--servers", "4", "--devices", "2"]
    call += ["-b", "1M", "--algo", "level0:NA;level1:H-D_R"]
    for command in ("advise", "explain", "simulate", "run"):
        more = ["--jobs", "1"] if command == "advise" else []
        assert main([command, *call, *more]) == 0
        words = " ".join(capsys.readouterr().out.split())
        assert "HCCL_ALGO's level1:H-D_R is overruled: NHR runs" in words, command


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--executor", "AllReduceRing"], "--executor"),
        (["--select", "cost"], "HCCL's rules"),
        (["--counts", "x.json"], "compare takes no --counts"),
        (["--html", "x.txt"], ".html"),
        (["--effort", "-1"], "--effort"),
        (["-b", "0"], "nothing to advise on at 0 bytes"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["advise", "all_reduce", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err


def test_a_call_of_one_size_and_one_rank(capsys: pytest.CaptureFixture[str]) -> None:
    barrier = advise_json(capsys, "barrier", "--ranks", "4", "--jobs", "1")
    assert "ranges" not in barrier
    alone = advise_json(capsys, "all_reduce", "--ranks", "1", "--jobs", "1")
    assert "what_if" not in alone
