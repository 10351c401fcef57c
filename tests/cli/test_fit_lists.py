"""`hccl-py fit` with lists of programs and their times, as CSV and JSON."""

import json
from pathlib import Path
from typing import Any

import pytest

from hccl_py.cli import main
from hccl_py.simulator import read_cost

CALL = ["all_gather", "--ranks", "4", "--executor", "AllGatherMeshOpbaseExecutor"]
SIZES = ("16K", "1M", "64M")
OURS = {"base": "atlas-800t-a2", "hccs": {"alpha_us": 7.5, "gbps": 23.0}, "task_us": 1.25}


@pytest.fixture
def folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Path:
    """A folder with programs, and what they take by a model of our own."""
    monkeypatch.chdir(tmp_path)
    Path("ours.json").write_text(json.dumps(OURS))
    rows = []
    for size in SIZES:
        save = ["--save", f"{size}.npz", "--cost", "ours.json", "--json"]
        assert main(["simulate", *CALL, "-b", size, *save]) == 0
        rows.append((size, json.loads(capsys.readouterr().out)["simulated_us"]))
    lines = [f"{size}.npz,{time_us}," for size, time_us in rows]
    Path("files.csv").write_text("# ours\nprogram,time_us,held_out\n" + "\n".join(lines) + "\n")
    calls: list[dict[str, Any]] = [
        {"op": "all_gather", "executor": CALL[-1], "ranks": 4, "bytes": size, "time_us": time_us}
        for size, time_us in rows
    ]
    calls.append({**calls[1], "held_out": True, "name": "again"})
    Path("calls.json").write_text(json.dumps(calls))
    return tmp_path


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert main(["fit", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("network", ["uncontended", "contended"])
def test_programs_give_the_parameters_back(
    folder: Path, network: str, capsys: pytest.CaptureFixture[str]
) -> None:
    names = "hccs.alpha_us,hccs.gbps"
    options = ["--cost", "half.json", "--network", network, "--parameters", names]
    Path("half.json").write_text(json.dumps({**OURS, "hccs": {"alpha_us": 15, "gbps": 12.0}}))
    found = document(capsys, "files.csv", *options)
    assert found["network"] == network
    values = {p["name"]: p["value"] for p in found["parameters"]}
    assert values == pytest.approx({"hccs.alpha_us": 7.5, "hccs.gbps": 23.0}, rel=1e-3)
    assert found["rank"] == 2
    assert [row["bytes"] for row in found["tables"][0]["rows"]] == [1 << 14, 1 << 20, 1 << 26]


def test_what_is_held_out_is_predicted_and_not_fitted(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = json.loads(Path("calls.json").read_text())
    wrong[-1]["time_us"] *= 2
    Path("calls.json").write_text(json.dumps(wrong))
    found = document(capsys, "calls.json", "--cost", "ours.json")
    assert found["rms_deviation"] < 1e-6
    assert found["held_out_rms_deviation"] == pytest.approx(1.0, rel=1e-4)
    assert main(["fit", "calls.json", "--cost", "ours.json"]) == 0
    out = capsys.readouterr().out
    assert "again, held out" in out
    assert "held out:   100.0% root mean square, median 100.0%, p90 100.0%, at most +100.0%" in out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "files.csv has no measured time"),
        ("program,time_us\n", "files.csv has no measured time"),
        ("program,time_us\n16K.npz\n", "line 2: expected 2 cells, found 1"),
        ("program,time_us\n16K.npz,soon\n", 'expected a number, found "soon"'),
        ("program,time_us\n16K.npz,-1\n", "expected a time, found -1 us"),
        ("program,time_us\n16K.npz,1e13\n", "expected a time, found 1e+13 us"),
        ("program,times\n16K.npz,1\n", "expected a key of the format"),
        ("time_us\n3\n", "expected an op or a program, found neither"),
        ("program,time_us,held_out\n16K.npz,3,perhaps\n", "expected yes or no"),
        ("op,ranks,time_us\nall_gather,four,3\n", "expected a number"),
        ("op,ranks,time_us\nall_gather,4.5,3\n", "expected a whole number"),
        ("op,time_us\nall_gather,3\nall_gather,x\n", "line 3"),
    ],
)
def test_lists_that_say_nothing(
    text: str, words: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("files.csv").write_text(text)
    assert main(["fit", "files.csv"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert words in captured.err
    assert "internal" not in captured.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--parameters", "hccs.alpha"], "A cost model has no parameter 'hccs.alpha'"),
        (["--parameters", "task_us,task_us"], "--parameters has task_us twice"),
        (["--network", "shared"], "--network 'shared' is unknown"),
        (["--parameters", "sio.gbps"], "These times tell nothing about sio.gbps"),
    ],
)
def test_options_that_are_wrong(
    options: list[str], words: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fit", "files.csv", *options]) == 2
    assert words in capsys.readouterr().err


def test_groups_left_out_and_what_the_model_was_held_to(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = json.loads(Path("calls.json").read_text())[:3]
    groups = [{**row, "group": group} for group, row in zip(("a", "b", "b"), rows, strict=True)]
    odd = {**rows[1], "group": "c", "time_us": 1.25 * rows[1]["time_us"]}
    transfer = {"kind": "read", "link": "hccs", "bytes": "8M", "gbps": 20, "held_out": True}
    Path("groups.json").write_text(json.dumps([*groups, odd, transfer]))
    names = ["--parameters", "hccs.alpha_us,hccs.gbps", "--cost", "ours.json"]
    kind = ["--times-are", "vendor-simulation", "--source", "a test", "--out", "found.json"]
    found = document(capsys, "groups.json", *names, "--leave-out", "group", *kind)
    without = {one["group"]: one for one in found["without"]}
    assert list(without) == ["a", "b", "c"]
    assert without["c"]["deviations"] == pytest.approx([0.25], abs=0.02)
    assert found["order"] == {"right": 0, "pairs": 0}
    (judged,) = read_cost("found.json").measured
    assert (judged.kind, judged.source, judged.points) == ("vendor simulation", "a test", 5)
    assert judged.ops == ("all_gather", "read")
    assert (judged.bytes, judged.ranks) == ((1 << 14, 1 << 26), (4,))
    assert judged.held_out is not None
    assert main(["fit", "groups.json", *names, "--leave-out", "group"]) == 0
    said = capsys.readouterr().out
    assert "left out" in said
    assert "read over hccs, held out" in said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--leave-out", "grop"], "--leave-out 'grop' is no column that groups rows."),
        (["--leave-out", "op"], "All rows are of one group, 'all_gather'"),
        (["--times-are", "guess"], "--times-are"),
    ],
)
def test_what_cannot_be_left_out(
    folder: Path, options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fit", "calls.json", *options, "--parameters", "hccs.alpha_us,hccs.gbps"]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"kind": "read", "link": "hccs", "bytes": "8X", "gbps": 20}, "bytes: expected a size"),
        ({"kind": "read", "link": "hccs", "bytes": "8M", "gbps": 0}, "gbps: expected a rate"),
        ({"kind": "raed", "link": "hccs", "bytes": "8M", "gbps": 9}, "kind is 'raed'"),
    ],
)
def test_rows_that_are_no_transfer(
    row: dict[str, Any], said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("rows.json").write_text(json.dumps([row, row]))
    assert main(["fit", "rows.json"]) == 2
    assert said in capsys.readouterr().err
