"""Findings from rows of wrong tasks: a few at each of the author's lines, the rest counted.

The cut is made on columns, before a finding exists: a program can be wrong a million times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from hccl_py.values import IntArray
from hccl_py.verifier.finding import Finding
from hccl_py.verifier.subject import SHOWN, Subject

LINES = 64
"""Lines that findings of one class are shown at; machine-made files may have one per task."""


def findings_at(
    subject: Subject, rows: IntArray, make: Callable[[int], Finding], shown: int = SHOWN
) -> Iterator[Finding]:
    """Yield a finding for the first few rows at every line; the last of a line counts the others.

    Rows are those of tasks, in their order.
    """
    for row, others in _picked(subject, rows, shown):
        finding = make(row)
        yield finding.followed_by(len(others), _later(make, others)) if len(others) else finding


def _later(make: Callable[[int], Finding], rows: IntArray) -> Callable[[], Iterator[Finding]]:
    return lambda: map(make, rows.tolist())


def first_of_each(rows: IntArray, key: IntArray) -> IntArray:
    """Return the first row of every key, in the order of rows."""
    _, first = np.unique(key, return_index=True)
    return rows[np.sort(first)]


def _picked(subject: Subject, rows: IntArray, shown: int) -> list[tuple[int, IntArray]]:
    """Return (row, the others that it counts), in the order of rows."""
    if not len(rows):
        return []
    tasks = subject.tasks
    line = tasks.table.line[tasks.instruction[rows]]
    order = np.argsort(line, kind="stable")
    _, first = np.unique(line[order], return_index=True)
    picked: list[tuple[int, IntArray]] = []
    for alike in np.split(rows[order], first[1 : LINES + 1])[:LINES]:
        picked += [(row, alike[:0]) for row in alike[: shown - 1].tolist()]
        picked += [(row, alike[shown:]) for row in alike[shown - 1 : shown].tolist()]
    if len(first) > LINES:
        row, others = picked[-1]
        picked[-1] = row, np.concatenate([others, rows[order[first[LINES] :]]])
    return sorted(picked, key=lambda pair: pair[0])
