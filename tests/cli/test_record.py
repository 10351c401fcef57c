"""Folders of custom ops in C++ on the command line: `record`, and every command that takes one."""

import json
from pathlib import Path

import pytest

from hccl_py.cli import main, record
from tests.interop.cpp.kit import OPS, compiler, copy_of, folder_of_builds

RING = str(OPS / "all_reduce_ring")


@pytest.fixture(autouse=True)
def cached(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Builds come from where the other tests have theirs."""
    compiler()
    (tmp_path / "cache" / "hccl-py").mkdir(parents=True)
    folder_of_builds().mkdir(parents=True, exist_ok=True)
    (tmp_path / "cache" / "hccl-py" / "cpp").symlink_to(folder_of_builds())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def run(*arguments: str) -> int:
    return main(list(arguments))


def test_the_command_is_there() -> None:
    assert callable(record.command)


def test_a_program_is_kept_and_taken_up_again(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("ring.json", "ring.npz"):
        kept = str(tmp_path / name)
        assert run("record", RING, "--ranks", "4", "-b", "64K", "--out", kept) == 0
        assert "104 tasks, 4 channels" in capfd.readouterr().out
        assert run("check", kept) == 0
        assert "ring." in capfd.readouterr().out
    assert run("record", RING, "--json") == 0
    document = json.loads(capfd.readouterr().out)
    assert (document["ok"], document["tasks"], document["ranks"]) == (True, 104, 4)


def test_ranks_may_be_those_of_superpods(capfd: pytest.CaptureFixture[str]) -> None:
    pods = ("--topology", "atlas-900-a3", "--superpods", "2", "--servers", "1", "--devices", "3")
    assert run("record", RING, *pods, "-b", "1K", "--json") == 0
    document = json.loads(capfd.readouterr().out)
    assert (document["ok"], document["ranks"]) == (True, 6)


def test_every_command_takes_a_folder(capfd: pytest.CaptureFixture[str]) -> None:
    sized = ("--ranks", "4", "-b", "64K")
    assert run("check", RING, *sized) == 0
    assert run("check", RING, "--ranks", "2,4", "-b", "1K", "--calls", "2") == 0
    assert f"{RING} (2 ranks): ok" in capfd.readouterr().out.replace("\n  ", "")
    assert run("simulate", RING, "--servers", "2", "--devices", "2", "-b", "1K", "-e", "4K") == 0
    assert "all_reduce_ring" in capfd.readouterr().out
    assert run("trace", RING, *sized) == 0
    assert run("run", RING, *sized, "-n", "1", "-w", "0") == 0
    assert "success" in capfd.readouterr().out


def test_a_broadcast_has_one_buffer(capfd: pytest.CaptureFixture[str]) -> None:
    star = str(OPS / "broadcast_star")
    assert run("check", star, "-r", "1") == 0
    assert f"{star}: ok" in capfd.readouterr().out.replace("\n  ", "")
    assert run("run", star, "-r", "1", "-b", "64K", "-n", "1", "-w", "0") == 0
    assert "success" in capfd.readouterr().out


def test_findings_end_with_status_1(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = str(copy_of("reduce_scatter_mesh", tmp_path, defines=["DEFECT=3"]))
    assert run("check", folder, "--ranks", "8", "--json") == 1
    (report,) = json.loads(capfd.readouterr().out)["reports"]
    (finding,) = report["findings"]
    assert finding["class"] == "WRONG_ADDRESS"
    assert finding["source"].endswith("kernel.cc:37")
    assert run("record", folder, "--ranks", "8", "--out", str(tmp_path / "x.json")) == 1
    assert "WRONG_ADDRESS (1 error)" in capfd.readouterr().out
    assert not (tmp_path / "x.json").exists()
    assert run("simulate", folder, "--ranks", "8") == 2
    assert ": WRONG_ADDRESS: " in capfd.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("check", "{empty}"), "has no sources in op_host/."),
        (("check", RING, "--op", "nothing"), "nothing"),
        (("check", RING, "-d", "fp99"), "'fp99' is unknown"),
        (("check", RING, "--ranks", "x"), "--ranks 'x' is not a list of numbers"),
        (("check", "all_gather", "--calls", "2"), "--calls is about a custom op in C++"),
        (("simulate", "all_gather", "--op", "all_gather"), "--op is about an MSCCL algorithm"),
        (("simulate", RING, "--executor", "X"), "--executor does not go with a custom op in C++"),
        (("record", "{empty}/gone"), "there is no file or folder"),
        (("record", RING, "--buffsize", "0"), "Invalid value for '--buffsize': "),
        (("record", RING, "--out", "x.txt"), "--out 'x.txt' is no name of a program file"),
        (("explain", RING), "explain takes an op, and"),
    ],
)
def test_bad_usage_is_a_sentence(
    arguments: tuple[str, ...],
    said: str,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "empty").mkdir()
    words = [word.format(empty=tmp_path / "empty") for word in arguments]
    assert run(*words) == 2
    error = capfd.readouterr().err
    assert said in error
    assert "Traceback" not in error


def test_the_compiler_s_words_are_shown(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = copy_of("all_reduce_ring", tmp_path)
    (folder / "op_host" / "op.cc").write_text("int x = y;\n")
    for command in ("check", "record", "simulate"):
        assert run(command, str(folder)) == 2
        error = capfd.readouterr().err
        assert "op_host/op.cc:1:9: error:" in error
        assert "error: 1 of 2 files cannot be compiled" in error
