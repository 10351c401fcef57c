"""`hccl-py run`: hccl_test's table, its JSON, and a check that finds wrong results."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hccl_platform.emulated.session import EmulatedSession
from hccl_py import load
from hccl_py.cli import main
from hccl_py.cli.errors import WRONG
from hccl_py.plugins.platforms import TaskTimes
from hccl_py.program.program import Program


def run_json(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> Any:
    assert main(["run", *arguments, "--json"]) == status
    return json.loads(capsys.readouterr().out)


def test_hccl_test_s_columns(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "all_gather", "--ranks", "4", "-b", "1K", "-e", "64K", "-f", "4"]) == 0
    captured = capsys.readouterr()
    title, table = captured.out.split("the minbytes is ")
    assert "all_gather fp32" in title
    assert "AllGatherMeshOpbaseExecutor" in title
    assert "Atlas 800T A2, 1 server x 4 devices" in title
    assert "wall time of the emulation" in title
    lines = table.splitlines()
    assert lines[0] == "1024, maxbytes is 65536, iters is 20, warmup_iters is 5"
    assert lines[1] == ("data_size(Bytes): | aveg_time(us): | alg_bandwidth(GB/s): | check_result:")
    rows = [line.split(" | ") for line in lines[2:-1]]
    assert [int(row[0]) for row in rows] == [1024, 4096, 16384, 65536]
    for size, time, bandwidth, check in rows:
        assert check == "success"
        assert float(bandwidth) == pytest.approx(int(size) / float(time) * 1e-3, rel=1e-2)
    assert lines[-1].startswith("checked:")
    assert captured.err == ""


def test_the_document(capsys: pytest.CaptureFixture[str]) -> None:
    document = run_json(
        capsys, "all_reduce", "--ranks", "3", "-b", "1000", "-d", "fp16", "-o", "max", "-n", "2"
    )
    (row,) = document.pop("rows")
    assert document == {
        "schema": "hccl-py.run/1",
        "op": "all_reduce",
        "ranks": 3,
        "topology": "Atlas 800T A2, 1 server x 3 devices",
        "dtype": "fp16",
        "reduce_op": "max",
        "mode": "op_base",
        "platform": "emulated",
        "schedule": None,
        "clock": "wall",
        "iters": 2,
        "warmup_iters": 5,
        "overruled": [],
    }
    assert row["bytes"] == 1000
    assert row["count"] == 500
    assert row["executor"] == "AllReduceMeshSmallCountExecutor"
    assert row["algorithm"] == {"level0": "mesh"}
    assert row["check"] == "success"
    assert row["algbw_gbps"] == pytest.approx(1000 / row["time_us"] * 1e-3)
    assert row["busbw_gbps"] == pytest.approx(row["algbw_gbps"] * 2 * 2 / 3)


@pytest.mark.parametrize(
    ("op", "given", "real", "count"),
    [
        ("all_gather", "1000", 1008, 84),  # rounded up to whole elements of 3 ranks
        ("all_gather", "1", 12, 1),
        ("all_gather", "0", 0, 0),
        ("all_reduce", "1001", 1004, 251),
    ],
)
def test_bytes_are_the_data_size_after_rounding(
    op: str, given: str, real: int, count: int, capsys: pytest.CaptureFixture[str]
) -> None:
    (row,) = run_json(capsys, op, "--ranks", "3", "-b", given, "-n", "1")["rows"]
    assert (row["bytes"], row["count"], row["check"]) == (real, count, "success")


@pytest.mark.parametrize("executor", ["AllReduceComm", "AllReduceMeshOpbaseLoopExecutor"])
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64", "fp16", "fp32", "bf16"])
@pytest.mark.parametrize("reduce", ["sum", "prod", "max", "min"])
def test_both_algorithms_are_right_for_every_type(
    executor: str, dtype: str, reduce: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if reduce == "prod" and dtype in ("int16", "bf16"):
        pytest.skip("the product does not take it")
    if executor != "AllReduceComm" and (reduce == "prod" or dtype == "int64"):
        pytest.skip("the executor needs links that reduce on their way")
    options = ["--ranks", "8", "-b", "1K", "-e", "64K", "-f", "64", "-n", "1", "-w", "0"]
    options += ["--executor", executor, "-d", dtype, "-o", reduce]
    rows = run_json(capsys, "all_reduce", *options)["rows"]
    assert [row["check"] for row in rows] == ["success", "success"]


def test_a_small_ccl_buffer_means_rounds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HCCL_BUFFSIZE", "1")
    (row,) = run_json(capsys, "all_reduce", "-b", "9M", "-n", "1", "-w", "0")["rows"]
    assert row["check"] == "success"


@pytest.mark.parametrize("schedule", ["random", "late-wire", "early-wire", "slow-rank"])
def test_an_interleaving(schedule: str, capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--servers", "3", "--devices", "2", "-b", "1K", "-n", "1", "-w", "0"]
    document = run_json(capsys, "all_reduce", *options, "--seed", "7", "--schedule", schedule)
    assert document["schedule"] == {"seed": 7, "adversary": schedule, "slow": []}
    assert document["rows"][0]["check"] == "success"


def test_the_program_that_runs_is_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, other = tmp_path / "kept.json", tmp_path / "none.json"
    call = ["run", "all_gather", "--ranks", "3", "-b", "3K", "-n", "1", "-w", "0"]
    assert main([*call, "--save", str(file)]) == 0
    program = load(file)
    assert (program.op.name, program.ranks, program.op.count) == ("all_gather", 3, 256)
    other.write_text("{}")
    for more, said in (
        (["--save", str(file), "-e", "9K"], "--save is about one program, -e asks for several."),
        (["--save", str(other)], "none.json"),
    ):
        capsys.readouterr()
        assert main([*call, *more]) == 2
        assert said in capsys.readouterr().err
    assert other.read_text() == "{}"


def test_measured_times_stand_beside_the_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a session that times tasks: task k takes 2 µs from 3 k on, in the run behind warm-ups."""
    runs: list[str] = []

    class TimedSession(EmulatedSession):
        def run(self, *call: Any) -> Any:
            runs.append("run")
            return super().run(*call)

        def time_tasks(self, tag: str, program: Program, *arrays: Any) -> TaskTimes:
            runs.append("timed")
            super().run(tag, program, *arrays)
            start = np.arange(len(program.tasks), dtype=np.float64) * 3
            return TaskTimes(start, start + 2)

    monkeypatch.setattr("hccl_platform.emulated.session.EmulatedSession", TimedSession)
    file = tmp_path / "beside.json"
    options = ["--ranks", "3", "-b", "4K", "-n", "1", "-w", "2", "--check", "0"]
    assert main(["run", "all_gather", *options, "--timeline", str(file)]) == 0
    assert capsys.readouterr().err == ""
    assert runs == ["run", "run", "timed", "run", "run", "run"]
    events = json.loads(file.read_text("utf-8"))["traceEvents"]
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    tasks: dict[str, list[tuple[float, float]]] = {"measured on emulated": [], "model": []}
    for e in events:
        if e.get("cat") == "task":
            tasks[names[e["pid"]].partition(", ")[2]].append((e["ts"], e["dur"]))
    measured = sorted(tasks["measured on emulated"])
    assert measured == [(3.0 * k, 2.0) for k in range(len(tasks["model"]))]
    assert len({dur for _, dur in tasks["model"]}) > 1
    facts = {names[e["pid"]]: e["args"] for e in events if e["name"] == "about"}
    about = facts["program, measured on emulated"]
    assert about["title"] == facts["program, model"]["title"]
    assert about["title"].startswith("all_gather of ")
    assert (about["clock"], about["platform"]) == ("measured", "emulated")
    assert facts["program, model"]["clock"] == "model"
    assert "platform" not in facts["program, model"]


def test_graph_mode(capsys: pytest.CaptureFixture[str]) -> None:
    document = run_json(capsys, "all_gather", "--mode", "graph", "-n", "1")
    assert document["mode"] == "graph"
    assert document["rows"][0]["check"] == "success"


def test_a_root_is_a_rank_of_an_op_that_has_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "broadcast", "-r", "4", "-n", "1"]) == 2
    assert "Root 4 is out of range." in capsys.readouterr().err
    for command in ("run", "explain", "simulate", "trace", "compare", "advise", "numerics"):
        assert main([command, "all_reduce", "-r", "0"]) == 2
        captured = capsys.readouterr()
        assert "all_reduce has no root." in captured.err
        assert not captured.out


def test_an_author_s_executor(author: str, capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = run_json(capsys, "all_gather", "--executor", f"{author}:Right", "-n", "1")["rows"]
    assert (row["executor"], row["check"]) == ("Right", "success")


def test_the_check_finds_a_misplaced_block(author: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["all_gather", "--executor", f"{author}:Rotated", "-b", "64", "-n", "1"]
    (row,) = run_json(capsys, *arguments, status=WRONG)["rows"]
    assert row["check"] == "failed"
    assert row["first_wrong"]["rank"] == 0
    assert row["first_wrong"]["index"] == 0
    assert row["first_wrong"]["expected"] != row["first_wrong"]["found"]


def test_the_check_finds_a_run_that_writes_nothing(
    author: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "all_gather", "--executor", f"{author}:Idle", "-n", "2"]) == WRONG
    captured = capsys.readouterr()
    assert re.search(r"\| failed$", captured.out, re.MULTILINE)
    assert "expected" not in captured.out
    assert captured.err == (
        "error: The result is wrong for 1 of 1 sizes.\nhint: -c 2 shows the first wrong element.\n"
    )


def test_check_2_shows_the_first_wrong_element(
    author: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["run", "all_gather", "--executor", f"{author}:Rotated", "-b", "64", "-c", "2"]
    assert main(command) == WRONG
    output = capsys.readouterr().out
    assert re.search(r"^  rank 0 element 0: expected \S+, found \S+$", output, re.MULTILINE)
    right = ["run", "all_gather", "--executor", f"{author}:Right", "-b", "64", "-c", "2"]
    assert main(right) == 0
    assert "None" not in capsys.readouterr().out


def test_check_0_prints_null(author: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "all_gather", "--executor", f"{author}:Rotated", "-c", "0"]) == 0
    output = capsys.readouterr().out
    assert output.rstrip().endswith("| NULL")


def test_a_deadlock_is_reported_at_the_author_s_line(
    author: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "all_gather", "--executor", f"{author}:Stuck"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: Deadlock: 16 of 16 streams can never go on")
    assert f"{author}.py:" in error


def test_a_misspelt_name_is_reported_at_the_author_s_line(
    author: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "all_gather", "--executor", f"{author}:Misspelt"]) == 2
    error = capsys.readouterr().err
    assert "AttributeError" in error
    assert f"{author}.py:" in error
    assert "hint: Did you mean main" in error


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("raise ValueError('no')", "cannot be imported: ValueError: no"),
        ("import no_such_library", "cannot be imported: ModuleNotFoundError"),
        ("", "has no Mine"),
    ],
)
def test_a_broken_module(
    code: str,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    name = f"broken_{tmp_path.name}".replace("-", "_")
    (tmp_path / f"{name}.py").write_text(code)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert main(["run", "all_gather", "--executor", f"{name}:Mine"]) == 2
    assert words in capsys.readouterr().err


def test_compiling_is_announced_once(tmp_path: Path) -> None:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    script = str(Path(sys.executable).parent / "hccl-py")
    command = [script, "simulate", "all_to_all", "--ranks", "256", "--json"]
    noted = []
    for _ in range(2):
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert json.loads(done.stdout)["simulated_us"] > 0
        noted.append("note: compiling" in done.stderr)
    assert noted == [True, False]


def test_iterations_that_take_hours_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "all_gather", "-n", "9" * 20]) == 2
    err = capsys.readouterr().err
    assert "iterations take 2.78e+11 hours at least" in err
    assert "Give -n and -w 360000000 together at most" in err
