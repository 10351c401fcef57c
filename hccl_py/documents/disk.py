"""Files on disk: regular ones, read within a limit, replaced as a whole, errors in a sentence.

Nothing here waits for a pipe, reads a device without end, or leaves half a file where a whole one
was.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hccl_py.documents.kind import FileKind, named
from hccl_py.errors import FileError
from hccl_py.printable import one_line

PathLike = str | os.PathLike[str]

_HEAD = 1 << 16
"""First bytes, by which a file is recognised."""

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

_ODD = {
    stat.S_IFDIR: "it is a folder",
    stat.S_IFIFO: "it is a pipe",
    stat.S_IFSOCK: "it is a socket",
    stat.S_IFCHR: "it is a device",
    stat.S_IFBLK: "it is a device",
}


def format_path(path: PathLike) -> str:
    """Return a path for a sentence: on one line, odd characters as escapes."""
    return one_line(str(path))


def read_file(
    path: PathLike, max_bytes: int, kind: FileKind, *, begins: bytes | None = b""
) -> bytes:
    """Return the bytes of a regular file; a larger one is refused by its size, unread.

    A long file is refused after its first bytes if they do not begin with `begins`, or are no text
    where that is empty; None takes any bytes.
    """
    return named(f"{format_path(path):.200}", kind, lambda: _read(path, max_bytes, kind, begins))


def write_file(path: PathLike, data: bytes, kind: FileKind) -> None:
    """Replace a file as a whole; a file of another kind is refused."""
    with replacing(path, kind) as part:
        part.write_bytes(data)


def check_place(path: PathLike, kind: FileKind) -> None:
    """Raise FileError where a file of this kind could not be written, before the work for it."""
    named(f"{format_path(path):.200}", kind, lambda: _checked_place(path, kind))


@contextmanager
def replacing(path: PathLike, kind: FileKind) -> Iterator[Path]:
    """Yield a path beside a file to write to; at the end it takes the file's place.

    Readers find the old file until then, and after an error.
    """
    name = f"{format_path(path):.200}"
    target = named(name, kind, lambda: _checked_place(path, kind))
    part = target.with_name(f".hccl-py-{secrets.token_hex(8)}.part")
    try:
        yield part
        if target.exists():
            part.chmod(stat.S_IMODE(target.stat().st_mode))
        part.replace(target)
    except OSError as error:
        raise refusal("written", error, f"{name}: ", kind.error) from None
    finally:
        part.unlink(missing_ok=True)


def refusal(
    verb: str, error: Exception, prefix: str = "", kind: type[FileError] = FileError
) -> FileError:
    """Return the error for a file that the system does not let us read, write or use."""
    reason = error.strerror if isinstance(error, OSError) else str(error)
    message = f"{prefix}the file cannot be {verb}: {reason or type(error).__name__}."
    return kind(message, _hint(error))


def _read(path: PathLike, max_bytes: int, kind: FileKind, begins: bytes | None) -> bytes:
    try:
        check_regular(path, "read")
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            size = os.fstat(descriptor).st_size
            if size > max_bytes:
                raise _too_large(f"{size:,} bytes", max_bytes, kind)
            data = file.read(min(_HEAD, max_bytes + 1))
            if len(data) == _HEAD:
                if begins is not None and (
                    not data.startswith(begins) or (not begins and b"\0" in data)
                ):
                    raise FileError(f"$: the bytes are no {kind.noun}.", kind.text)
                data += file.read(max_bytes + 1 - _HEAD)
    except (OSError, ValueError) as error:
        raise refusal("read", error) from None
    if len(data) > max_bytes:
        raise _too_large("more", max_bytes, kind)
    return data


def check_regular(path: PathLike, verb: str) -> None:
    """Refuse other things than regular files: opening a pipe would wait, a device may never end."""
    if os.path.islink(path) and not os.path.exists(path):
        message = f"the file cannot be {verb}: it is a link that leads to no file."
        raise FileError(message, f"It leads to {format_path(os.readlink(path)):.200}.")
    odd = _ODD.get(stat.S_IFMT(os.stat(path).st_mode))
    if odd is not None:
        raise FileError(f"the file cannot be {verb}: {odd}.", "Name a regular file.")


def _checked_place(path: PathLike, kind: FileKind) -> Path:
    """Return the file that would be replaced, links followed."""
    target = Path(os.path.realpath(path))
    if kind.suffixes and target.suffix.lower() not in kind.suffixes:
        raise FileError(
            f"a {kind.noun} is not written to such a file.",
            f"Name a file that ends in {' or '.join(kind.suffixes)}.",
        )
    try:
        if not target.parent.is_dir():
            raise FileNotFoundError(
                errno.ENOENT, f"there is no folder {format_path(target.parent)}"
            )
        for place in (target.parent, target):
            if place.exists() and not os.access(place, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        if target.exists():
            check_regular(target, "written")
            _check_ours(target, kind)
    except (OSError, ValueError) as error:
        raise refusal("written", error) from None
    return target


def _check_ours(target: Path, kind: FileKind) -> None:
    with open(target, "rb") as file:
        head = file.read(_HEAD)
    if head and not kind.mark.search(head):
        raise FileError(
            f"the file is there and holds no {kind.noun} of hccl-py: it would be lost.",
            "Name another file, or take that one away first.",
        )


def _too_large(found: str, max_bytes: int, kind: FileKind) -> FileError:
    return FileError(f"$: expected at most {max_bytes:,} bytes, found {found}.", kind.larger)


def _hint(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno in _FULL:
        return "Make room there, or name a file on another disk."
    return "Name a file in a folder that exists and that you may use."
