"""`hccl-py fit`: from logs to a cost model, and errors in a sentence."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from hccl_py.cli import main
from hccl_py.clocks.cost_files import read_cost

HEADER = "data_size(Bytes): | aveg_time(us): | alg_bandwidth(GB/s): | check_result:\n"
COMMAND = "mpirun -n 4 ./bin/all_gather_test -b 8K -e 64M -f 8 -d fp16 -p 4\n"
ROWS = "8192 | 31.00 | 0.26 | success\n65536 | 32.10 | 2.0 | success\n"
ROWS += "524288 | 40.0 | 13.1 | failed\n67108864 | 1300.0 | 51.6 | success\n"


@pytest.fixture
def log(tmp_path: Path) -> str:
    path = tmp_path / "a.log"
    path.write_text(COMMAND + HEADER + ROWS)
    return str(path)


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main(["fit", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_document(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = document(capsys, log)
    assert (found["schema"], found["base"]) == ("hccl-py.fit/1", "atlas-800t-a2")
    (table,) = found["tables"]
    assert (table["op"], table["ranks"], table["dtype"]) == ("all_gather", 4, "fp16")
    assert [row["line"] for row in table["rows"]] == [3, 4, 6]
    assert table["left_out"] == [{"line": 5, "bytes": 524288, "why": "the check failed"}]
    for row in table["rows"]:
        assert row["deviation"] == pytest.approx(row["measured_us"] / row["model_us"] - 1)
        assert abs(row["deviation"]) < 0.1
    assert [p["name"] for p in found["parameters"]] == ["hccs.alpha_us", "hccs.gbps"]
    assert [k["name"] for k in found["kept"]] == ["reduce_gbps"]
    assert found["cost"]["hccs"]["alpha_us"] == found["parameters"][0]["value"]
    assert found["cost"]["reduce_gbps"] == 483.0


def test_what_people_see(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fit", log]) == 0
    out = capsys.readouterr().out
    assert "line 5, 524288 bytes, is left out: the check failed" in out
    assert "AllGatherMeshOpbaseExecutor mesh" in out
    assert "kept: reduce_gbps 483, for it has no part in these times" in out
    assert "root mean square, median" in out


@pytest.mark.parametrize("suffix", ["json", "yaml"])
def test_the_model_is_one_that_commands_take(
    log: str, suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if suffix == "yaml":
        pytest.importorskip("yaml")
    path = tmp_path / f"model.{suffix}"
    found = document(capsys, log, "--out", str(path))
    assert read_cost(path).model_dump(mode="json") == found["cost"]
    again = document(capsys, log, "--cost", str(path))
    values = [p["value"] for p in found["parameters"]]
    assert [p["value"] for p in again["parameters"]] == pytest.approx(values, rel=1e-4)


def test_options_say_what_a_log_does_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.log"
    path.write_text(HEADER + ROWS)
    options = ["--op", "reduce_scatter", "--servers", "4", "--devices", "1", "-d", "int32"]
    found = document(capsys, str(path), *options)
    (table,) = found["tables"]
    assert (table["op"], table["ranks"], table["dtype"]) == ("reduce_scatter", 4, "int32")
    assert [p["name"] for p in found["parameters"]] == ["roce.alpha_us", "roce.gbps"]


def test_a_command_of_several_servers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.log"
    path.write_text(COMMAND.replace("-n 4", "-n 8") + HEADER + ROWS)
    assert document(capsys, str(path))["tables"][0]["topology"].endswith("2 servers x 4 devices")


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        (HEADER + ROWS, ["--ranks", "4"], "no command line says which op"),
        (HEADER + ROWS, ["--op", "all_gather"], "no command line says how many ranks"),
        (HEADER + ROWS, ["--op", "al_gather", "--ranks", "4"], "the sizes of al_gather"),
        (HEADER + ROWS, ["--op", "barrier", "--ranks", "4"], "the sizes of barrier do not say"),
        (COMMAND + HEADER + ROWS, ["--op", "broadcast"], "measures all_gather, --op says broad"),
        (COMMAND + HEADER + ROWS, ["--ranks", "8"], "has 4 ranks, the options make 8"),
        (COMMAND + HEADER + ROWS, ["-b", "8K"], "The log says the sizes"),
        (COMMAND + HEADER + ROWS, ["--counts", "c.json"], "The log says the sizes"),
        (COMMAND + HEADER + ROWS, ["--cost", "atlas"], "--cost 'atlas' is unknown"),
        (COMMAND + HEADER + ROWS, ["--out", "model.txt"], "a cost model's file ends in"),
        (COMMAND + HEADER, [], "There is no measured time"),
        (COMMAND + HEADER + "8192 | 31 | 1 | success\n", [], "1 measured time is not enough"),
        (COMMAND.replace("all_gather", "alltoallv") + HEADER + ROWS, [], "the sizes of alltoallv"),
        (COMMAND.replace("fp16", "fp17") + HEADER + ROWS, [], "fp17"),
        (COMMAND.replace("-n 4", "-n 0") + HEADER + ROWS, [], "0"),
        (COMMAND + HEADER + "9 | 0 | 1 | success\n", [], "the time of 9 bytes is 0 us"),
        (COMMAND + HEADER + "9 | 1e-300 | 1 | success\n", [], "the time of 9 bytes is 1e-300 us"),
        ("mpirun -n 6 ./all_gather_test -p 4\n" + HEADER + ROWS, [], "6 ranks do not fill servers"),
        ("nothing", [], "there is no table of hccl_test"),
    ],
)
def test_errors_are_one_sentence(
    text: str,
    options: list[str],
    words: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "a.log"
    path.write_text(text)
    assert main(["fit", str(path), *options]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert words in captured.err
    assert captured.err.startswith("error: ")
    assert "internal" not in captured.err
    assert captured.err.count("\n") <= 2


@pytest.mark.parametrize(
    ("command", "topology"),
    [
        ("-n 4 ./all_gather_test", "1 server x 4"),
        ("-n 20 ./all_gather_test -p 8", "servers of 8, 8, 4 devices"),
    ],
)
def test_commands_without_options_and_with_a_server_in_part(
    command: str, topology: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.log"
    rows = "8192 | 231.0 | 1 | success\n65536 | 240.0 | 1 | success\n67108864 | 13000 | 1 | NULL\n"
    path.write_text(f"mpirun {command}\n{HEADER}{rows}")
    assert topology in document(capsys, str(path))["tables"][0]["topology"]


def test_without_scipy_the_extra_is_named(
    log: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "scipy", None)
    assert main(["fit", log]) == 2
    captured = capsys.readouterr()
    hint = "pip install 'hccl-py[fit]' brings it."
    assert (captured.out, captured.err) == ("", f"error: Fitting needs scipy.\nhint: {hint}\n")


def test_a_file_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fit", str(tmp_path / "none.log")]) == 2
    assert "No such file" in capsys.readouterr().err


def test_stragglers_in_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    run = ["run", "all_reduce", "--ranks", "8", "-b", "4K", "-n", "1", "-w", "0"]
    slow = ["--slow", "rank=3:2x", "--slow", "link=0-1:10x"]
    assert main([*run, *slow]) == 0
    out = capsys.readouterr().out
    assert "random interleaving 0 with rank=3:2x, link=0-1:10x" in out
    assert "| success" in out
    assert main([*run, *slow, "--json"]) == 0
    schedule = json.loads(capsys.readouterr().out)["schedule"]
    assert schedule == {"seed": 0, "adversary": "random", "slow": ["rank=3:2x", "link=0-1:10x"]}


@pytest.mark.parametrize("text", ["rank=8:2x", "link=0-9:2x", "rank=1:0.5x", "nothing", "rank=1"])
def test_a_bad_straggler_is_one_sentence(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "all_reduce", "--ranks", "8", "--slow", text]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 2
