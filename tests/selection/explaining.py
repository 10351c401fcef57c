"""`hccl-py explain --json` for one row of a decision table.

Rows are about what HCCL takes, so an executor that takes every call runs, whatever is offered.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from hccl_py.cli import main
from hccl_py.operators import OPERATORS

K, M = 1 << 10, 1 << 20

PRESETS = {
    "910A": "atlas-800-9000",
    "A2": "atlas-800t-a2",
    "A3": "atlas-900-a3",
    "Duo": "300i-duo",
    "ring": "ring",
}

WHOLE = ("all_reduce", "broadcast", "reduce", "send_recv", "batch_send_recv")
"""Ops whose data size on the command line is the count's; the others' is that of all ranks."""

ANYTHING = f"""
from hccl_py.plugins.executor import ResourceRequest


class Anything:
    op = {tuple(OPERATORS)!r}
    algorithm = "level0:NA"

    def suits(self, op, topology):
        return True

    def resources(self, op, rank):
        return ResourceRequest()

    def orchestrate(self, op, rank):
        pass
"""


@dataclass(frozen=True)
class Row:
    """A call and what HCCL takes.

    `where` is a product and its servers x devices, or superpods x servers x devices, or ranks
    alone; `size` in bytes of the count; `options` go to the command line, upper-case names to the
    environment.
    """

    where: str
    op: str
    size: int
    executor: str | None
    level1: str = ""
    options: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        options = " ".join(f"{name}={value}" for name, value in self.options)
        return f"{self.op} {self.where} {self.size} {options}".strip()


def row(
    where: str, op: str, size: int, executor: str | None, level1: str = "", **options: str
) -> Row:
    """Return a row."""
    return Row(where, op, size, executor, level1, tuple(options.items()))


def explain(
    row: Row, folder: Path, monkeypatch: pytest.MonkeyPatch, ruleset: str = "cann-2025.07"
) -> Any:
    """Return the document of a row's call."""
    monkeypatch.setenv("HCCL_PY_RULESET", ruleset)
    (folder / "anything.py").write_text(ANYTHING, "utf-8")
    monkeypatch.chdir(folder)
    arguments = ["explain", row.op, "--json", "--executor", "anything:Anything"]
    product, _, sizes = row.where.partition(" ")
    arguments += ["--topology", PRESETS[product], *_shape(sizes)]
    if row.op != "barrier":
        arguments += ["-b", str(row.size if row.op in WHOLE else row.size * _ranks(sizes))]
    for name, value in row.options:
        if name.isupper():
            monkeypatch.setenv(name, value)
        else:
            arguments += [f"--{name.replace('_', '-')}", value]
    if OPERATORS[row.op].facts.rooted and "root" not in dict(row.options):
        arguments += ["--root", "0"]
    with _stdout() as output:
        assert main(arguments) == 0, arguments
    return json.loads(output.getvalue())


def _numbers(sizes: str) -> list[int]:
    return [int(number) for number in sizes.split("x")]


def _ranks(sizes: str) -> int:
    ranks = 1
    for number in _numbers(sizes):
        ranks *= number
    return ranks


def _shape(sizes: str) -> list[str]:
    """Return the options for `SxD`, `PxSxD` or `N`."""
    numbers = _numbers(sizes)
    if len(numbers) == 1:
        return ["--ranks", str(numbers[0])]
    names = ("--superpods", "--servers", "--devices")[-len(numbers) :]
    return [word for name, n in zip(names, numbers, strict=True) for word in (name, str(n))]


@contextmanager
def _stdout() -> Iterator[StringIO]:
    output = StringIO()
    with redirect_stdout(output):
        yield output
