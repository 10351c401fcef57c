"""The public door: `hccl_py.load` and `Program.save`."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import hccl_py as hccl
from hccl_py.errors import ProgramFileError


def recorded() -> hccl.Program:
    comm = hccl.Communicator(ranks=3)
    return comm.all_gather([np.zeros(4, np.uint8)] * 3).program


@pytest.mark.parametrize("name", ["a.json", "a.npz"])
def test_what_is_saved_is_loaded(name: str, tmp_path: Path) -> None:
    program = recorded()
    program.save(tmp_path / name)
    assert hccl.load(tmp_path / name).digest == program.digest
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["a.json", "a.npz"])
def test_names_of_streams_are_kept(name: str, tmp_path: Path) -> None:
    named = replace(recorded(), stream_names=("main", "die 1, mission 0"))
    named.save(tmp_path / name)
    assert hccl.load(tmp_path / name).stream_names == ("main", "die 1, mission 0")


@pytest.mark.parametrize("name", ["a.json", "a.npz"])
def test_the_same_program_gives_the_same_bytes(name: str, tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        recorded().save(tmp_path / folder / name)
    assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


@pytest.mark.parametrize("name", ["a.json", "a.npz"])
def test_a_failed_save_leaves_the_file_that_was_there(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text("the notes of a month")
    with pytest.raises(ProgramFileError, match="would be lost"):
        recorded().save(path)
    assert path.read_text() == "the notes of a month"
    assert [found.name for found in tmp_path.iterdir()] == [name]


def test_max_bytes_holds_for_both_formats(tmp_path: Path) -> None:
    program = recorded()
    for name in ("a.json", "a.npz"):
        program.save(tmp_path / name)
        with pytest.raises(ProgramFileError, match="at most 100 bytes"):
            hccl.load(tmp_path / name, max_bytes=100)


def test_other_suffixes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ProgramFileError, match=r"kept in \.json and \.npz files"):
        recorded().save(tmp_path / "a.pickle")
