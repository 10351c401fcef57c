"""Program files on disk: suffixes, names, permissions and sizes."""

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hccl_py.errors import ProgramFileError
from hccl_py.formats import from_json, load, save
from tests.formats.documents import EXAMPLE, SHORT
from tests.recording import op_of, recorded


def test_save_and_load_choose_by_suffix(tmp_path: Path) -> None:
    program = recorded("AllReduceComm", op_of("all_reduce", 100), 3)
    for name in ("a.json", "b.NPZ"):
        save(program, tmp_path / name)
        assert load(str(tmp_path / name)).digest == program.digest


def test_half_characters_can_be_written(tmp_path: Path) -> None:
    program = replace(recorded("AllReduceComm", op_of("all_reduce", 100), 2), executor="\ud800")
    save(program, tmp_path / "a.json")
    with pytest.raises(ProgramFileError, match=r"executor: expected a string"):
        load(tmp_path / "a.json")


@pytest.mark.parametrize("name", ["a.txt", "a", "a.jsn"])
def test_other_suffixes_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ProgramFileError, match=r"kept in \.json and \.npz files"):
        load(tmp_path / name)
    with pytest.raises(ProgramFileError, match=r"kept in \.json and \.npz files"):
        save(from_json(EXAMPLE), tmp_path / name)


def test_unusable_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(ProgramFileError, match=r"none\.json.* No such file"):
        load(tmp_path / "none.json")
    with pytest.raises(ProgramFileError, match=r"folder\.json.* it is a folder"):
        load(tmp_path / "folder.json")
    with pytest.raises(ProgramFileError, match=r"written: there is no folder"):
        save(from_json(EXAMPLE), tmp_path / "no" / "a.json")
    with pytest.raises(ProgramFileError, match=r"null"):
        load("a\0.json")


@pytest.mark.parametrize("end", [".json", ".npz", ".tx\nt", "/none.json"])
def test_names_of_files_are_on_one_line(end: str, tmp_path: Path) -> None:
    name = f"a\nb\x1b[31m\u2028{end}"
    if end in (".json", ".npz"):
        (tmp_path / name).write_text("{")
    with pytest.raises(ProgramFileError) as caught:
        load(tmp_path / name)
    assert "a\\nb\\x1b[31m\\u2028" in caught.value.message
    assert caught.value.message.isprintable()
    (tmp_path / "a\nb.json").write_text("{}")
    with pytest.raises(ProgramFileError, match=r"a\\nb.* at most 0 bytes") as caught:
        load(tmp_path / "a\nb.json", max_bytes=0)
    assert caught.value.message.isprintable()


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.touch(mode=0)
    with pytest.raises(ProgramFileError, match=r"a\.json.* Permission denied"):
        load(path)


def test_large_files_are_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    with path.open("wb") as file:
        file.truncate(40 << 30)  # sparse: reading it would take minutes
    with pytest.raises(ProgramFileError, match=r"at most 33,554,432 bytes, found 42,949,672,960"):
        load(path)
    path.write_text(EXAMPLE)
    with pytest.raises(ProgramFileError, match=r"at most 100 bytes"):
        load(path, max_bytes=100)
    assert load(path, max_bytes=len(EXAMPLE)).ranks == 4


def test_files_of_many_ranks_stay_small_in_memory() -> None:
    program = from_json(json.dumps({**SHORT, "ranks": 65536}))
    assert program.ranks == 65536
    assert len(program.transports) == 0
    assert len(program.batches) == 1
    assert np.shape(program.buffer_sizes) == (65536, 3)
