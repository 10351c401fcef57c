"""Programs in files: JSON for small ones and for other tools, npz for large ones.

    save(program, "ring.json")      program = load("ring.json")

JSON is the format `hccl-py.program/1`; npz keeps the batches of a recording as they are. Everything
that is not a program is a ProgramFileError, which names the file, the place in it, what was found
and what was expected. The same program gives the same bytes.
"""

from __future__ import annotations

from pathlib import Path

from hccl_py.documents.disk import PathLike, read_file, spell_path, write_file
from hccl_py.errors import ProgramFileError, did_you_mean
from hccl_py.formats.checks import JSON_LIMIT, NPZ_LIMIT, NPZ_PROGRAM, PROGRAM
from hccl_py.formats.json_read import from_json
from hccl_py.formats.json_write import to_json
from hccl_py.formats.npz import to_npz
from hccl_py.formats.npz_read import from_npz
from hccl_py.program.program import Program

__all__ = [
    "JSON_LIMIT",
    "NPZ_LIMIT",
    "from_json",
    "from_npz",
    "load",
    "read_npz",
    "read_program",
    "save",
    "spell_path",
    "to_json",
    "to_npz",
    "write_json",
    "write_npz",
]

_SUFFIXES = (".json", ".npz")


def save(program: Program, path: PathLike) -> None:
    """Write a program to a `.json` or `.npz` file."""
    write = write_json if _suffix(path) == ".json" else write_npz
    write(program, path)


def load(path: PathLike, *, max_bytes: int = JSON_LIMIT) -> Program:
    """Read a program from a `.json` or `.npz` file; JSON files above `max_bytes` are refused."""
    return read_npz(path) if _suffix(path) == ".npz" else read_program(path, max_bytes)


def write_json(program: Program, path: PathLike) -> None:
    """Write a program as JSON, in UTF-8."""
    write_file(path, to_json(program).encode("utf-8", "backslashreplace"), PROGRAM)


def read_program(path: PathLike, max_bytes: int = JSON_LIMIT) -> Program:
    """Read a program from a JSON file; one above `max_bytes` is refused by its size, unread."""
    return from_json(read_file(path, max_bytes, PROGRAM), spell_path(path))


def write_npz(program: Program, path: PathLike) -> None:
    """Write a program as npz."""
    write_file(path, to_npz(program), PROGRAM)


def read_npz(path: PathLike, max_bytes: int = NPZ_LIMIT) -> Program:
    """Read a program from an npz file that unpacks to at most `max_bytes`."""
    data = read_file(path, max_bytes, NPZ_PROGRAM, begins=b"PK")
    return from_npz(data, spell_path(path), max_bytes)


def _suffix(path: PathLike) -> str:
    suffix = Path(path).suffix.lower()
    if suffix not in _SUFFIXES:
        raise ProgramFileError(
            f"{spell_path(path):.200}: programs are kept in .json and .npz files, not in "
            f"{spell_path(suffix) or 'files without a suffix'}.",
            did_you_mean(suffix, _SUFFIXES),
        )
    return suffix
