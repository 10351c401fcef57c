"""The running line of an author's code: the innermost frame outside of the recording layer."""

import sys
from functools import cache, lru_cache
from pathlib import Path

Line = tuple[str, int]
"""A source file and a line number; kept raw because recording asks for one per instruction."""

_PACKAGE = Path(__file__).parent
_RECORDING = (
    str(_PACKAGE / "orchestration"),
    str(_PACKAGE / "values.py"),
    str(_PACKAGE / "plugins" / "executor.py"),
    str(_PACKAGE / "lines.py"),
)


@cache
def is_recording_file(name: str) -> bool:
    """True if a source file belongs to the recording layer and not to an author."""
    return name.startswith(_RECORDING) or name.endswith("contextlib.py")


def author_line(inside: int = 1) -> Line:
    """Return the author's line that is running; the innermost `inside` calls are recording's."""
    frame = sys._getframe(inside)
    while is_recording_file(name := frame.f_code.co_filename) and frame.f_back is not None:
        frame = frame.f_back
    return name, frame.f_lineno


def format_line(line: Line) -> str:
    """Return `folder/file.py:line`, enough to find the place and free of machine paths."""
    name, number = line
    return f"{_file(name)}:{number}"


@lru_cache(1024)
def _file(name: str) -> str:
    return "/".join(Path(name).parts[-2:])
