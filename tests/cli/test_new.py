"""hccl-py new: what it writes, and what it refuses without writing anything."""

import json
from pathlib import Path

import pytest

from hccl_py.cli import main
from hccl_py.cli.errors import USAGE


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def new(*arguments: str) -> int:
    return main(["new", "executor", *arguments])


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return what is said; nothing may have been written."""
    before = sorted(Path().rglob("*"))
    assert new(*arguments) == USAGE
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("error: ")
    assert captured.err.count("\nhint: ") == 1
    assert sorted(Path().rglob("*")) == before
    return captured.err


FILES = [
    "README.md",
    "my_gather/__init__.py",
    "my_gather/executor.py",
    "my_gather/py.typed",
    "pyproject.toml",
    "tests/test_my_gather.py",
]


def written(folder: str) -> list[str]:
    found = (path for path in Path(folder).rglob("*") if path.is_file())
    return sorted(path.relative_to(folder).as_posix() for path in found)


def test_a_project_in_a_folder_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert new("MyGather", "--op", "all_gather") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "my_gather: a project with the executor MyGather"
    assert sorted(line.strip() for line in lines[1:7]) == FILES == written("my_gather")
    assert "  cd my_gather" in lines
    assert "  hccl-py check MyGather" in lines


def test_a_project_in_a_named_folder_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    Path("some folder").mkdir()
    assert new("MyGather", "--op", "all_gather", "--path", "some folder/a b", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "hccl-py.new/1"
    assert (document["executor"], document["op"]) == ("MyGather", "all_gather")
    assert document["path"] == "some folder/a b"
    assert sorted(file["path"] for file in document["files"]) == FILES
    assert written("some folder/a b") == FILES


def test_commands_to_go_on_with_can_be_pasted(capsys: pytest.CaptureFixture[str]) -> None:
    assert new("MyGather", "--op", "all_gather", "--path", "a b") == 0
    assert "  cd 'a b'\n" in capsys.readouterr().out


@pytest.mark.parametrize("path", [".", "empty"])
def test_an_empty_folder_is_filled(path: str) -> None:
    Path("empty").mkdir()
    if path == ".":
        Path("empty").rmdir()
    identity = Path(path).stat().st_ino
    assert new("MyGather", "--op", "all_gather", "--path", path) == 0
    assert written(path) == FILES
    assert Path(path).stat().st_ino == identity  # a shell may stand in it
    assert {p.name for p in Path(path).iterdir()} == {
        *("README.md", "pyproject.toml", "my_gather", "tests")
    }


NAMES = {
    "my_gather": ["'my_gather' is no name", "such as MyGather."],
    "my-gather": ["'my-gather' is no name", "such as MyGather."],
    "2Rings": ["'2Rings' is no name", "such as Rings."],
    "": ["'' is no name", "such as MyRing."],
    "1": ["'1' is no name", "such as MyRing."],
    "环": ["is no name", "such as MyRing."],
    "../Up": ["'../Up' is no name", "such as Up."],
    "My.Gather": ["is no name", "such as MyGather."],
    "class": ["'class' is no name", "such as Class."],
    "true": ["'true' is no name", "such as MyRing."],
    "A" * 81: ["is no name", "up to 80 letters"],
    "True": ["True is a name of Python itself.", "TrueExecutor"],
    "ValueError": ["ValueError is a name of Python itself."],
    "Class": ["in a package class, which is a word of Python itself.", "ClassExecutor"],
    "Json": ["in a package json, which is a word of Python itself.", "JsonExecutor"],
    "Numpy": ["in a package numpy, which is a module that is installed already."],
    "Rank": ["Rank is a name that executors import from hccl_py.", "MyRank"],
    "Chunks": ["Chunks is a name that executors import"],
    "AllGatherComm": ["AllGatherComm is installed already, by hccl_executors."],
}


@pytest.mark.parametrize("name", NAMES)
def test_names_that_cannot_be_used(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, name, "--op", "all_gather")
    for words in NAMES[name]:
        assert words in said


def test_an_unknown_op_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, "MyGather", "--op", "all_gathr")
    assert "Op 'all_gathr' is unknown." in said
    assert "Did you mean all_gather" in said


def test_a_missing_op_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--op" in refused(capsys, "MyGather")


def test_nothing_is_overwritten(capsys: pytest.CaptureFixture[str]) -> None:
    Path("my_gather").mkdir()
    Path("my_gather/notes.txt").write_text("mine")
    said = refused(capsys, "MyGather", "--op", "all_gather")
    assert "The folder 'my_gather' is not empty, and nothing is overwritten." in said
    assert Path("my_gather/notes.txt").read_text() == "mine"


def test_folders_that_cannot_be(capsys: pytest.CaptureFixture[str]) -> None:
    Path("file").write_text("")
    Path("link").symlink_to("nowhere")
    for path, words in {
        "file": "'file' is a file.",
        "link": "'link' is a link to nowhere.",
        "no/such": "There is no folder 'no' to put the project in.",
        "file/inside": "There is no folder 'file'",
        "x" * 300: "File name too long",
    }.items():
        assert words in refused(capsys, "MyGather", "--op", "all_gather", "--path", path)


def test_without_a_kind_of_project_the_help_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new"]) == USAGE
    assert "hccl-py new --help" in capsys.readouterr().err


def test_a_custom_op_in_cpp(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "--cpp", "my_op", "--op", "broadcast"]) == 0
    assert "hccl-py check my_op --ranks 8 -b 1M" in capsys.readouterr().out
    files = [
        *("CMakeLists.txt", "hccl-py.toml", "include/custom.h", "op_host/broadcast.cc"),
        *("op_kernel_aicpu/exec_op.cc", "test/check.sh"),
    ]
    assert written("my_op") == files
    assert main(["new", "--cpp", "other", "--path", "there", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["cpp"], found["op"], found["path"]) == ("other", "all_gather", "there")


def test_a_project_in_the_form_of_a_contest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "--cpp", "my_op", "--op", "all_reduce", "--contest"]) == 0
    said = capsys.readouterr().out
    assert "hccl-py check my_op --topology ascend950-2x8 --buffsize 400 -b 1M" in said
    to_change = {"include/custom.h", "op_host/all_reduce.cc", "op_kernel_aicpu/exec_op.cc"}
    assert to_change < set(written("my_op"))
    for file in to_change:
        assert "may be changed" in Path("my_op", file).read_text()
    assert "for size in 4 512K 512M 419430404; do" in Path("my_op/test/check.sh").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--cpp", "my_op", "--engine", "ccu", "--contest"), "the engine aicpu"),
        (("--cpp", "my_op", "executor", "My", "--op", "all_gather"), "Name one of them"),
        (("--cpp", "My Op"), "'My Op' is no name for a project in C++"),
        (("--cpp", "my_op", "--op", "barrier"), "No custom op in C++ can stand for 'barrier'"),
        (("--cpp", "my_op", "--path", "."), "The folder '.' is not empty"),
    ],
)
def test_custom_ops_that_cannot_be_written(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("mine").write_text("")
    assert main(["new", *arguments]) == USAGE
    assert message in capsys.readouterr().err
    assert written(".") == ["mine"]
