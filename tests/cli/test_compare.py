"""`hccl-py compare`: its table, its document, its files, its errors."""

import json
from pathlib import Path

import pytest

from hccl_py.cli import main

FEW = ("--ranks", "4", "--jobs", "1", "--executors", "AllReduceComm,AllReduceRing")


def test_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["compare", "all_reduce", "--ranks", "8", "-b", "256K", "-e", "1M", "--jobs", "1"])
        == 0
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "all_reduce sum fp32, 8 ranks"
    assert (
        " ".join(lines[2].split()) == "bytes fastest HCCL us busbw vs bound HCCL's rules us ratio"
    )
    assert "AllReduceMeshSmallCountExecutor" in lines[3]
    rules, ratio = lines[3].split()[-2:]
    fastest = float(lines[3].split()[3])
    assert float(ratio.removesuffix("x")) == pytest.approx(float(rules) / fastest, abs=0.01)
    is_same = lines[4].endswith("1.00x")
    assert ("the same" in lines[4]) == is_same
    assert any("fastest" in line and "others" in line for line in lines[5:])


def test_an_executor_that_hccl_does_not_have_is_not_called_the_same(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """HCCL has no gather: what stands for it here is the fastest, and still another algorithm."""
    assert main(["compare", "gather", "--ranks", "4", "-b", "1K", "--jobs", "1"]) == 0
    out = capsys.readouterr().out
    row = next(line for line in out.splitlines() if "1.00x" in line)
    assert row.count("GatherMeshExecutor") == 2
    assert "(ours)" in row
    assert "the same" not in out


def test_all_candidates(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "all_reduce", "-b", "1K", "--all", *FEW]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert sum("AllReduceComm" in line for line in lines) == 7
    assert sum(line.endswith("fastest") for line in lines) == 1


def test_the_document(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["compare", "all_reduce", "-b", "1K", "-e", "64K", "--json", *FEW]
    assert main([*arguments, "--network", "contended", "--cost", "formula"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "hccl-py.compare/1"
    assert document["network"] == "contended"
    assert document["left_out"] == []
    sizes = sorted({row["bytes"] for row in document["rows"]})
    assert sizes == [1 << 10, 1 << 12, 1 << 14, 1 << 16]
    for row in document["rows"]:
        assert row["simulated_us"] >= row["lower_bound_us"] > 0
        assert row["times_bound"] == pytest.approx(row["simulated_us"] / row["lower_bound_us"])
    assert sum(row["is_winner"] for row in document["rows"]) == 4


def test_sizes_as_hccl_test_has_them(capsys: pytest.CaptureFixture[str]) -> None:
    for option, wanted in ((("-f", "2"), [1024, 2048]), (("-i", "512"), [1024, 1536, 2048])):
        arguments = ["compare", "all_reduce", "-b", "1K", "-e", "2K", *option, "--json", *FEW]
        assert main(arguments) == 0
        rows = json.loads(capsys.readouterr().out)["rows"]
        assert sorted({row["bytes"] for row in rows}) == wanted


def test_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    picture, page = tmp_path / "a.png", tmp_path / "a.html"
    arguments = ["compare", "all_reduce", "-b", "1K", "-e", "4K", *FEW]
    assert main([*arguments, "--png", str(picture), "--html", str(page)]) == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert page.read_text().startswith("<!DOCTYPE html>")


def test_files_that_cannot_be_written_are_refused_before_the_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(*arguments: str) -> str:
        work = ["all_reduce", "--ranks", "65536", "-b", "1G"]  # would take for ever
        assert main(["compare", *work, *arguments]) == 2
        return capsys.readouterr().err

    missing = str(tmp_path / "no" / "a.png")
    for option, suffix in (("--png", "png"), ("--html", "html"), ("--table", "json")):
        path = tmp_path / "no" / f"a.{suffix}"
        assert "cannot be written: there is no folder" in refused(option, str(path))
        path = tmp_path / f"folder.{suffix}"
        path.mkdir()
        assert "cannot be written: it is a folder" in refused(option, str(path))
        path = tmp_path / f"foreign.{suffix}"
        path.write_text("a letter")
        assert "it would be lost" in refused(option, str(path))
        assert path.read_text() == "a letter"
    assert "Name a file that ends in .png." in refused("--png", str(tmp_path / "a.csv"))
    assert "Name a file that ends in .html or .htm." in refused("--html", str(tmp_path / "a.png"))
    (tmp_path / "no.json").write_text("{}")
    assert "no.json: " in refused("--table", str(tmp_path / "no.json"))
    slow = refused("--table", str(tmp_path / "table.json"), "--slow", "rank=1:2x")
    assert "Tuning tables are for machines without defects." in slow
    assert "A sweep is not written as 'a.png'." in refused("--out", missing)
    assert "--out times every point" in refused("--out", "a.csv", "--effort", "1")


def test_every_point_into_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "points.csv"
    arguments = ["compare", "all_reduce", "-b", "1K", "--json", "--out", str(path)]
    assert main([*arguments, *FEW]) == 0
    first = json.loads(capsys.readouterr().out)
    assert len(path.read_text().splitlines()) == 1 + len(first["rows"]) == 9
    assert main([*arguments, *FEW]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["rows"] == first["rows"]
    assert first["notes"][-1] == f"8 of 8 points timed, all are in {path}"
    assert again["notes"][-1] == f"0 of 8 points timed, all are in {path}"


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_an_author_s_class_takes_part_beside_the_others(
    author: str, jobs: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["all_gather", "--ranks", "4", "-b", "1K", "-e", "4K", "--jobs", jobs, "--json"]
    arguments += ["--executors", "AllGatherMeshOpbaseExecutor", "--executor", f"{author}:Right"]
    assert main(["compare", *arguments]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert {row["executor"] for row in rows} == {"AllGatherMeshOpbaseExecutor", "Right"}
    own = {row["bytes"]: row["simulated_us"] for row in rows if row["executor"] == "Right"}
    simulate = ["simulate", "all_gather", "--ranks", "4", "-b", "4K", "--json"]
    assert main([*simulate, "--executor", f"{author}:Right"]) == 0
    assert own[4096] == json.loads(capsys.readouterr().out)["simulated_us"]


def test_an_author_s_class_that_cannot_take_part(
    author: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(op: str, *arguments: str) -> str:
        assert main(["compare", op, "--ranks", "4", "--jobs", "1", *arguments]) == 2
        return capsys.readouterr().err

    own = ("--executor", f"{author}:Right")
    assert "Right executes all_gather, not all_reduce." in refused("all_reduce", *own)
    assert f"{author} has no Wright" in refused("all_gather", "--executor", f"{author}:Wright")
    for option, name in (("--table", "t.json"), ("--out", "t.csv")):
        said = refused("all_gather", *own, option, name)
        assert f"{option} keeps executors by name, and {author}:Right is a class" in said


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--executor", "AllReduceComm"], "compare takes no --executor."),
        (["--counts", "a.json"], "compare takes no --counts."),
        (["--in-place"], "compare takes no --in-place."),
        (["--strict-hccl"], "compare takes no --strict-hccl."),
        (["-b", "0"], "There is nothing to compare at 0 bytes."),
        (["--executors", "AllReduceCom"], "all_reduce has no executor 'AllReduceCom'."),
        (["--network", "shared"], "--network 'shared' is unknown."),
        (["--root", "1"], "all_reduce has no root."),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_errors(capsys: pytest.CaptureFixture[str], arguments: list[str], error: str) -> None:
    assert main(["compare", "all_reduce", "--ranks", "4", "--jobs", "1", *arguments]) == 2
    assert error in capsys.readouterr().err


def test_a_barrier_is_compared_without_sizes(capsys: pytest.CaptureFixture[str]) -> None:
    call = ["compare", "barrier", "--ranks", "2", "--jobs", "1"]
    assert main(call) == 0
    capsys.readouterr()
    assert main([*call, "-e", "4K"]) == 2
    assert "barrier has no data size." in capsys.readouterr().err
