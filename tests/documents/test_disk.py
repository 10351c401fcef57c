"""Files from outside are regular and small, or one sentence; files are replaced as a whole."""

import os
import re
import resource
import socket
import stat
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from hccl_py.call.counts import read_counts
from hccl_py.clocks.cost import COSTS
from hccl_py.clocks.cost_files import read_cost, write_cost
from hccl_py.documents.disk import check_place, read_file, replacing, write_file
from hccl_py.documents.kind import PAGE, FileKind
from hccl_py.errors import FileError
from hccl_py.fit.logs.measured import read_log
from hccl_py.formats import load, save
from hccl_py.topology.networks.files import read_network
from hccl_py.topology.rank_tables import read_rank_table
from hccl_py.tuning.pictures import PNG
from hccl_py.tuning.table import TuningTable
from tests.recording import op_of, recorded

NOTE = FileKind("note", "words", FileError, "Write less.", mark=re.compile(rb"^note"))

READERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "program": ("json", load),
    "program.npz": ("npz", load),
    "cost model": ("json", read_cost),
    "cost model in YAML": ("yaml", read_cost),
    "network": ("json", read_network),
    "network in YAML": ("yaml", read_network),
    "rank table": ("json", read_rank_table),
    "topology file": ("json", lambda path: read_rank_table(b"{}", path)),
    "tuning table": ("json", TuningTable.read),
    "counts": ("json", lambda path: read_counts(str(path), "all_gather_v")),
    "log": ("txt", read_log),
}


def made(kind: str, path: Path) -> None:
    """Put something that is no file to read at a path."""
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as place:
            folder = os.open(path.parent, os.O_RDONLY)
            place.bind(f"/proc/self/fd/{folder}/{path.name}")
            os.close(folder)
    elif kind == "folder":
        path.mkdir()
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "link that leads to no file":
        path.symlink_to(path.with_name("gone"))
    elif kind == "byte":
        path.touch()
        os.truncate(path, 900_000_000)  # a file of zeros that takes no room


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    "kind", ["pipe", "socket", "folder", "device", "link that leads to no file", "byte"]
)
def test_what_is_no_file_is_refused_at_once(kind: str, reader: str, tmp_path: Path) -> None:
    suffix, read = READERS[reader]
    path = tmp_path / f"file.{suffix}"
    made(kind, path)
    tracemalloc.start()
    try:
        with pytest.raises(FileError, match=kind) as caught:
            read(path)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()
    assert caught.value.message.count("\n") == 0
    assert caught.value.hint


def test_a_dangling_link_says_where_it_leads(tmp_path: Path) -> None:
    path = tmp_path / "link.json"
    path.symlink_to("gone.json")
    with pytest.raises(FileError, match=r"It leads to gone\.json\."):
        read_file(path, 100, NOTE)


@pytest.mark.parametrize("size", [99, 100, 101])
def test_files_up_to_the_limit_are_read(size: int, tmp_path: Path) -> None:
    path = tmp_path / "note"
    path.write_bytes(b"x" * size)
    if size <= 100:
        assert read_file(path, 100, NOTE) == b"x" * size
    else:
        with pytest.raises(FileError, match=r"at most 100 bytes, found 101 bytes.\nWrite less"):
            read_file(path, 100, NOTE)


def test_a_file_whose_size_is_not_said_is_read_to_the_limit() -> None:
    assert b"Name:" in read_file("/proc/self/status", 100_000, NOTE)
    with pytest.raises(FileError, match="at most 100 bytes, found more"):
        read_file("/proc/self/status", 100, NOTE)


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "note"
    write_file(path, b"note 1", NOTE)
    path.chmod(0o640)
    with path.open("rb") as old:
        write_file(path, b"note 2", NOTE)
        assert (old.read(), path.read_bytes()) == (b"note 1", b"note 2")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert os.listdir(tmp_path) == ["note"]


def test_a_link_stays_and_what_it_leads_to_is_replaced(tmp_path: Path) -> None:
    path, link = tmp_path / "note", tmp_path / "link"
    link.symlink_to("note")
    for text in (b"note 1", b"note 2"):
        write_file(link, text, NOTE)
        assert link.is_symlink()
        assert path.read_bytes() == text


def test_a_disk_without_room_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "note"
    write_file(path, b"note", NOTE)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(FileError, match=r"cannot be written: File too large\.\nMake room"):
            write_file(path, b"note" * 1000, NOTE)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert path.read_bytes() == b"note"
    assert os.listdir(tmp_path) == ["note"]


def test_an_interrupt_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "note"
    write_file(path, b"note", NOTE)
    with pytest.raises(KeyboardInterrupt), replacing(path, NOTE) as part:  # noqa: PT012
        part.write_bytes(b"no")
        raise KeyboardInterrupt
    assert path.read_bytes() == b"note"
    assert os.listdir(tmp_path) == ["note"]


@pytest.mark.parametrize("kind", ["pipe", "socket", "folder", "device"])
def test_what_is_no_file_is_not_written_to(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "note"
    made(kind, path)
    with pytest.raises(FileError, match=f"cannot be written: it is a {kind}"):
        check_place(path, NOTE)
    with pytest.raises(FileError, match=f"cannot be written: it is a {kind}"):
        write_file(path, b"note", NOTE)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"written: there is no folder .*/gone\.\nName a file in"):
        check_place(tmp_path / "gone" / "note", NOTE)


def test_nothing_else_is_written_over(tmp_path: Path) -> None:
    path = tmp_path / "note"
    path.touch()
    write_file(path, b"note", NOTE)
    path.write_bytes(b"a letter")
    with pytest.raises(FileError, match=r"holds no note of hccl-py: it would be lost\.\nName anot"):
        write_file(path, b"note", NOTE)
    assert path.read_bytes() == b"a letter"


FOREIGN = (b"PK\3\4" + bytes(26) + b"[Content_Types].xml", b'{"name": "a package"}', b"\x89PNG\r\n")


@pytest.mark.parametrize("foreign", FOREIGN)
def test_every_writer_keeps_what_others_wrote(foreign: bytes, tmp_path: Path) -> None:
    program, cost = recorded("AllGatherComm", op_of("all_gather"), 2), COSTS["atlas-800t-a2"]
    writers: dict[str, Callable[[Path], None]] = {
        "p.json": lambda path: save(program, path),
        "p.npz": lambda path: save(program, path),
        "c.json": lambda path: write_cost(path, cost),
        "c.yaml": lambda path: write_cost(path, cost),
        "t.json": lambda path: TuningTable(costs=(), entries=()).write(path),
        "x.png": lambda path: check_place(path, PNG),
        "x.html": lambda path: check_place(path, PAGE),
    }
    for name, write in writers.items():
        path = tmp_path / name
        path.write_bytes(foreign)
        with pytest.raises(FileError, match="would be lost"):
            write(path)
        assert path.read_bytes() == foreign
        path.unlink()
        write(path)
        write(path)
