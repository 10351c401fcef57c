"""Logs of HCCL's checker on the command line: every command that takes a program takes a test."""

import json
from pathlib import Path

import pytest

import hccl_py as hccl
from hccl_py.cli import main
from tests.interop.checker_logs.logs import Log, all_gather, all_reduce_of_two, error


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    wrong = all_reduce_of_two()
    wrong[1][0].pop()
    said = (error("[TaskGraphGenerator] unmatched inter-rank post"),)
    text = (
        Log()
        .test("AllReduceTest.prints_nothing")
        .test("AllGatherTest.four_ranks", all_gather(4))
        .test("AllReduceTest.lost_wait", wrong, said, "  FAILED ")
        .test("MiscTest.of_no_op", all_gather(3))
        .text()
    )
    Path("st.log").write_text(text)
    return "st.log"


def run(*arguments: str) -> int:
    return main(list(arguments))


def test_every_test_of_a_log_has_a_line(log: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run("check", log) == 1
    lines = capfd.readouterr().out.replace("\n", " ")
    for line in (
        "#1 ok | HCCL's checker: passed | AllGatherTest.four_ranks",
        "#2 2 errors | HCCL's checker: failed | AllReduceTest.lost_wait",
        "#3 ok, results not judged | HCCL's checker: passed | MiscTest.of_no_op",
        "3 targets: 2 ok, 1 with errors",
    ):
        assert line in lines
    assert run("check", f"{log}#AllG*") == 0
    out = capfd.readouterr().out
    assert "st.log#1: ok" in out
    assert "all_gather uint8 by AllGatherTest.four_ranks, 4 ranks" in out
    assert "note: HCCL's checker passed it." in out
    assert run("check", f"{log}#2") == 1
    out = capfd.readouterr().out
    assert "UNMATCHED_POST" in out
    assert "at st.log:" in out
    assert "HCCL's checker failed it: \"[TaskGraphGenerator] unmatched" in out.replace(
        "\n    ", " "
    )
    assert run("check", log, "-v") == 1
    assert "st.log#3: ok" in capfd.readouterr().out


def test_check_tells_programs_what_the_checker_said(
    log: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run("check", log, "--json") == 1
    reports = json.loads(capfd.readouterr().out)["reports"]
    assert [report["target"] for report in reports] == ["st.log#1", "st.log#2", "st.log#3"]
    assert reports[0]["notes"] == ["HCCL's checker passed it."]
    assert [finding["class"] for finding in reports[1]["findings"]] == [
        "UNMATCHED_POST",
        "RDMA_SOURCE_REUSE",
    ]
    assert any("Results were not judged" in note for note in reports[2]["notes"])


def test_every_command_takes_a_test(log: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run("trace", f"{log}#four*") == 0
    out = capfd.readouterr().out
    assert "all_gather of 256 bytes, uint8" in out
    assert "HCCL's checker passed it." in out.replace("\n", " ")
    assert run("simulate", f"{log}#1", "--json") == 0
    assert json.loads(capfd.readouterr().out)["bytes"] == 256
    assert run("run", f"{log}#1", "-n", "1", "-w", "0") == 0
    assert "success" in capfd.readouterr().out
    assert run("convert", f"{log}#1", "one.json") == 0
    assert "all_gather, 4 ranks" in capfd.readouterr().out
    assert run("check", "one.json") == 0
    line = hccl.load("one.json").lines[0]
    assert line.startswith("st.log:")


def test_what_is_computed_can_be_stated(log: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run("check", f"{log}#3", "--op", "all_gather", "-d", "fp16", "-b", "192") == 0
    assert "all_gather fp16 by MiscTest.of_no_op" in capfd.readouterr().out
    assert run("check", f"{log}#3", "--op", "all_gather", "-b", "384") == 1
    assert "OUTPUT_MISSING" in capfd.readouterr().out
    assert run("trace", f"{log}#3", "--op", "all_gather", "-d", "fp16") == 0
    assert "all_gather of 192 bytes, fp16" in capfd.readouterr().out
    assert run("convert", f"{log}#3", "three.npz", "--op", "all_gather") == 0
    assert hccl.load("three.npz").op.name == "all_gather"


def test_what_is_not_known_is_said(log: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run("trace", f"{log}#3") == 0
    out = capfd.readouterr().out.replace("\n", " ")
    assert "unknown op, results not judged: no op is in the test's name" in out
    assert "send_recv" not in out
    assert run("simulate", f"{log}#3") == 0
    out = capfd.readouterr().out
    assert "us of model time" in out
    assert "bandwidth" not in out
    for timed in ("simulate", "trace"):
        assert run(timed, f"{log}#3", "--json") == 0
        assert json.loads(capfd.readouterr().out)["op"] is None
    assert run("check", f"{log}#3", "--numeric") == 0
    out = capfd.readouterr().out.replace("\n    ", " ")
    assert "not run with data: what the program is to compute is not known" in out
    assert "results right" not in out
    for command in (["convert", f"{log}#3", "x.json"], ["run", f"{log}#3"]):
        assert run(*command) == 2
        assert "not known" in capfd.readouterr().err
    assert run("trace", f"{log}#3", "--save", "x.json") == 2
    assert "not known" in capfd.readouterr().err
    assert not Path("x.json").exists()


REFUSED = {
    "no such test": (["check", "st.log#none"], "no test 'none' is among the 3 tests that print"),
    "no such number": (["trace", "st.log#4"], "no test '4' is among the 3 tests"),
    "several tests": (["trace", "st.log"], "st.log names 3 programs: AllGatherTest.four_ranks,"),
    "several tests by name": (["simulate", "st.log#All*"], "st.log#All* names 2 programs"),
    "ranks": (["trace", "st.log#1", "--ranks", "4"], "--ranks does not go with a log"),
    "sizes": (["simulate", "st.log#1", "-e", "1M"], "-e does not go with a log"),
    "calls": (["trace", "st.log#1", "--calls", "2"], "--calls does not go with a log"),
    "an executor": (["trace", "st.log#1", "--executor", "X"], "--executor does not go with a log"),
    "an unknown op": (["check", "st.log", "--op", "gossip"], "--op 'gossip' is no op"),
    "a sweep": (["check", "st.log", "--ranks", "4"], "--ranks does not go with a log"),
    "no file": (["check", "gone.log"], "gone.log: the file cannot be read"),
    "an op that explains": (["explain", "st.log"], "explain takes an op, and st.log is a log of"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_makes_no_sense_is_refused(
    log: str, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    arguments, message = REFUSED[name]
    assert run(*arguments) == 2
    assert message in capfd.readouterr().err


def test_other_tests_are_checked_beside_one_that_is_broken(
    log: str, capfd: pytest.CaptureFixture[str]
) -> None:
    text = Path(log).read_text()
    Path(log).write_text(text.replace("Read[remoteRank=1", "Raed[remoteRank=1", 1))
    assert run("check", log) == 2
    out, err = capfd.readouterr()
    assert "3 targets: 1 ok, 1 with errors, 1 not verified" in out
    assert err.startswith("error: st.log: line ")
    assert err.count("error:") == 1


def test_a_log_is_known_by_its_beginning(log: str, capfd: pytest.CaptureFixture[str]) -> None:
    Path("output").write_bytes(Path(log).read_bytes())
    assert run("check", "output#1") == 0
    assert "output#1: ok" in capfd.readouterr().out
    Path("odd#name.txt").write_bytes(Path(log).read_bytes())
    assert run("check", "odd#name.txt#1") == 0
    assert "odd#name.txt#1: ok" in capfd.readouterr().out
