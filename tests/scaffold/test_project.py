"""Projects are written as a whole or not at all."""

from pathlib import Path
from typing import Any

import pytest

from hccl_py.errors import ParameterError
from hccl_py.scaffold import executor_project, names_of, write_project

TEXTS = {"a.txt": "one\n", "b/c.txt": "two\n"}


def test_files_are_written_as_given(tmp_path: Path) -> None:
    write_project(TEXTS, tmp_path / "new")
    assert (tmp_path / "new" / "a.txt").read_text() == "one\n"
    assert (tmp_path / "new" / "b" / "c.txt").read_text() == "two\n"
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


def test_a_folder_has_the_rights_of_any_other(tmp_path: Path) -> None:
    write_project(TEXTS, tmp_path / "new")
    (tmp_path / "other").mkdir()
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "other").stat().st_mode


@pytest.mark.parametrize("there", [False, True])
def test_nothing_is_left_of_a_project_that_cannot_be_written(tmp_path: Path, there: bool) -> None:
    if there:
        (tmp_path / "new").mkdir()
    before = sorted(tmp_path.rglob("*"))
    impossible = {**TEXTS, "b": "a folder has this name"}
    with pytest.raises(ParameterError, match=r"cannot be written to .*new.: Is a directory"):
        write_project(impossible, tmp_path / "new")
    assert sorted(tmp_path.rglob("*")) == before


def test_what_was_moved_in_is_taken_back(tmp_path: Path) -> None:
    """A folder that gets an entry of the same name while the project is being written."""

    class Texts(dict[str, str]):
        def items(self) -> Any:
            yield from super().items()
            (tmp_path / "b").mkdir()
            (tmp_path / "b" / "theirs.txt").write_text("mine")

    with pytest.raises(ParameterError, match="Directory not empty"):
        write_project(Texts(TEXTS), tmp_path)
    assert [path.relative_to(tmp_path).as_posix() for path in sorted(tmp_path.rglob("*"))] == [
        "b",
        "b/theirs.txt",
    ]


@pytest.mark.parametrize(
    ("name", "package", "project"),
    [
        ("MyGather", "my_gather", "my-gather"),
        ("Ring", "ring", "ring"),
        ("AllGatherNB", "all_gather_nb", "all-gather-nb"),
        ("NHRAllReduce", "nhr_all_reduce", "nhr-all-reduce"),
        ("Ring2D", "ring2_d", "ring2-d"),
        ("X", "x", "x"),
    ],
)
def test_names(name: str, package: str, project: str) -> None:
    names = names_of(name)
    assert (names.executor, names.package, names.project) == (name, package, project)


def test_every_name_in_a_project_is_filled_in() -> None:
    texts = executor_project(names_of("MyGather"), "all_gather")
    assert not any("$NAME" in text or "$package" in text for text in texts.values())
    assert "class MyGather:" in texts["my_gather/executor.py"]
    assert 'name = "my-gather"' in texts["pyproject.toml"]
