"""hccl-py export: what it writes and says, and what it refuses without writing anything."""

import json
from pathlib import Path

import pytest

from hccl_py.cli import export, main
from tests.interop.cpp.kit import builder, compiler
from tests.tuning.test_table import entry, table, winner

FILES = [
    *("CMakeLists.txt", "hccl-py.toml", "include/custom.h", "op_host/all_reduce.cc"),
    *("op_kernel_aicpu/exec_op.cc", "test/check.sh"),
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> int:
    return main(["export", *arguments])


def written() -> list[str]:
    found = (path for path in Path().rglob("*") if path.is_file())
    return sorted(path.as_posix() for path in found)


def test_the_command_is_there() -> None:
    assert callable(export.command)


@pytest.mark.processes
def test_a_project_is_written_and_checked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    compiler()  # or the test is skipped
    monkeypatch.setattr("hccl_interop.cpp.build.default_cache", lambda _: builder().cache)
    assert run("AllReduceStar", "--to", "star", "--ranks", "3", "-b", "1K", "--check") == 0
    said = capsys.readouterr().out
    assert written() == [f"star/{path}" for path in FILES]
    assert "Its recording is the same program, task by task." in said
    assert "hccl-py check . --minbytes 1K --ranks 3" in Path("star/test/check.sh").read_text()


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("AllReduceRing", "--to", "ring", "--ranks", "2", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["schema"] == "hccl-py.export/1"
    assert (found["executor"], found["op"], found["ranks"]) == ("AllReduceRing", "all_reduce", 2)
    assert (found["least_count"], found["most_count"]) == (1, 32 * 50 << 20)  # in 32 rounds
    assert found["missing"] is None
    assert [file["path"] for file in found["files"]] == FILES


def test_a_plugin_of_two_executors(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("AllReduceStar,AllReduceRing", "--plugin", "made", "--ranks", "3", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in found["programs"]] == ["all_reduce_star", "all_reduce_ring"]
    assert "made/AllReduce/selector.cc" in written()
    assert "made/programs/all_reduce_ring/op_kernel_aicpu/exec_op.cc" in written()
    host = Path("made/programs/all_reduce_ring/op_host/all_reduce.cc").read_text()
    assert "HcclResult HcclAllReduceCustom(" in host
    assert 'tag = "hccl_py.all_reduce_ring"' in host


def test_a_plugin_of_a_tuning_table(capsys: pytest.CaptureFixture[str]) -> None:
    winners = winner(1 << 10, "AllReduceStar"), winner(1 << 20, "AllReduceRing")
    graph = entry(winner(1, "AllReduceRing"), mode="graph")
    table(entry(*winners), graph).write("tuned.json")
    assert run("tuned.json", "--plugin", "made", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    bounds = [(one["name"], one["least_count"], one["most_count"]) for one in found["programs"]]
    assert bounds == [("all_reduce_star", 1, 8192), ("all_reduce_ring", 8193, 32 * 50 << 20)]
    assert "only op_base and servers of one size" in found["left_out"][0]
    assert '{"all_reduce_star", ' in Path("made/AllReduce/selector.cc").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("AllReduceRing",),
            "The project has no place.\nhint: Name its folder: --to DIR, --plugin",
        ),
        (("AllReduceRing", "--to", "a", "--plugin", "b"), "--to and --plugin are two kinds"),
        (("SendExecutor", "--plugin", "b"), "algorithm plugin cannot take send_recv"),
        (("AllReduceRong", "--to", "x"), "Executor 'AllReduceRong' is unknown."),
        (("AllGatherVComm", "--to", "x"), "all_gather_v cannot be exported"),
        (("AllReduceRing", "--to", "full"), "The folder 'full' is not empty"),
        (("AllReduceRing", "--to", "full/file"), "'full/file' is a file."),
        (("AllReduceRing", "--to", "no/such/place"), "There is no folder 'no/such'"),
        (("AllReduceRing", "--to", "x", "-b", "0"), "a call without data"),
        (("AllGatherMeshGraphExecutor", "--to", "x"), "runs in graph mode only"),
    ],
)
def test_nothing_is_written_where_it_cannot_be(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("full").mkdir()
    Path("full/file").write_text("mine")
    assert run(*arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert message in captured.err
    assert written() == ["full/file"]
