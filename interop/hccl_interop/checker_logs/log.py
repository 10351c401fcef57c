"""A log as a whole: which tests are in it, where each prints its tasks, what HCCL's checker said.

    [ RUN      ] AllReduceTest.allreduce_four_ranks          a test of GoogleTest begins
    rank id is 0 ...                                          Checker::Check prints the tasks
    [...][ERROR][task_graph_generator.cc:98] ...              and says what it finds,
    Cost time: checkSem= 0.0047                               or that all its checks are passed
    [       OK ] AllReduceTest.allreduce_four_ranks (3 ms)

The checker of hccl prints what it finds alone: a test that is OK and finds nothing is passed.

A log is read line by line, twice: once to find the tests, then the lines of those that are wanted.
So its size does not matter, only that of a test.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import BinaryIO, NamedTuple

from hccl_interop.checker_logs.lines import (
    DIALECTS,
    Dialect,
    LineReader,
    LoggedTask,
    QueueStart,
    RankStart,
)
from hccl_py.documents.checks import defect
from hccl_py.documents.disk import PathLike, check_regular, format_path, refusal
from hccl_py.documents.kind import FileKind, named
from hccl_py.errors import FileError, ProgramFileError
from hccl_py.program.limits import MAX_NUMBER, MAX_RANKS

LOG = FileKind(
    noun="log of HCCL's checker",
    parts="tasks",
    error=ProgramFileError,
    larger="Cut the tests that you need out of it.",
    text="Save what the tests print, as it is.",
    suffixes=(".log",),
    mark=re.compile(rb"\[ RUN      \] |rank ?[iI]d is|\[==========\] Running"),
)

MAX_TASKS = 1 << 20
"""Tasks of one test."""

_LONGEST = 1 << 16
"""Bytes of a line; what is longer is no task."""

_SAID = 20
"""Messages of the checker that are kept of a test."""

_RUN = re.compile(rb"\[ RUN      \] (\S{1,400})")
_RESULT = re.compile(rb"\[ {1,7}(OK|FAILED|SKIPPED) {1,2}\] (\S{1,400}) \([0-9]+ ms\)")
_ERROR = re.compile(rb"\[ERROR\]\[[^\]]{0,200}\] ?(?:\[[0-9]+\])?(.*)")
_MARKS = (b"[ RUN      ] ", b"[==========] Running", *(dialect.first for dialect in DIALECTS))


class Said(NamedTuple):
    """An error that HCCL's checker printed, and its line."""

    line: int
    text: str


@dataclass
class LoggedTest:
    """A test, or one of several calls in it, whose tasks are printed: `begin` and `end` are bytes
    in the file, `line` is that of `begin`. `result` is GoogleTest's, "" where the log ends before.
    """

    name: str
    number: int
    dialect: Dialect
    begin: int
    line: int
    end: int = 0
    tasks: int = 0
    said: list[Said] = field(default_factory=list)
    errors: int = 0
    passed: bool = False
    result: str = ""

    @property
    def verdict(self) -> str:
        """The verdict of HCCL's checker in a word or two."""
        if self.errors:
            return "failed"
        silent = not self.dialect.says_passed and self.result == "OK"
        return "passed" if self.passed or silent else "says nothing"


@dataclass(frozen=True)
class CheckerLog:
    """The tests of a log that print tasks, and how many tests it has in all."""

    path: str
    name: str
    tests: tuple[LoggedTest, ...]
    tests_run: int

    def tasks(self, test: LoggedTest) -> list[list[_Queue]]:
        """Return the tasks of a test, [rank][queue][index]; FileError for a line that is broken."""
        return named(self.name, LOG, lambda: self._tasks(test))

    def _tasks(self, test: LoggedTest) -> list[list[_Queue]]:
        if test.tasks > MAX_TASKS:
            expected = f"at most {MAX_TASKS:,} tasks of a test"
            raise defect(f"line {test.line}", expected, f"{test.tasks:,}", "Take a smaller test.")
        found: list[list[_Queue]] = []
        with _opened(self.path) as file:
            file.seek(test.begin)
            reader, number, at = LineReader(test.dialect), test.line - 1, test.begin
            while at < test.end and (line := file.readline(_LONGEST)):
                number += 1
                _place(found, reader.read(line, number), number)
                at += len(line) + _skip_rest(file, line)
        _check_count(found, number + 1)
        return found


class _Queue(list[LoggedTask]):
    """The tasks of a queue; `stated` is how many it says that it has, -1 where it does not."""

    stated = -1


def _place(
    ranks: list[list[_Queue]], item: LoggedTask | RankStart | QueueStart | None, line: int
) -> None:
    """Put an item where it belongs: ranks, queues and tasks are all printed in order from 0."""
    if item is not None and not ranks and not isinstance(item, RankStart):
        raise defect(f"line {line}", "the first rank", "none yet", "Has the file changed?")
    if isinstance(item, RankStart):
        _check_count(ranks, line)
        _expect(line, "rank", item.rank, len(ranks))
        _check_room(line, "ranks", item.rank, MAX_RANKS)
        ranks.append([])
    elif isinstance(item, QueueStart):
        _check_count(ranks, line)
        _expect(line, "queue", item.queue, len(ranks[-1]))
        _check_room(line, "queues of a rank", item.queue, MAX_NUMBER)
        ranks[-1].append(_Queue())
        ranks[-1][-1].stated = item.tasks
    elif item is not None:
        _expect(line, "rank", item.rank, len(ranks) - 1)
        if not ranks[-1]:
            hint = "Each queue begins with a line of its own: is it missing?"
            raise defect(f"line {line}", f"a queue of rank {item.rank}", "a task", hint)
        _expect(line, "queue", item.queue, len(ranks[-1]) - 1)
        if item.position >= 0:
            _expect(line, "index", item.position, len(ranks[-1][-1]))
        ranks[-1][-1].append(item)


def _check_count(ranks: list[list[_Queue]], line: int) -> None:
    """Check, where the last queue ends, that it has as many tasks as it says."""
    last = ranks[-1][-1] if ranks and ranks[-1] else _Queue()
    if last.stated not in (-1, len(last)):
        hint = "All tasks of a queue are printed: are lines missing?"
        raise defect(
            f"line {line}", f"{last.stated} tasks in the queue before", str(len(last)), hint
        )


def _check_room(line: int, noun: str, number: int, most: int) -> None:
    if number >= most:
        raise defect(f"line {line}", f"at most {most:,} {noun}", "more", "Take a smaller test.")


def _expect(line: int, what: str, found: int, expected: int) -> None:
    if found != expected:
        hint = "All ranks, queues and tasks are printed in order: are lines missing?"
        raise defect(f"line {line}", f"{what} {expected}", f"{what} {found}", hint)


def is_log(path: PathLike) -> bool:
    """Return True if a file begins as a log does; it need not end in .log."""
    try:
        check_regular(path, "read")
        with open(path, "rb") as file:
            head = file.read(_LONGEST)
    except (OSError, ValueError, FileError):
        return False
    return any(mark in head for mark in _MARKS)


def read_log(path: PathLike) -> CheckerLog:
    """Return the tests of a log. ProgramFileError where it cannot be read, or no test prints tasks;
    lines that are broken are found where a test's tasks are asked for.
    """
    name = f"{format_path(path):.200}"
    return named(name, LOG, lambda: _log(os.fspath(path), name))


def _log(path: str, name: str) -> CheckerLog:
    reader = _LogReader()
    with _opened(path) as file:
        begin = 0
        while line := file.readline(_LONGEST):
            reader.read(line, begin)
            begin += len(line) + _skip_rest(file, line)
        reader.close(begin)
    if not reader.tests:
        found = f"{reader.run} tests without any" if reader.run else "none"
        hint = "HCCL's tests print them after `checker.EnableTaskPrint()`."
        raise defect("$", "tests that print their tasks", found, hint)
    return CheckerLog(path, name, tuple(reader.tests), reader.run)


@contextmanager
def _opened(path: str) -> Iterator[BinaryIO]:
    try:
        check_regular(path, "read")
        with open(path, "rb") as file:
            yield file
    except (OSError, ValueError) as error:
        raise refusal("read", error) from None


def _skip_rest(file: BinaryIO, line: bytes) -> int:
    """Pass over what is left of a line that is too long; return how much that is."""
    skipped = 0
    while len(line) == _LONGEST and not line.endswith(b"\n"):
        line = file.readline(_LONGEST)
        skipped += len(line)
    return skipped


class _LogReader:
    """Goes through a log; what is on its lines is read by `lines.py`, later."""

    def __init__(self) -> None:
        self.tests: list[LoggedTest] = []
        self.run = 0
        self._line = 0
        self._name = ""
        self._open: LoggedTest | None = None
        self._readers: tuple[tuple[bytes, Callable[[bytes, int], None]], ...] = (
            *((dialect.first, self._printed) for dialect in DIALECTS),
            (b"[ RUN ", self._begun),
            (b"[       OK", self._ended),
            (b"[  FAILED", self._ended),
            (b"[  SKIPPED", self._ended),
            (b"Cost time: checkSem", self._passed),
        )

    def read(self, line: bytes, begin: int) -> None:
        """Read the next line, which begins at this byte."""
        self._line += 1
        if self._open is not None and line.startswith(self._open.dialect.task[0]):
            self._open.tasks += 1
            return
        for mark, reads in self._readers:
            if line.startswith(mark):
                reads(line.rstrip(), begin)
                return
        if self._open is not None and b"[ERROR]" in line:
            self._erred(line)

    def close(self, end: int) -> None:
        """End the test that is open."""
        if self._open is not None:
            self._open.end = end
        self._open = None

    def _begun(self, line: bytes, begin: int) -> None:
        match = _RUN.fullmatch(line)
        if match is not None:
            self.close(begin)
            self.run += 1
            self._name = _text(match[1])

    def _ended(self, line: bytes, begin: int) -> None:
        match = _RESULT.fullmatch(line)
        if match is None:
            return
        if self._open is not None:
            self._open.result = match[1].decode("ascii")
        self.close(begin)
        self._name = ""

    def _printed(self, line: bytes, begin: int) -> None:
        dialect = next((dialect for dialect in DIALECTS if line == dialect.first), None)
        if dialect is None:
            return
        self.close(begin)
        self._open = LoggedTest(self._name, len(self.tests) + 1, dialect, begin, self._line)
        self.tests.append(self._open)

    def _passed(self, line: bytes, begin: int) -> None:
        if self._open is not None:
            self._open.passed = True

    def _erred(self, line: bytes) -> None:
        assert self._open is not None
        self._open.errors += 1
        match = _ERROR.search(line.rstrip())
        if match is not None and len(self._open.said) < _SAID:
            self._open.said.append(Said(self._line, _text(match[1])[:400]))


def _text(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace").strip()
