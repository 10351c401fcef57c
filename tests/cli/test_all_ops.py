"""`hccl-py run OP` for every op, on every layout, with a check of every element."""

import json
from pathlib import Path
from typing import Any

import pytest

from hccl_py.call.ops import OPS
from hccl_py.cli import main
from hccl_py.operators import OPERATORS

RANKS = [["--ranks", str(n)] for n in (1, 2, 3, 4, 5, 6, 7, 8, 12, 16)]
SERVERS = [
    ["--servers", servers, "--devices", devices]
    for servers, devices in (("2", "8"), ("3", "4"), ("4", "8"), ("5", "2"))
]
SUPERPODS = [["--topology", "atlas-900-a3", "--superpods", "2", "--servers", "2", "--devices", "4"]]

IN_PLACE = [name for name, op in OPS.items() if op.in_place and name != "barrier"]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    once = ["-n", "1", "-w", "0", "-c", "1", "--json"]
    status = main(["run", *arguments, *once])
    captured = capsys.readouterr()
    assert status == 0, f"{' '.join(arguments)}: {captured.err}"
    document = json.loads(captured.out)
    assert [row["check"] for row in document["rows"]] == ["success"] * len(document["rows"])
    return document


def sizes(op: str, *given: str) -> tuple[str, ...]:
    return () if op == "barrier" else given


@pytest.mark.sweep
@pytest.mark.parametrize("op", OPERATORS)
def test_every_layout(op: str, capsys: pytest.CaptureFixture[str]) -> None:
    for layout in RANKS + SERVERS + SUPERPODS:
        run(capsys, op, *layout, *sizes(op, "-b", "1000"))


@pytest.mark.sweep
@pytest.mark.parametrize("op", OPERATORS)
def test_several_rounds_and_graph_mode(op: str, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, op, "--ranks", "4", "--buffsize", "1", *sizes(op, "-b", "5M"))
    run(capsys, op, "--servers", "2", "--devices", "2", "--mode", "graph", *sizes(op, "-b", "9K"))


@pytest.mark.parametrize("op", IN_PLACE)
@pytest.mark.parametrize("mode", ["op_base", "graph"])
def test_in_place(op: str, mode: str, capsys: pytest.CaptureFixture[str]) -> None:
    for ranks in ("1", "5", "8"):
        arguments = [op, "--ranks", ranks, "--mode", mode, "--in-place", "-d", "fp16", "-b", "999"]
        assert run(capsys, *arguments)["rows"]


def test_many_runs_in_place_do_not_overflow(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["run", "all_reduce", "--ranks", "8", "--in-place", "-d", "fp16", "-b", "1K"]
    assert main(command) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert "success" in captured.out


def test_the_root_is_the_one_that_is_given(capsys: pytest.CaptureFixture[str]) -> None:
    for op in ("broadcast", "reduce", "scatter", "gather"):
        for root in ("0", "2", "4"):
            run(capsys, op, "--ranks", "5", "-b", "1K", "-r", root)


@pytest.mark.parametrize(
    ("op", "bytes_", "factor"),
    [
        ("all_reduce", 1000, 1.5),
        ("all_gather", 1008, 0.75),
        ("all_gather_v", 1008, 0.75),  # counts c, 2c, 3c, c
        ("reduce_scatter", 1008, 0.75),
        ("reduce_scatter_v", 1008, 0.75),
        ("broadcast", 1000, 1),
        ("reduce", 1000, 1),
        ("scatter", 1008, 1),
        ("gather", 1008, 1),
        ("all_to_all", 1008, 0.75),
        ("all_to_all_v", 1008, 0.75),
        ("all_to_all_vc", 1008, 0.75),
        ("send_recv", 1000, 1),
        ("barrier", 32, 1.5),
    ],
)
def test_data_size_and_bus_bandwidth(
    op: str, bytes_: int, factor: float, capsys: pytest.CaptureFixture[str]
) -> None:
    (row,) = run(capsys, op, "--ranks", "4", *sizes(op, "-b", "1000"))["rows"]
    assert row["bytes"] == bytes_
    assert row["busbw_gbps"] == pytest.approx(row["algbw_gbps"] * factor)


@pytest.mark.parametrize(
    ("op", "counts", "bytes_"),
    [
        ("all_gather_v", [5, 0, 70, 1], 76 * 4),
        ("reduce_scatter_v", [5, 0, 70, 1], 76 * 4),
        ("all_to_all_v", [[1, 2, 3, 4], [0] * 4, [9, 0, 0, 0], [1] * 4], 11 * 4),
        ("all_to_all_vc", [[1, 2, 3, 4], [0] * 4, [9, 0, 0, 0], [1] * 4], 11 * 4),
    ],
)
def test_counts_from_a_file(
    op: str, counts: Any, bytes_: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "counts.json"
    file.write_text(json.dumps(counts))
    (row,) = run(capsys, op, "--ranks", "4", "--counts", str(file))["rows"]
    assert row["bytes"] == bytes_
    assert main(["run", op, "--ranks", "4", "--counts", str(file), "-n", "1"]) == 0
    assert f"the minbytes is {bytes_}, maxbytes is {bytes_}," in capsys.readouterr().out


@pytest.mark.parametrize(
    ("op", "text", "words"),
    [
        ("all_gather_v", "[1, 2]", "counts of shape 2"),
        ("all_gather_v", "[1, 2, 3, -4]", "counts with -4"),
        ("all_gather_v", "[1, 2, 3, 4.5]", "[3]: expected a whole number, found 4.5"),
        ("all_gather_v", "[1, 2, 3, true]", "[3]: expected a whole number, found true"),
        ("all_gather_v", "{}", "expected a list"),
        ("all_gather_v", "[1, 2", "the text is not JSON"),
        ("all_to_all_v", "[1, 2, 3, 4]", "[0]: expected a list, found 1"),
        ("all_to_all_vc", "[[1, 2], [3, 4]]", "matrix of shape 2 x 2"),
    ],
)
def test_bad_counts(
    op: str, text: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "counts.json"
    file.write_text(text)
    for command in ("run", "trace", "explain"):
        assert main([command, op, "--ranks", "4", "--counts", str(file)]) == 2
        error = capsys.readouterr().err
        assert words in error
        assert "\nhint: " in error


@pytest.mark.parametrize("option", ["-b", "-e", "-i"])
def test_counts_leave_no_size_to_give(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "counts.json"
    file.write_text("[1, 2, 3, 4]")
    assert main(["run", "all_gather_v", "--counts", str(file), option, "4"]) == 2
    assert "--counts says the sizes" in capsys.readouterr().err


TABLE = {
    "status": "completed",
    "version": "1.0",
    "server_count": "2",
    "server_list": [
        {
            "server_id": f"10.0.0.{server}",
            "device": [
                {
                    "device_id": str(device),
                    "device_ip": f"192.168.{server}.{device}",
                    "rank_id": str(3 * server + device),
                }
                for device in range(3)
            ],
        }
        for server in range(2)
    ],
}


@pytest.mark.parametrize("op", ["all_reduce", "scatter", "all_to_all"])
def test_a_rank_table(op: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "ranks.json"
    file.write_text(json.dumps(TABLE))
    document = run(capsys, op, "--rank-table", str(file), "-b", "1K")
    assert document["topology"] == "Atlas 800T A2, 2 servers x 3 devices"
    old = ["--rank-table", str(file), "--topology", "atlas-800-9000"]
    assert "9000" in run(capsys, op, *old, "-b", "1K")["topology"]


@pytest.mark.parametrize(
    "form", [["--deterministic"], ["--deterministic", "strict"], ["--deterministic", "TRUE"]]
)
@pytest.mark.parametrize("place", ["before", "after"])
def test_deterministic_with_and_without_a_value(
    form: list[str], place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    size = ["-b", "64K", "--ranks", "4"]
    arguments = [*form, "all_reduce", *size] if place == "before" else ["all_reduce", *size, *form]
    (row,) = run(capsys, *arguments)["rows"]
    assert row["executor"] != "AllReduceMeshOpbaseLoopExecutor"


def test_strict_hccl_takes_what_hccl_takes_or_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "all_gather", "--ranks", "4", "--strict-hccl", "-b", "1K"]) == 0
    assert main(["run", "gather", "--ranks", "4", "--strict-hccl", "-b", "1K"]) == 2
    assert "HCCL refuses gather" in capsys.readouterr().err


@pytest.mark.parametrize("op", ["all_gather_v", "barrier", "broadcast", "send_recv"])
def test_trace_and_explain_take_the_same_calls(op: str, capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("trace", "explain"):
        assert main([command, op, "--ranks", "5", *sizes(op, "-b", "1K"), "--json"]) == 0
        document = json.loads(capsys.readouterr().out)
        assert document["op"] == op
        assert document["executor"]
