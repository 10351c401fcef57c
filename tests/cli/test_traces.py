"""Chakra traces on the command line: times and drawings of them, and no look at memory."""

import json
from pathlib import Path

import pytest

import hccl_py as hccl
from hccl_interop.chakra import write_trace
from hccl_py.cli import main
from hccl_py.jobs import Job
from tests.interop.chakra.ets import ALL_REDUCE, COMP, Et, coll, decode, write


def run(*arguments: str) -> int:
    return main(list(arguments))


@pytest.fixture
def step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Two ranks: kernels of 100 us and 200 us, and a sum of 1 MB that only waits for the first."""
    monkeypatch.chdir(tmp_path)
    sums = coll(2, ALL_REDUCE, 1 << 20)
    sums.deps = [1]
    nodes = [Et(1, COMP, "one", us=100), sums, Et(3, COMP, "two", [1], us=200)]
    write(Path("step"), [nodes, nodes])
    return "step"


def test_a_trace_is_timed(step: str, capfd: pytest.CaptureFixture[str]) -> None:
    """The sum is as long as one of the same size alone, begins after the first kernel, and is over
    before the second one is.
    """
    assert run("simulate", "all_reduce", "--ranks", "2", "-b", "1M", "--json") == 0
    alone = json.loads(capfd.readouterr().out)["simulated_us"]
    assert run("simulate", step, "--json", "--chakra", "timed") == 0
    document = json.loads(capfd.readouterr().out)
    assert (document["ranks"], document["simulated_us"]) == (2, 300.0)
    overlap = document["overlap"]
    assert overlap["communication_us"] == pytest.approx(alone, rel=0.01)
    assert (overlap["compute_us"], overlap["exposed_us"]) == (300.0, pytest.approx(0, abs=1e-6))
    _, nodes = decode(Path("timed/trace.1.et").read_bytes())
    times = {node.name: (node.start, node.us) for node in nodes[1:]}
    assert (times["one"], times["two"]) == ((0, 100), (100, 200))
    start, us = times["coll 2"]
    assert start == 100
    assert us == pytest.approx(alone, abs=1)
    assert run("simulate", "timed", "--json") == 0
    assert json.loads(capfd.readouterr().out)["simulated_us"] == 300.0


def test_large_ones_are_written_without_a_report(
    step: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hccl_py.simulator.entry.FEW_TASKS", 3)
    assert run("simulate", step, "--chakra", "timed") == 0
    brief = capfd.readouterr().out
    assert "--report says what the time goes into." in brief
    assert "critical path" not in brief
    assert "is hidden behind computation" in brief
    assert run("simulate", step, "--chakra", "timed", "--report") == 0
    assert "critical path" in capfd.readouterr().out


def test_options_say_where_and_how(step: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run("simulate", step, "--topology", "atlas-900-a3", "--slow", "rank=0:3x", "--json") == 0
    assert json.loads(capfd.readouterr().out)["simulated_us"] == 900.0
    assert run("simulate", step, "--topology", "torus:3x3") == 2
    assert "The Chakra trace has 2 ranks, the options make 9." in capfd.readouterr().err
    nodes = [Et(1, COMP, attrs={"num_ops": 6 * 10**9, "tensor_size": 10**6})]
    write(Path("ops"), [nodes])
    assert run("simulate", "ops", "--roofline", "200,1000", "--json") == 0
    assert json.loads(capfd.readouterr().out)["simulated_us"] == pytest.approx(30)
    assert run("simulate", "ops", "--roofline", "200,10", "--json") == 0
    assert json.loads(capfd.readouterr().out)["simulated_us"] == pytest.approx(100)
    write(Path("idle"), [[Et(1, COMP, attrs={"tensor_size": 10**6})]])  # neither time nor work
    for options in ((), ("--roofline", "200,1000")):
        assert run("simulate", "idle", *options, "--json") == 0
        assert json.loads(capfd.readouterr().out)["simulated_us"] == 0
    for wrong in ("fast", "1", "1,2,3", "0,5", "nan,1"):
        assert run("simulate", "ops", "--roofline", wrong) == 2
        assert "is no" in capfd.readouterr().err


def test_a_trace_is_drawn_and_not_verified(step: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run("trace", step, "--rank", "0", "--html", "page.html", "--chrome", "events.json") == 0
    out = capfd.readouterr().out
    assert "Chakra trace step: 6 nodes on 2 ranks" in out
    assert "one" in out
    assert "not verified: a Chakra trace has sizes and no addresses" in out
    assert all(Path(file).stat().st_size > 1000 for file in ("page.html", "events.json"))
    for command, why in (("check", "nothing can be verified"), ("run", "there is nothing to run")):
        assert run(command, step) == 2
        assert f"A Chakra trace has sizes and no addresses, so {why}." in capfd.readouterr().err


def test_convert(step: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run("convert", step, "job.npz") == 0
    assert "job.npz: job, 2 ranks" in capfd.readouterr().out
    assert run("simulate", "job.npz", "--json") == 0
    assert json.loads(capfd.readouterr().out)["simulated_us"] == 300.0
    assert run("convert", step, "again", "-d", "fp16", "--json") == 0
    assert json.loads(capfd.readouterr().out)["ranks"] == 2
    _, nodes = decode(Path("again/trace.0.et").read_bytes())
    assert nodes[2].attrs["hccl_py.dtype"] == "fp16"
    assert run("convert", step, "job.xml") == 2
    assert "A job is no MSCCL algorithm." in capfd.readouterr().err
    assert run("convert", step, step) == 2
    assert "it would be lost" in capfd.readouterr().err
    assert run("convert", "job.npz", "folder") == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("simulate", "step", "-b", "1K"), "-b does not go with a Chakra trace"),
        (("simulate", "step", "-e", "1K"), "-e does not go with a Chakra trace"),
        (("simulate", "step", "--ranks", "2"), "--ranks does not go with a Chakra trace"),
        (("simulate", "step", "--executor", "X"), "--executor does not go with a Chakra trace"),
        (("simulate", "step", "--op", "reduce"), "--op does not go with a Chakra trace"),
        (("simulate", "all_reduce", "--buffered"), "--buffered is about a Chakra trace"),
        (("simulate", "all_reduce", "--roofline", "1,1"), "--roofline is about a Chakra trace"),
        (("simulate", "all_reduce", "--chakra", "x"), "--chakra writes a Chakra trace with its"),
        (("simulate", "step", "--chakra", "no/such"), "there is no folder to make it in."),
        (("simulate", "step", "--chakra", "step"), "it would be lost"),
        (("explain", "step"), "explain takes an op, and step is a Chakra trace."),
    ],
)
def test_what_makes_no_sense(
    step: str, arguments: tuple[str, ...], message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments) == 2
    assert message in capfd.readouterr().err


def test_an_op_is_an_op_beside_a_trace_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_trace(Job(hccl.Communicator(ranks=1).topology), ".", prefix="all_gather")
    assert run("simulate", "all_gather", "--ranks", "2") == 0
    assert "all_gather of" in capfd.readouterr().out
