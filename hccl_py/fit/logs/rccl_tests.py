"""Reads the files that rccl-tests writes with `-x FILE`, as CSV (`-Z csv`) or JSON.

    numCycle,collective,ranks,rankspernode,gpusperrank,size,type,redop,inplace,time,algbw,busbw,#wrong
    0,"AllReduce",1,8,8,1,1048576,"float","sum",0,55.66,18.84,32.97,"0"

Built for MPI it has one cell more in its rows than in its header, `nodes` before `ranks`; later
versions have it in both, older ones no `numCycle`, and spaces behind the commas. JSON has an object
for each row, on a line of its own, in a list but for older versions: `name` is the collective,
`wrong` is `#wrong`. A row for out of place is followed by one for in place; the first counts, as in
what is printed.

What is called a node is a communicator: `rankspernode` are its processes, each with `gpusperrank`
devices, and `nodes` says how many communicators work at once. Which ranks share a machine stands
nowhere. `size` is what is printed as size; older versions write what a rank receives.
"""

from __future__ import annotations

import csv
import json
import re
from dataclasses import dataclass, field
from pathlib import Path

from hccl_py.fit.logs.hccl_test import WHOLE, Command, LogRow, LogTable, checked_time
from hccl_py.fit.logs.nccl_tests import DTYPES, NONE

_PROGRAMS = {
    "allgather": "all_gather",
    "allreduce": "all_reduce",
    "reducescatter": "reduce_scatter",
}
"""The names of nccl-tests' programs that are not those of the file in small letters."""

_RECEIVE_A_PART = ("reduce_scatter", "scatter")
"""Ops whose ranks receive a part of what the size says."""

_HEADER = re.compile(
    r"(numcycle\s*,\s*)?collective\s*,\s*(gpus|ranks|nodes)\s*,.*\btime\s*,\s*algbw\b"
)
_OBJECT = re.compile(r'\{".*"busBw"\s*:.*\},?$')
_NAMES = {"name": "collective", "wrong": "#wrong"}
_NUMBERS = ("gpus", "rankspernode", "gpusperrank", "size")
_LONGEST = 1000
"""Characters of the longest line that may be a row."""

_ALL = ("collective", "size", "type", "redop", "inplace", "time", "#wrong")


def is_rccl_file(path: str) -> bool:
    """Return True for a file that begins as such files do."""
    try:
        with Path(path).open("rb") as file:
            lines = [
                file.readline(_LONGEST).decode("utf-8-sig", "replace").strip() for _ in range(2)
            ]
    except OSError:
        return False
    first = lines[1] if lines[0] == "[" else lines[0]
    return bool(_HEADER.match(first.lower()) or _OBJECT.match(first))


@dataclass
class _CallRows:
    """Rows of one call, those out of place apart from those in place."""

    line: int
    command: Command
    rows: tuple[list[LogRow], list[LogRow]] = field(default_factory=lambda: ([], []))


class RcclFileReader:
    """Goes down the lines: the columns, and the tables so far."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._columns: list[str] = []
        self._tables: list[_CallRows] = []

    @property
    def tables(self) -> list[tuple[int, LogTable]]:
        """The tables, each with the line that it begins at."""
        return [
            (t.line, LogTable(f"{self._name}:{t.line}", t.command, tuple(t.rows[0] or t.rows[1])))
            for t in self._tables
        ]

    def read(self, number: int, line: str) -> None:
        """Take a line."""
        if len(line) > _LONGEST:
            return
        if _HEADER.match(line.strip().lower()):
            self._columns = [cell.strip() for cell in line.strip().lower().split(",")]
        elif _OBJECT.match(line.strip()):
            self._row(number, _of_json(line))
        elif self._columns and line.strip():
            (cells,) = csv.reader([line], skipinitialspace=True)
            self._row(number, self._of_csv([cell.strip() for cell in cells]))

    def _of_csv(self, cells: list[str]) -> dict[str, str]:
        """Return the cells of a row by their names; none for what is no row."""
        columns = self._columns
        if len(cells) == len(columns) + 1 and "ranks" in columns and "nodes" not in columns:
            at = columns.index("ranks")
            columns = [*columns[:at], "nodes", *columns[at:]]
        return dict(zip(columns, cells, strict=True)) if len(cells) == len(columns) else {}

    def _row(self, number: int, of: dict[str, str]) -> None:
        """Add a row, to another table where it is another call."""
        counts = [of[name] for name in _NUMBERS if name in of]
        if not all(name in of for name in _ALL) or not all(map(WHOLE.fullmatch, counts)):
            return
        command, is_old = _command(of), "numcycle" not in of
        if not self._tables or self._tables[-1].command != command:
            self._tables.append(_CallRows(number, command))
        parts = command.ranks if is_old and command.program in _RECEIVE_A_PART else 1
        size = int(of["size"]) * (parts or 1)
        time_us = checked_time(f"{self._name}:{number}", str(size), of["time"])
        why_not = "" if size else "there is no data"
        if of["#wrong"] not in ("0", "N/A"):
            why_not = "the check failed"
        in_place = of["inplace"] != "0"
        self._tables[-1].rows[in_place].append(LogRow(number, size, time_us, why_not))


def _of_json(line: str) -> dict[str, str]:
    """Return the values of an object by the names that CSV has for them; none for half a line."""
    try:
        found = json.loads(line.strip().removesuffix(","))
    except (ValueError, RecursionError):
        return {}
    return {_NAMES.get(name.lower(), name.lower()): str(value) for name, value in found.items()}


def _command(of: dict[str, str]) -> Command:
    """Return the call of a row."""
    name = of["collective"].lower()
    processes, devices = int(of.get("rankspernode", 1)), int(of.get("gpusperrank", 0))
    return Command(
        _PROGRAMS.get(name, name),
        ranks=int(of.get("gpus", processes * devices)),
        dtype=DTYPES.get(of["type"], of["type"]),
        reduce_op=None if of["redop"] in NONE else of["redop"],
    )
