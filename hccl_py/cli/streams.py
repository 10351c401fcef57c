"""The streams of a command: results alone on stdout, and nothing raw that a terminal obeys.

Names and messages from files and plugins reach stdout and stderr as `printable` text only. What
else would write to stdout (a plugin's `print`, a library in C, a child process) goes to stderr.
"""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from contextvars import ContextVar
from io import TextIOWrapper
from typing import TextIO, cast

from hccl_py.language import language_of, speak, translated
from hccl_py.printable import printable

_RESULTS: ContextVar[TextIO | None] = ContextVar("results", default=None)


class _Printable:
    """A text stream that writes characters which are not printable as escapes."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.encoding, self.errors = stream.encoding, stream.errors
        self.flush, self.isatty, self.fileno = stream.flush, stream.isatty, stream.fileno
        self.has_written = False

    def write(self, text: str) -> int:
        self.has_written = True
        self.stream.write(printable(text))
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        for line in lines:
            self.write(line)


def results() -> TextIO:
    """Return the stream for a command's results."""
    return _RESULTS.get() or sys.stdout


def raw(stream: TextIO) -> TextIO:
    """Return the stream below, for text whose escapes are our own and whose data are printable."""
    return getattr(stream, "stream", stream)


def say(text: str = "", *, flush: bool = False) -> None:
    """Write a line of a command's results, in the language that is spoken."""
    print(translated(text), file=results(), flush=flush)


@contextmanager
def aside() -> Iterator[None]:
    """Send what is printed meanwhile to stderr; only `results` leads to stdout."""
    token = _RESULTS.set(sys.stdout)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        _RESULTS.reset(token)


_PLAIN = {"–": "-", "±": "+/-", "×": "x", "µ": "u", "α": "alpha", "…": "..."}
"""Plain characters for those that a terminal without Unicode cannot show; others become ?."""

_PLAIN_ERRORS = "hccl_py.plain"


def _in_plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    return "".join(_PLAIN.get(letter, "?") for letter in text), error.end


codecs.register_error(_PLAIN_ERRORS, _in_plain)


_LETTERS = {"en": "a", "zh": "中"}


def speak_as_asked() -> None:
    """Speak the language that the environment asks for, where both streams can show it."""
    language = language_of(os.environ)
    try:
        for stream in (sys.stdout, sys.stderr):
            _LETTERS[language].encode(stream.encoding or "ascii")
    except UnicodeEncodeError:
        return
    speak(language)


@contextmanager
def own_streams(*, for_good: bool) -> Iterator[None]:
    """Give the process such streams; `for_good` where it ends behind this.

    Later output, at exit, goes to stderr.
    """
    before = sys.stdout, sys.stderr
    if sys.stdout is None:  # closed by the parent process
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=_PLAIN_ERRORS)
    own = _own(sys.stdout)
    sys.stdout = cast(TextIO, _Printable(own))
    sys.stderr = cast(TextIO, _Printable(sys.stderr))
    try:
        yield
    finally:
        if for_good:
            sys.stdout = sys.stderr
        else:
            sys.stdout, sys.stderr = before
            if own is not before[0]:
                os.dup2(own.fileno(), 1)
                own.close()


def _own(stdout: TextIO) -> TextIO:
    """Return a stream to the file of stdout alone: descriptor 1 leads to stderr from now on."""
    try:
        if stdout.fileno() != 1 or not isinstance(stdout, TextIOWrapper):
            return stdout
        stdout.flush()
        own = os.dup(1)
        os.dup2(2, 1)
    except (OSError, ValueError):  # a stream in memory; no stderr to lead to
        return stdout
    return TextIOWrapper(
        open(own, "wb"),
        encoding=stdout.encoding,
        errors=stdout.errors,
        line_buffering=stdout.line_buffering,
        write_through=stdout.write_through,
    )
