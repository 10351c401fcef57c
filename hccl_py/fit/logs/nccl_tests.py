"""Reads what nccl-tests and rccl-tests print, which is the same.

    # Collective test starting: all_reduce_perf
    #  Rank  0 Group  0 Pid   7102 on      node0 device  0 [0x07] NVIDIA A100
    #       size         count      type   redop    root     time   algbw   busbw #wrong ...
    #        (B)    (elements)                               (us)  (GB/s)  (GB/s)        ...
         1048576        262144     float     sum      -1    45.10   23.25   40.69      0 ...

The first `time` is that out of place, which counts. Types and reductions stand in the rows: where
they change, another table begins.
"""

from __future__ import annotations

import re
from collections import Counter

from hccl_py.fit.logs.hccl_test import WHOLE, Command, LogRow, LogTable, checked_time, of_words

OPS = {
    "all_gather": "all_gather",
    "all_reduce": "all_reduce",
    "alltoall": "alltoall",
    "broadcast": "broadcast",
    "gather": "gather",
    "reduce": "reduce",
    "reduce_scatter": "reduce_scatter",
    "scatter": "scatter",
    "sendrecv": "sendrecv",
}
"""Their programs, by the names of hccl_test's, as far as there are such."""

DTYPES = {
    "float": "fp32",
    "half": "fp16",
    "bfloat16": "bf16",
    "double": "fp64",
    "f8e4m3": "fp8e4m3",
    "f8e5m2": "fp8e5m2",
    "fp8_e4m3": "fp8e4m3",
    "fp8_e5m2": "fp8e5m2",
}
"""The types that have other names here."""

_HEADER = re.compile(r"#\s+size\s+count\s+type\s+.*\btime\s+algbw\b")
_PROGRAM = re.compile(rf"(?:^|[\s/])({'|'.join(OPS)})_perf(?:_mpi)?(?=\s|$)")
_RANK = re.compile(r"#\s+Rank\s+([0-9]{1,9})\s.*\bPid\s+\d+\s+on\s+(\S+)\s+device\s+\d+")
NONE = ("none", "-1")


class NcclTestsReader:
    """Goes down the lines: the program, the ranks and the tables so far."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._tables: list[tuple[int, Command, list[LogRow]]] = []
        self._program = ""
        self._hosts: dict[int, str] = {}
        self._columns: list[str] = []
        self._mpi: int | None = None

    @property
    def tables(self) -> list[tuple[int, LogTable]]:
        """The tables that have rows, each with the line that it begins at."""
        return [
            (line, LogTable(f"{self._name}:{line}", command, tuple(rows)))
            for line, command, rows in self._tables
            if rows
        ]

    def read(self, number: int, line: str) -> None:
        """Take a line."""
        if header := _HEADER.search(line):
            self._columns = line[header.start() :].lstrip("# ").split()
            self._tables.append((number, Command(""), []))
        elif rank := _RANK.search(line):
            self._hosts = {} if rank[1] == "0" else self._hosts
            self._hosts[int(rank[1])] = rank[2]
        elif program := _PROGRAM.search(line):
            self._program, self._hosts = program[1], {}
            words = line[: program.start(1)].split()
            self._mpi = of_words(words, int, "-n", "-np", "--np") or self._mpi
        elif self._columns and not line.lstrip().startswith("#"):
            self._row(number, line.split())

    def _row(self, number: int, cells: list[str]) -> None:
        """Add a row, to another table where type, reduction or root is another one."""
        if len(cells) != len(self._columns) or not WHOLE.fullmatch(cells[0]):
            return
        of = dict(zip(reversed(self._columns), reversed(cells), strict=True))  # the first ones win
        command = self._command(of)
        first, known, rows = self._tables[-1]
        if rows and known != command:
            self._tables.append((number, command, rows := []))
        else:
            self._tables[-1] = (first, command, rows)
        time_us = checked_time(f"{self._name}:{number}", cells[0], of["time"])
        wrong = of.get("#wrong", of.get("error", "0"))
        why_not = "" if int(cells[0]) else "there is no data"
        if wrong not in ("0", "N/A", "0e+00"):
            why_not = "the check failed"
        rows.append(LogRow(number, int(cells[0]), time_us, why_not))

    def _command(self, of: dict[str, str]) -> Command:
        devices = set(Counter(self._hosts.values()).values())
        root, reduce_op = of.get("root", "-1"), of.get("redop", "none")
        return Command(
            OPS.get(self._program, ""),
            ranks=len(self._hosts) or self._mpi,
            devices=devices.pop() if len(devices) == 1 else None,
            dtype=DTYPES.get(of["type"], of["type"]),
            reduce_op=None if reduce_op in NONE else reduce_op,
            root=int(root) if WHOLE.fullmatch(root) else None,
        )
