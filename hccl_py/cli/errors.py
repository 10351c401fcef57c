"""The end of a command: errors as a sentence and a hint on stderr, and the exit status."""

from __future__ import annotations

import errno
import json
import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple, TextIO

from hccl_py.language import translated

if TYPE_CHECKING:
    from hccl_py.errors import PluginError

WRONG, USAGE, DEFECT, INTERRUPTED, PIPE_CLOSED = 1, 2, 3, 130, 141


class PipeClosedError(Exception):
    """The reader of stdout is gone; typer would make a BrokenPipeError an exit status of 1."""


class WrongResultError(Exception):
    """A command did its work, and the result that it had to check was wrong."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


def guarded(command: Callable[[], object], *, debug: bool = False, as_json: bool = False) -> int:
    """Run a command and return its exit status; nothing but `debug` shows a traceback. With
    `as_json` an error is a document on stdout, too, as its result would be.
    """
    warnings.showwarning = _show_warning
    notes = _show_notes()
    try:
        return status_of(command, debug=debug, as_json=as_json)
    finally:
        logging.getLogger("hccl_py").removeHandler(notes)


def status_of(command: Callable[[], object], *, debug: bool = False, as_json: bool = False) -> int:
    """Run a command, or what a process of its own does for it, and return the exit status."""
    try:
        found = command()
        sys.stdout.flush()
        return found if isinstance(found, int) else 0
    except (BrokenPipeError, PipeClosedError):
        status = PIPE_CLOSED
    except KeyboardInterrupt:
        status = INTERRUPTED
    except Exception as error:
        if debug:
            _show_traceback(error)
        status = _explained(error, as_json=as_json)
    _flush_or_discard()
    return status


def say_error(message: str, hint: str = "") -> None:
    """Write an error in the form that all errors have."""
    _write_line(f"error: {message}")
    if hint:
        _write_line(f"hint: {hint}")


def say_warning(message: str) -> None:
    """Write a warning in the form that all warnings have."""
    _write_line(f"warning: {message}")


def _write_line(text: str) -> None:
    sys.stderr.write(translated(text) + "\n")


def say_problems(problems: Iterable[PluginError]) -> None:
    """Warn about broken plugins: their executors are missing from what follows."""
    for problem in problems:
        say_warning(problem.message)


def _show_notes() -> logging.Handler:
    """Show what the framework logs on its way, such as that it compiles for the first time."""
    notes = logging.StreamHandler(sys.stderr)
    notes.setFormatter(_Notes())
    logger = logging.getLogger("hccl_py")
    logger.addHandler(notes)
    logger.setLevel(logging.INFO)
    return notes


class _Notes(logging.Formatter):
    """Notes in the language that is spoken."""

    def format(self, record: logging.LogRecord) -> str:
        return translated(f"note: {record.getMessage()}")


class _Explained(NamedTuple):
    """An error as users read it: the exit status, the sentence, and the way out."""

    status: int
    message: str
    hint: str


def _explained(error: Exception, *, as_json: bool) -> int:
    """Print the sentence and the hint for an error; return the exit status."""
    if type(error).__name__ == "Abort":
        return INTERRUPTED
    found = _in_words(error)
    say_error(found.message, found.hint)
    has_result = found.status == WRONG or getattr(sys.stdout, "has_written", False)
    if as_json and not has_result:
        code = getattr(error, "code", None)
        words = {"kind": type(error).__name__, "message": found.message, "hint": found.hint}
        words |= {"code": code} if isinstance(code, str) and code else {}
        sys.stdout.write(json.dumps({"error": words}, indent=2) + "\n")
    return found.status


def _in_words(error: Exception) -> _Explained:
    from hccl_py.errors import HcclError

    if isinstance(error, HcclError):
        return _Explained(USAGE, error.message, error.hint)
    if isinstance(error, WrongResultError):
        return _Explained(WRONG, str(error), error.hint)
    if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
        hint = "Give fewer ranks or a smaller size."
        return _Explained(USAGE, "There is not enough memory for this.", hint)
    if isinstance(error, OSError):
        return _Explained(USAGE, f"{error.strerror or error}.", "--debug shows where it happened.")
    if hasattr(error, "format_message"):  # a usage error of any version of typer
        return _Explained(USAGE, _sentence(error.format_message()), _usage_hint(error))
    return _Explained(
        DEFECT,
        f"internal error: {type(error).__name__}: {error}",
        "This is a defect of hccl-py; --debug shows where. Please report it.",
    )


def _sentence(message: str) -> str:
    lines = " ".join(message.split())
    return lines if lines.endswith((".", "?", "!")) else f"{lines}."


def _usage_hint(error: object) -> str:
    context = getattr(error, "ctx", None)
    command = getattr(context, "command_path", "hccl-py")
    return f"`{command} --help` lists what it takes."


def _show_traceback(error: Exception) -> None:
    import traceback

    traceback.print_exception(error)


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    say_warning(str(message))


def _flush_or_discard() -> None:
    """Write what is left; where that cannot be, the interpreter's own last flush must not fail."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
