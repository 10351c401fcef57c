"""The running line of an author's code: the innermost frame outside of the recording layer."""

import sys
from functools import lru_cache
from pathlib import Path
from types import CodeType

Line = tuple[CodeType, int]
"""A code object and a line number in it; kept raw because recording asks for one per instruction.
"""

_PACKAGE = Path(__file__).parent
_RECORDING = (
    str(_PACKAGE / "orchestration"),
    str(_PACKAGE / "values.py"),
    str(_PACKAGE / "plugins" / "executor.py"),
    str(_PACKAGE / "lines.py"),
)
_skipped: dict[str, bool] = {}


def is_recording_file(name: str) -> bool:
    """True if a source file belongs to the recording layer and not to an author."""
    return name.startswith(_RECORDING) or name.endswith("contextlib.py")


def author_line() -> Line:
    """Return the line of the author that is running."""
    frame = sys._getframe(1)
    while True:
        name = frame.f_code.co_filename
        skip = _skipped.get(name)
        if skip is None:
            skip = is_recording_file(name)
            _skipped[name] = skip
        if not skip or frame.f_back is None:
            return frame.f_code, frame.f_lineno
        frame = frame.f_back


def format_line(line: Line) -> str:
    """Return `folder/file.py:line`, enough to find the place and free of machine paths."""
    code, number = line
    return f"{_file(code.co_filename)}:{number}"


@lru_cache(1024)
def _file(name: str) -> str:
    return "/".join(Path(name).parts[-2:])
