"""What differs between kinds of files: their errors and the hints in them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hccl_py.errors import FileError

__all__ = ["FileKind"]


@dataclass(frozen=True)
class FileKind:
    """What the errors of one kind of file are and say.

    `noun` is what such a file holds, `parts` what it is made of; `larger`, `text`, `depth` and
    `digits` are the hints for files that are too large, not UTF-8, nested without end, and for
    numbers without end. `code` is HCCL's code for a file that is not usable. `allows_nan` leaves
    NaN and Infinity to the checks of their places. A file is written to one of `suffixes`, where
    there are any, and over another file only where `mark` is in that one's first bytes.
    """

    noun: str
    parts: str
    error: type[FileError]
    larger: str = ""
    text: str = ""
    depth: str = ""
    digits: str = ""
    syntax: str = "Check the file with any JSON tool; was it cut off?"
    code: str = ""
    allows_nan: bool = False
    suffixes: tuple[str, ...] = ()
    mark: re.Pattern[bytes] = re.compile(b"")
