"""Reader of the tables that hccl_test prints, among all other lines of a log.

    mpirun -n 8 ./bin/all_reduce_test -b 8K -e 64M -f 2 -d fp32 -o sum -p 8
    data_size(Bytes): | aveg_time(us): | alg_bandwidth(GB/s): | check_result:
    8192 | 72.31 | 0.11329 | success

A table is a header and the rows below it, with any other lines in between, until the next header.
Both may have something in front, such as MPI's `[1,0]<stdout>:` or a time of day, and any other
columns. The last command line above a table, where there is one, says what was called.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

from hccl_py.errors import FileError

T = TypeVar("T")

OPS = {
    "all_gather": "all_gather",
    "all_reduce": "all_reduce",
    "alltoall": "all_to_all",
    "broadcast": "broadcast",
    "reduce_scatter": "reduce_scatter",
    "reduce": "reduce",
    "scatter": "scatter",
}
"""The ops of hccl_test's programs whose calls a size says in full; the others have amounts."""

WITH_AMOUNTS = ("all_gather_v", "alltoallv", "alltoallvc", "reduce_scatter_v")

LEAST_US, MOST_US = 1e-3, 1e12
"""What a call can take: from a nanosecond to eleven days."""

_HEADER = re.compile(r"data_size\(bytes\)\S*[|\s].*time\(us\)", re.IGNORECASE)
_PROGRAM = re.compile(rf"(?:^|[\s/])({'|'.join((*OPS, *WITH_AMOUNTS))})_test(?=\s|$)")
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?|[-+]?(nan|inf)", re.IGNORECASE)
WHOLE = re.compile("[0-9]{1,19}")
"""A whole number, as tests print it."""


@dataclass(frozen=True)
class LogRow:
    """One size: the average time in µs; `why_not` says why it cannot count, if so."""

    line: int
    bytes: int
    time_us: float
    why_not: str = ""


@dataclass(frozen=True)
class Command:
    """The calls as a command line states them; None for a value that it leaves open."""

    program: str
    ranks: int | None = None
    devices: int | None = None
    dtype: str | None = None
    reduce_op: str | None = None
    root: int | None = None


@dataclass(frozen=True)
class LogTable:
    """A table of a log; `where` is the file and the header's line."""

    where: str
    command: Command | None
    rows: tuple[LogRow, ...]


class HcclTestReader:
    """Goes down the lines: the last command, and the tables so far."""

    def __init__(self, name: str) -> None:
        self._tables: list[tuple[int, Command | None, list[LogRow]]] = []
        self._name = name
        self._command: Command | None = None
        self._columns: list[str] = []

    @property
    def tables(self) -> list[tuple[int, LogTable]]:
        """The tables, each with its header's line."""
        return [
            (line, LogTable(f"{self._name}:{line}", command, tuple(rows)))
            for line, command, rows in self._tables
        ]

    def read(self, number: int, line: str) -> None:
        """Take a line."""
        if header := _HEADER.search(line):
            self._columns = _cells(line[header.start() :].lower())
            self._tables.append((number, self._command, []))
        elif program := _PROGRAM.search(line):
            before, after = line[: program.start(1)].split(), line[program.end() :].split()
            self._command = _command(program[1], before, after)
        elif self._tables and (row := self._row(number, line)):
            self._tables[-1][2].append(row)

    def _row(self, number: int, line: str) -> LogRow | None:
        """Return the row that the last cells of a line make, if they do."""
        cells = dict(zip(self._columns, _cells(line)[-len(self._columns) :], strict=False))
        size, time = _of(cells, "data_size"), _of(cells, "time(us)")
        if len(cells) < len(self._columns) or not WHOLE.fullmatch(size):
            return None
        if not NUMBER.fullmatch(time):
            return None
        time_us = checked_time(f"{self._name}:{number}", size, time)
        why_not = "the check failed" if _of(cells, "check").lower().startswith("fail") else ""
        why_not = why_not if int(size) else "there is no data"
        return LogRow(number, int(size), time_us, why_not)


def checked_time(where: str, size: str, time: str) -> float:
    """Return a time in µs; FileError for one that no call takes."""
    time_us = float(time) if NUMBER.fullmatch(time) else 0.0
    if not LEAST_US <= time_us <= MOST_US:
        raise FileError(
            f"{where}: the time of {size} bytes is {time} us.",
            "Take the row out: a call takes time.",
        )
    return time_us


def _cells(line: str) -> list[str]:
    return [cell for cell in re.split(r"[|\s]+", line) if cell]


def _of(cells: Mapping[str, str], column: str) -> str:
    """Return the cell of the first column that has this in its name."""
    return next((cell for name, cell in cells.items() if column in name), "")


def _command(program: str, before: list[str], after: list[str]) -> Command:
    """Read the words before hccl_test's program, which are mpirun's, and behind it."""
    return Command(
        program,
        ranks=of_words(before, int, "-n", "-np", "--np"),
        devices=of_words(after, int, "-p", "--npus"),
        dtype=_dtype(of_words(after, str, "-d", "--datatype")),
        reduce_op=of_words(after, str, "-o", "--op"),
        root=of_words(after, int, "-r", "--root"),
    )


def _dtype(word: str | None) -> str | None:
    """Return a type's name here: hccl_test calls one of them bfp16."""
    return {"bfp16": "bf16"}.get(word or "", word)


def of_words(words: list[str], kind: Callable[[str], T], *names: str) -> T | None:
    """Return the value of the last such option; None where there is none that can be read."""
    found = None
    for word, following in pairwise([*words, ""]):
        name, equals, value = word.partition("=")
        if name in names:
            try:
                found = kind(value if equals else following)
            except ValueError:
                continue
    return found
