"""Files on disk: read within a limit, written whole, errors in a sentence."""

from __future__ import annotations

import os
from pathlib import Path

from hccl_py.errors import ProgramFileError

__all__ = ["JSON_LIMIT", "NPZ_LIMIT", "PathLike", "read_file", "spell_path", "write_file"]

PathLike = str | os.PathLike[str]

JSON_LIMIT = 32 << 20
"""Bytes of a JSON file that are read unless the caller allows more."""

NPZ_LIMIT = 1 << 30
"""Bytes that an npz file may unpack to unless the caller allows more."""


def spell_path(path: PathLike) -> str:
    """Return a path for a sentence: on one line, whatever characters it has."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in str(path))


def read_file(path: PathLike, max_bytes: int) -> bytes:
    """Return the bytes of a file; a larger one is refused by its size, unread."""
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            data = b"" if size > max_bytes else file.read(max_bytes + 1)
    except (OSError, ValueError) as error:
        raise _unusable(path, "read", error) from None
    if max(size, len(data)) > max_bytes:
        found = f"{size:,} bytes" if size > max_bytes else "more"
        raise ProgramFileError(
            f"{spell_path(path):.200}: $: expected at most {max_bytes:,} bytes, found {found}.",
            "Allow more with --max-size (max_bytes), or keep large programs as .npz.",
        )
    return data


def write_file(path: PathLike, data: bytes) -> None:
    """Write a file as a whole."""
    try:
        Path(path).write_bytes(data)
    except (OSError, ValueError) as error:
        raise _unusable(path, "written", error) from None


def _unusable(path: PathLike, verb: str, error: Exception) -> ProgramFileError:
    reason = error.strerror if isinstance(error, OSError) else str(error)
    hint = "Name a file in a folder that exists and that you may use."
    return ProgramFileError(f"{spell_path(path):.200}: the file cannot be {verb}: {reason}.", hint)
