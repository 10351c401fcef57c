"""Execution plans of mscclpp on the command line: every command that takes a program takes one."""

import json
import re
from pathlib import Path

import pytest

import hccl_py as hccl
from hccl_py.cli import main
from tests.interop.mscclpp import plans


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("plan.json").write_text(plans.packet_all_reduce(2).text())
    return "plan.json"


def run(*arguments: str) -> int:
    return main(list(arguments))


def test_every_command_takes_a_plan(plan: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run("check", plan, "-b", "64K", "-d", "fp16", "--numeric") == 0
    assert "all_reduce sum fp16 by mscclpp LL, 2 chunks: own" in capfd.readouterr().out
    assert run("simulate", plan, "-b", "64K", "-e", "1M", "-f", "4", "--json") == 0
    rows = json.loads(capfd.readouterr().out)["rows"]
    assert [row["bytes"] for row in rows] == [1 << 16, 1 << 18, 1 << 20]
    assert run("trace", plan, "-b", "1K") == 0
    assert "reduce packets, send" in capfd.readouterr().out
    assert run("record", plan, "-b", "1K", "--out", "kept.json") == 0
    assert "36 tasks, 1 channel" in capfd.readouterr().out
    assert run("convert", plan, "kept.npz", "-b", "1K") == 0
    assert capfd.readouterr().out == "kept.npz: all_reduce, 2 ranks, 36 tasks\n"
    assert hccl.load("kept.json").digest == hccl.load("kept.npz").digest
    assert run("check", "kept.json", "kept.npz") == 0
    assert run("check", plan, "kept.json", "-b", "1K") == 0


@pytest.mark.parametrize("inplace", [False, True])
def test_calls_in_a_row_are_right(
    inplace: bool, plan: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """The third call meets the half of scratch that the first one used; in place, input and output
    share memory as the plan says.
    """
    Path("gather.json").write_text(plans.puts_all_gather(3, inplace=inplace).text())
    for name in (plan, "gather.json"):
        assert run("run", name, "-b", "3K", "-n", "3", "-w", "1") == 0
        assert "every element at every rank is right" in capfd.readouterr().out


def test_plans_are_taken_at_a_size_that_they_are_for(
    plan: str, capfd: pytest.CaptureFixture[str]
) -> None:
    small = plans.packet_all_reduce(2)
    small.members |= {"max_message_size": 8192}
    Path(plan).write_text(small.text())
    for command in ("check", "simulate", "trace"):
        assert run(command, plan) == 0
    assert run("run", plan, "-n", "1", "-w", "0") == 0
    assert "the minbytes is 8192, maxbytes is 8192" in capfd.readouterr().out
    assert run("check", plan, "-b", "16K") == 1
    out = " ".join(capfd.readouterr().out.split())
    assert "The message of 16384 bytes is not between min_message_size, 0, and" in out


def test_what_does_not_go_with_a_plan_is_said(plan: str, capfd: pytest.CaptureFixture[str]) -> None:
    for arguments, message in (
        (["simulate", plan, "--ranks", "4"], "--ranks does not go with an execution plan"),
        (["check", plan, "-o", "max"], "operations make a sum, and not max"),
        (["run", plan, "-r", "0"], "all_reduce has no root"),
        (["explain", plan], "plan.json is an execution plan of mscclpp"),
        (["convert", plan, "out.xml"], "The program is no MSCCL algorithm: its notifies count."),
    ):
        assert run(*arguments) == 2
        assert message in " ".join(capfd.readouterr().err.split())


def test_broken_plans_are_told_as_plans(plan: str, capfd: pytest.CaptureFixture[str]) -> None:
    document = json.loads(Path(plan).read_text())
    document["gpus"][1]["threadblocks"][0]["ops"][0]["name"] = "puts"
    Path(plan).write_text(json.dumps(document))
    for command in ("check", "run", "simulate", "trace"):
        assert run(command, plan) == 2
        message = 'gpus[1].threadblocks[0].ops[0].name: expected an operation, found "puts".'
        assert message in " ".join(capfd.readouterr().err.split())


def test_findings_are_in_the_plans_words(plan: str, capfd: pytest.CaptureFixture[str]) -> None:
    broken = plans.puts_all_gather(2)
    block = broken.blocks[0][0]
    signals = [number for number, op in enumerate(block.ops) if op["name"] == "signal"]
    del block.ops[signals[1]]
    Path(plan).write_text(broken.text())
    assert run("check", plan, "-b", "1K", "--json") == 1
    (report,) = json.loads(capfd.readouterr().out)["reports"]
    (finding,) = [f for f in report["findings"] if f["class"] == "WAIT_WITHOUT_POST"]
    wait = next(op for op in reversed(broken.blocks[1][0].ops) if op["name"] == "wait")
    assert finding["source"] == f"plan.json:{broken.line(wait)}"
    assert (
        "memory channel 0 with rank 0 of op 8 (wait) of threadblock 0 of GPU 1"
        in (finding["message"])
    )


@pytest.mark.parametrize("command", ["check", "simulate", "run", "convert"])
@pytest.mark.parametrize(
    ("text", "message"),
    [(None, "There is no file|cannot be read"), ('{"name": "cut', "the text is not JSON")],
)
def test_a_file_that_is_not_there_or_cut_is_said_before_options(
    command: str,
    text: str | None,
    message: str,
    plan: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    if text is not None:
        Path("broken.json").write_text(text)
    more = ("kept.npz",) if command == "convert" else ()
    assert run(command, "broken.json", *more, "-b", "1K") == 2
    error = capfd.readouterr().err
    assert re.search(message, error)
    assert error.count("error:") == 1


def test_times_of_flows_that_share_a_link_are_explained(
    plan: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three threadblocks use each link at once, as if it were theirs alone."""
    monkeypatch.setenv("COLUMNS", "200")
    Path(plan).write_text(plans.packet_all_reduce(2, group=3).text())
    words = "what the busiest link needs; --network contended lets flows share links"
    for sizes in (("-b", "16M"), ("-b", "4M", "-e", "16M", "-f", "4")):
        assert run("simulate", plan, *sizes) == 0
        assert words in capfd.readouterr().out
        assert run("simulate", plan, *sizes, "--network", "contended") == 0
        assert words not in capfd.readouterr().out
