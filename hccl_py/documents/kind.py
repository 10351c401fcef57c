"""Kinds of files: the class and the hints of their errors.

`named` surrounds the reading of a file: its name in front of errors, and no garbage collection.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from hccl_py.errors import FileError

T = TypeVar("T")


@dataclass(frozen=True)
class FileKind:
    """The errors of one kind of file.

    `noun` names the contents of such a file, `parts` its parts; `larger`, `text`, `depth` and
    `digits` are the hints for files that are too large, not UTF-8, nested without end, and for
    numbers without end. `code` is HCCL's code for a file that is not usable. `allows_nan` leaves
    NaN and Infinity to later checks. A file is written to a name with one of `suffixes`, where
    there are any, and over another file only where `mark` is in that one's first bytes.
    """

    noun: str
    parts: str
    error: type[FileError] = FileError
    larger: str = ""
    text: str = "Save the file as UTF-8."
    depth: str = ""
    digits: str = "Write numbers with at most 19 digits."
    syntax: str = "Check the file with any JSON tool; was it cut off?"
    code: str = ""
    allows_nan: bool = False
    suffixes: tuple[str, ...] = ()
    mark: re.Pattern[bytes] = re.compile(b"")


PAGE = FileKind(
    "page of HTML",
    "tags",
    suffixes=(".html", ".htm"),
    mark=re.compile(rb'name="generator" content="hccl-py"'),
)


def named(name: str, kind: FileKind, read: Callable[[], T]) -> T:
    """Call `read` and return its result; put the name of the file in front of its errors, HCCL's
    code behind them.

    The error holds no frames of the reader, and so no half-read document.
    """
    with paused_collector():
        try:
            return read()
        except FileError as error:
            message, hint, code = error.message, error.hint, error.code or kind.code
        except MemoryError:
            message = f"$: the {kind.noun} does not fit into memory."
            hint, code = "Take a larger machine.", kind.code
    if code:
        message = f"{message.removesuffix('.')} ({code})."
    shown = name or "''"
    raise kind.error(f"{shown}: {message}", hint, code)


@contextmanager
def paused_collector() -> Iterator[None]:
    """Keep Python's cycle collector from walking millions of objects that stay, over and over."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
