"""Programs in files: JSON for small ones and for other tools, npz for large ones.

    program.save("ring.json")       program = hccl_py.load("ring.json")

JSON is the format `hccl-py.program/1`; npz keeps the batches of a recording as they are. Everything
that is not a program is a ProgramFileError, which names the file, the place in it, what was found
and what was expected. The same program gives the same bytes.
"""

from __future__ import annotations

from pathlib import Path

from hccl_py.documents.disk import PathLike, format_path, read_file, write_file
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
    "format_path",
    "from_json",
    "from_npz",
    "load",
    "save",
    "to_json",
    "to_npz",
]

_SUFFIXES = (".json", ".npz")


def save(program: Program, path: PathLike) -> None:
    """Write a program to a `.json` or `.npz` file, as `Program.save` does."""
    if not program.has_op:
        raise ProgramFileError(
            f"{format_path(path):.200}: what the program is to compute is not known, and a file "
            "says that.",
            "State the op of what the program was made from.",
        )
    if _suffix(path) == ".npz":
        data = to_npz(program)
    else:
        data = to_json(program).encode("utf-8", "backslashreplace")
    write_file(path, data, PROGRAM)


def load(path: PathLike, *, max_bytes: int | None = None) -> Program:
    """Return the program of a `.json` or `.npz` file.

    Raises ProgramFileError for another suffix, a file that cannot be read, one that is larger than
    `max_bytes` (JSON, refused unread) or unpacks to more (npz), one of another version, and one
    that says anything that no program could: its message is one sentence with the place in the
    file. What is well-formed but wrong loads, so that it can be verified.
    """
    name = format_path(path)
    if _suffix(path) == ".npz":
        limit = NPZ_LIMIT if max_bytes is None else max_bytes
        return from_npz(read_file(path, limit, NPZ_PROGRAM, begins=b"PK"), name, limit)
    limit = JSON_LIMIT if max_bytes is None else max_bytes
    return from_json(read_file(path, limit, PROGRAM), name)


def _suffix(path: PathLike) -> str:
    suffix = Path(path).suffix.lower()
    if suffix not in _SUFFIXES:
        raise ProgramFileError(
            f"{format_path(path):.200}: programs are kept in .json and .npz files, not in "
            f"{format_path(suffix) or 'files without a suffix'}.",
            did_you_mean(suffix, _SUFFIXES),
        )
    return suffix
