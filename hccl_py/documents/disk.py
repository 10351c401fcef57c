"""Files on disk: read within a limit, written whole, errors in a sentence."""

from __future__ import annotations

import os
from pathlib import Path

from hccl_py.documents.guard import named
from hccl_py.documents.kind import FileKind
from hccl_py.errors import FileError
from hccl_py.printable import one_line

__all__ = ["PathLike", "read_file", "spell_path", "write_file"]

PathLike = str | os.PathLike[str]


def spell_path(path: PathLike) -> str:
    """Return a path for a sentence: on one line, whatever characters it has."""
    return one_line(str(path))


def read_file(path: PathLike, max_bytes: int, kind: FileKind) -> bytes:
    """Return the bytes of a file; a larger one is refused by its size, unread."""
    return named(f"{spell_path(path):.200}", kind, lambda: _read(path, max_bytes, kind))


def write_file(path: PathLike, data: bytes, kind: FileKind) -> None:
    """Write a file as a whole."""
    named(f"{spell_path(path):.200}", kind, lambda: _write(path, data))


def _read(path: PathLike, max_bytes: int, kind: FileKind) -> bytes:
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            data = b"" if size > max_bytes else file.read(max_bytes + 1)
    except (OSError, ValueError) as error:
        raise _unusable("read", error) from None
    if max(size, len(data)) > max_bytes:
        found = f"{size:,} bytes" if size > max_bytes else "more"
        raise FileError(f"$: expected at most {max_bytes:,} bytes, found {found}.", kind.larger)
    return data


def _write(path: PathLike, data: bytes) -> None:
    try:
        Path(path).write_bytes(data)
    except (OSError, ValueError) as error:
        raise _unusable("written", error) from None


def _unusable(verb: str, error: Exception) -> FileError:
    reason = error.strerror if isinstance(error, OSError) else str(error)
    hint = "Name a file in a folder that exists and that you may use."
    return FileError(f"the file cannot be {verb}: {reason}.", hint)
