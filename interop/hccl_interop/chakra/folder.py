"""A trace on disk: a folder with a file for every rank, PREFIX.RANK.et, ranks from 0."""

from __future__ import annotations

import os
import re
from pathlib import Path

from hccl_interop.chakra.checks import checked_trace
from hccl_interop.chakra.reading import CHAKRA, rank_trace_from
from hccl_interop.chakra.values import Trace
from hccl_py.documents.disk import PathLike, format_path, read_file
from hccl_py.errors import ProgramFileError

ET_LIMIT = 256 << 20
"""Bytes of a rank's file that are read unless the caller allows more."""

_NAME = re.compile(r"(.+)\.(0|[1-9][0-9]{0,6})\.et", re.DOTALL)


def is_trace(name: PathLike) -> bool:
    """True for a folder with .et files, and for a prefix of such files."""
    folder, prefix = _parts(name)
    try:
        with os.scandir(folder) as entries:
            start = prefix and f"{prefix}."
            return any(e.name.endswith(".et") and e.name.startswith(start) for e in entries)
    except (OSError, ValueError):
        return False


def read_trace(name: PathLike) -> Trace:
    """Return the trace in a folder, or of a prefix, FOLDER/PREFIX, where a folder has several.

    Raises ProgramFileError for files that cannot be read or are no traces, for a rank without a
    file, and for calls and messages that do not match between ranks.
    """
    ranks = [
        rank_trace_from(read_file(path, ET_LIMIT, CHAKRA, begins=None), format_path(path), rank)
        for rank, path in enumerate(trace_files(name))
    ]
    return checked_trace(format_path(name), tuple(ranks))


def trace_files(name: PathLike) -> list[Path]:
    """Return the files of a trace, one for each rank."""
    folder, prefix = _parts(name)
    shown = f"{format_path(name):.200}"
    found: dict[str, dict[int, Path]] = {}
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if match := _NAME.fullmatch(entry.name):
                    found.setdefault(match[1], {})[int(match[2])] = Path(entry.path)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise ProgramFileError(f"{shown}: the folder cannot be read: {reason}.") from None
    if prefix:
        found = {key: files for key, files in found.items() if key == prefix}
    if not found:
        raise ProgramFileError(
            f"{shown}: there is no file PREFIX.RANK.et.", "Chakra has a file for every rank."
        )
    if len(found) > 1:
        names = sorted(found)
        raise ProgramFileError(
            f"{shown}: there are {len(found)} traces: {format_path(', '.join(names[:4])):.200}.",
            f"Name one: {format_path(os.path.join(folder, names[0])):.200}.",
        )
    ((prefix, files),) = found.items()
    for rank in range(len(files)):
        if rank not in files:
            raise ProgramFileError(
                f"{shown}: there is no file {format_path(prefix):.100}.{rank}.et, and one of rank "
                f"{max(files)}.",
                "Ranks count from 0, each with a file of its own.",
            )
    return [files[rank] for rank in range(len(files))]


def _parts(name: PathLike) -> tuple[str, str]:
    """Return the folder and the prefix of a name."""
    text = os.fspath(name)
    if os.path.isdir(text):
        return text, ""
    # A name that is empty, or ends in a slash, has no prefix: no file's name begins with "\0".
    return os.path.dirname(text) or ".", os.path.basename(text) or "\0"
