"""MSCCL XML files on the command line: every command that takes a program takes one; `convert`."""

import json
from pathlib import Path

import pytest

import hccl_py as hccl
from hccl_py.cli import main
from tests.interop.msccl.xmls import all_pairs, exchange, ring_all_reduce


@pytest.fixture
def ring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("ring.xml").write_text(ring_all_reduce(4).text())
    return "ring.xml"


def run(*arguments: str) -> int:
    return main(list(arguments))


def test_every_command_takes_an_algorithm(ring: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run("check", ring, "-b", "64K", "-d", "fp16", "-o", "max") == 0
    assert "all_reduce max fp16 by MSCCL Simple, 4 chunks: own" in capfd.readouterr().out
    assert run("simulate", ring, "-b", "64K", "-e", "1M", "-f", "4", "--json") == 0
    rows = json.loads(capfd.readouterr().out)["rows"]
    assert [row["bytes"] for row in rows] == [1 << 16, 1 << 18, 1 << 20]
    assert run("trace", ring, "-b", "1K") == 0
    assert "receive, reduce, send" in capfd.readouterr().out
    assert run("run", ring, "-b", "1K", "-n", "1", "-w", "0") == 0
    assert "success" in capfd.readouterr().out
    assert run("record", ring, "-b", "1K", "--out", "ring.json") == 0
    assert "160 tasks, 4 channels" in capfd.readouterr().out
    assert run("check", "ring.json") == 0


def test_cost_models_say_in_which_slices_messages_stream(
    ring: str, capfd: pytest.CaptureFixture[str]
) -> None:
    def simulated(*more: str) -> tuple[int, float]:
        assert run("simulate", ring, "-b", "64K", "--json", *more) == 0
        found = json.loads(capfd.readouterr().out)
        return found["tasks"], found["simulated_us"]

    protocols: dict[str, dict[str, float]] = {"simple": {"launch_us": 7}, "ll": {"slice_bytes": 8}}
    cost = {"base": "atlas-800t-a2", "alpha_by": "message", "protocols": protocols}
    Path("gpus.json").write_text(json.dumps(cost))
    tasks, us = simulated()
    launched = simulated("--cost", "gpus.json")
    assert launched[0] == tasks
    assert launched[1] == pytest.approx(us + 7)
    protocols["simple"]["slice_bytes"] = 4096  # chunks of 16 KiB: four slices of each message
    Path("gpus.json").write_text(json.dumps(cost))
    more, streamed_us = simulated("--cost", "gpus.json")
    of_a_slice = 6 + 6 + 12  # of a rank: posts, waits, and data tasks of s, rrs, rrcs, rcs and r
    assert more == tasks + 3 * 4 * of_a_slice
    assert streamed_us < us + 7
    assert run("trace", ring, "-b", "64K", "--cost", "gpus.json", "--json") == 0
    assert len(json.loads(capfd.readouterr().out)["tasks"]) == more
    protocols["simple"]["slice_bytes"] = 0
    Path("gpus.json").write_text(json.dumps(cost))
    assert run("simulate", ring, "--cost", "gpus.json") == 2
    assert "protocols.simple.slice_bytes: expected greater than" in capfd.readouterr().err


def test_passes_repeat_at_large_sizes(ring: str, capfd: pytest.CaptureFixture[str]) -> None:
    for size, passes, walk in ((1 << 30, 128, "tasks"), (1 << 40, 1 << 17, "passes")):
        assert run("simulate", ring, "-b", str(size), "--network", "contended", "--json") == 0
        found = json.loads(capfd.readouterr().out)
        assert (found["rounds"], found["walk"]) == (passes, walk)
        # of a rank in a pass: 12 data tasks, and 4 notifies for each of 6 messages
        assert found["tasks"] == pytest.approx(4 * passes * (12 + 6 * 4), rel=1e-3)
    assert run("simulate", ring, "-b", "1T") == 0
    assert "14 of the rounds were timed" in capfd.readouterr().out
    assert run("check", ring, "-b", "1T") == 0
    assert "131072 passes, of which 8 were verified" in capfd.readouterr().out
    for command in (["record", ring, "-b", "1T", "--out", "x.json"], ["trace", ring, "-b", "1T"]):
        assert run(*command) == 2
        assert "are written out" in capfd.readouterr().err
    assert run("simulate", ring, "-b", "1T", "--report") == 2
    assert run("simulate", ring, "-b", "1T", "--save", "x.json") == 2
    assert not Path("x.json").exists()


def test_findings_have_lines_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.xml").write_text(exchange().text())
    assert run("check", "own.xml", "-b", "6M") == 0
    assert run("check", "own.xml", "-b", "12M", "--repeat", "1", "--json") == 1
    (report,) = json.loads(capfd.readouterr().out.split("\n", 2)[2])["reports"]
    (finding,) = report["findings"]
    assert (finding["class"], finding["source"]) == ("DEADLOCK_CYCLE", "own.xml:7")
    for command in ("simulate", "run"):
        assert run(command, "own.xml", "-b", "12M") == 2
        error = capfd.readouterr().err
        assert "own.xml:1 at 12582912 bytes: Deadlock: 2 threadblocks can never go on." in error
        assert "the free slot for message 2 of 0→1 on channel 0, step 0 (s) of threadblock" in error
    assert run("simulate", "own.xml", "-b", "1T") == 2
    assert "own.xml:1 at 1099511627784 bytes: Deadlock: 2 threadblocks" in capfd.readouterr().err


def test_a_size_that_fails_does_not_take_the_others_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.xml").write_text(exchange().text())
    sizes = ("-b", "3M", "-e", "24M", "-f", "2")
    assert run("simulate", "own.xml", *sizes, "--json") == 2
    out, err = capfd.readouterr()
    found = json.loads(out)
    assert [row["bytes"] for row in found["rows"]] == [3 << 20, 6 << 20]
    assert [row["bytes"] for row in found["failed"]] == [12 << 20, 24 << 20]
    assert all("Deadlock" in row["error"] for row in found["failed"])
    assert err.count("error: -b 12M: own.xml:1 at 12582912 bytes: Deadlock") == 1
    assert err.count("error: -b 24M: own.xml:1 at 25165824 bytes: Deadlock") == 1
    assert run("simulate", "own.xml", *sizes) == 2
    lines = capfd.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines if line.endswith(" own")] == ["3M", "6M"]
    assert run("simulate", "own.xml", "-b", "12M", "-e", "24M", "-f", "2") == 2
    out, err = capfd.readouterr()
    assert (out, err.count("error: own.xml:1 at 12582912 bytes: Deadlock")) == ("", 1)


def test_without_a_meaning_programs_are_timed_and_not_run(
    ring: str, capfd: pytest.CaptureFixture[str]
) -> None:
    text = Path(ring).read_text().replace('coll="allreduce"', 'coll="custom"')
    Path("open.xml").write_text(text)
    assert run("check", "open.xml", "-b", "64K") == 0
    assert "note: The op is open: the collective is 'custom'" in capfd.readouterr().out
    assert run("simulate", "open.xml", "-b", "64K", "-e", "128K", "-f", "2") == 0
    out = capfd.readouterr().out
    assert out.startswith("an op that is not known: the collective is 'custom'")
    assert {line.split()[0] for line in out.splitlines() if line.endswith(" own")} == {
        "64K",
        "128K",
    }
    assert run("run", "open.xml", "-b", "64K") == 2
    assert "What open.xml computes is not known" in capfd.readouterr().err
    assert run("simulate", "open.xml", "-b", "64K", "--json") == 0
    found = json.loads(capfd.readouterr().out)
    assert (found["op"], found["bytes"], found["lower_bound_us"]) == (None, 1 << 16, 0.0)


def test_the_usual_size_is_one_of_the_algorithm(
    ring: str, capfd: pytest.CaptureFixture[str]
) -> None:
    def size(low: str, high: str) -> int:
        sized = f'minBytes="{low}" maxBytes="{high}" coll="allreduce"'
        Path("sized.xml").write_text(Path(ring).read_text().replace('coll="allreduce"', sized))
        assert run("simulate", "sized.xml", "--json") == 0
        found: int = json.loads(capfd.readouterr().out)["bytes"]
        return found

    assert size("0", "0") == size("-1", "-1") == 1 << 20
    assert size("0", "65540") == 65536  # whole chunks: four of whole elements
    assert size("2097153", "0") == 2097168


def test_files_with_several(ring: str, capfd: pytest.CaptureFixture[str]) -> None:
    text = Path(ring).read_text()
    Path("two.xml").write_text(text + all_pairs("allgather", 2).text())
    assert run("check", "two.xml", "-b", "1K") == 0
    out = capfd.readouterr().out
    assert "two.xml#1: ok" in out
    assert "two.xml#2: ok" in out
    assert run("simulate", "two.xml#2", "-b", "1K") == 0
    assert "all_gather" in capfd.readouterr().out
    for name, message in (
        ("two.xml", "two.xml names 2 programs: 'own', 'own'."),
        ("two.xml#3", "two.xml has 2 algorithms, and no number 3."),
        ("ring.xml#2", "ring.xml has one algorithm, and no number 2."),
        ("none.xml", "none.xml: the file cannot be read"),
    ):
        assert run("simulate", name) == 2
        assert message in capfd.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("simulate", "ring.xml", "--executor", "X"), "--executor does not go with an MSCCL algo"),
        (("run", "ring.xml", "--calls", "2"), "--calls does not go with an MSCCL algorithm"),
        (("simulate", "ring.xml", "--topology", "torus:3x3"), "algorithm has 4 ranks, the options"),
        (("check", "ring.xml", "--ranks", "2"), "--ranks does not go with an MSCCL"),
        (("check", "ring.xml", "--calls", "2"), "--calls does not go with an MSCCL"),
        (("check", "AllReduceComm", "-b", "1K"), "-b is about an MSCCL algorithm, "),
        (("check", "ring.xml", "-r", "1"), "all_reduce has no root"),
        (("check", "ring.xml", "--op", "mine"), "--op 'mine' is no op"),
        (("convert", "ring.xml", "out.json", "-b", "1T"), "passes of the algorithm make some"),
        (("check", "bad.xml"), "bad.xml: line 2: the text is no XML"),
        (("compare", "ring.xml"), "compare takes an op, and ring.xml is an MSCCL algorithm"),
        (("convert", "ring.xml", "out.txt"), "OUT 'out.txt' is no name of a program file"),
        (("convert", "ring.xml", "out.json", "--proto", "LL"), "--proto is about MSCCL XML"),
        (
            ("convert", "r.json", "out.xml", "-b", "1K"),
            "-b does not go with a program file",
        ),
        (("convert", "r.json", "r.xml.npz", "--max-size", "10"), "expected at most 10 bytes"),
        (("convert", "mesh.json", "out.xml"), "threadblocks do not read the memory of peers"),
        (("convert", "ring.xml", "notes.xml"), "it would be lost"),
    ],
)
def test_refusals(
    ring: str, arguments: tuple[str, ...], message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    Path("bad.xml").write_text("<algo>\n<gpu")
    Path("notes.xml").write_text("<notes/>")
    op = hccl.OpParam("all_gather", 4, hccl.DataType.FP32)
    hccl.record("AllGatherRingExecutor", op, hccl.topology_of(ranks=2)).save("mesh.json")
    hccl.record("AllGatherRingExecutor", op, hccl.topology_of(ranks=2)).save("r.json")
    assert run(*arguments) == 2
    shown = capfd.readouterr().err
    assert message in shown
    assert "Traceback" not in shown


def test_convert_there_and_back(ring: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run("convert", ring, "ring.npz", "-b", "64K") == 0
    assert run("convert", "ring.npz", "again.xml") == 0
    assert capfd.readouterr().out.splitlines() == [
        "ring.npz: all_reduce, 4 ranks, 160 tasks",
        "again.xml: all_reduce, 4 ranks, 160 tasks",
    ]
    assert run("convert", "again.xml", "again.json", "-b", "64K", "--json") == 0
    assert json.loads(capfd.readouterr().out)["tasks"] == 160
    assert hccl.load("again.json").digest == hccl.load("ring.npz").digest
    assert run("convert", ring, "ll.xml", "-b", "64K", "--proto", "LL") == 0
    assert 'proto="LL"' in Path("ll.xml").read_text()
