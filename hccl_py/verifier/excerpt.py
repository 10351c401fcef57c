"""The few tasks around culprits, stream by stream, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from hccl_py.program.describe import (
    format_action,
    format_line_of,
    format_number,
    format_place,
    format_stream,
)
from hccl_py.program.program import Program
from hccl_py.values import IntArray
from hccl_py.verifier.finding import Finding, TaskAt

MOST_CULPRITS = 8
"""Culprits of one finding that are shown; a cycle may have one on every rank."""

_REACH = {1: 2, 2: 2, 3: 1, 4: 1}
"""Tasks shown before and after each culprit, by how many culprits there are; else none."""


class TaskLine(NamedTuple):
    """A task of a stream: its place, its action, the author's line, and whether it is a culprit.

    `name` counts from 0 in every copy of the op, as messages do.
    """

    at: TaskAt
    name: str
    action: str
    source: str
    is_culprit: bool


class Excerpt(NamedTuple):
    """Tasks of one stream in order; where numbers jump, tasks are left out. `name` is the
    stream's.
    """

    rank: int
    stream: int
    name: str
    lines: tuple[TaskLine, ...]


def excerpts(program: Program, finding: Finding) -> Iterator[Excerpt]:
    """Yield the tasks around a finding's culprits, the first culprit's stream first.

    Every copy of the op repeats the program's queues, so that task k of a stream of n tasks is
    task k mod n of copy k div n.
    """
    reach = _REACH.get(len(finding.tasks), 0)
    streams: dict[tuple[int, int], list[TaskAt]] = {}
    for task in finding.tasks[:MOST_CULPRITS]:
        streams.setdefault((task.rank, task.stream), []).append(task)
    for (rank, stream), culprits in streams.items():
        rows = _queue(program, rank, stream)
        if len(rows):
            name = format_stream(stream, program.stream_names)
            yield Excerpt(
                rank, stream, name, _around(program, rows, culprits, reach, finding.repeat)
            )


def format_at(program: Program, task: TaskAt) -> str:
    """Return `rank r main task k of op 2`."""
    rows = _queue(program, task.rank, task.stream)
    copy, position = divmod(task.index, len(rows))
    return format_place(program, int(rows[position]), copy)


def _queue(program: Program, rank: int, stream: int) -> IntArray:
    tasks = program.tasks
    first, stop = tasks.first[rank : rank + 2].tolist()
    mine = tasks.table.stream[tasks.instruction[first:stop]] == stream
    rows: IntArray = np.flatnonzero(mine) + first
    return rows


def _around(
    program: Program, rows: IntArray, culprits: Sequence[TaskAt], reach: int, copies: int
) -> tuple[TaskLine, ...]:
    marked = {task.index for task in culprits}
    last = len(rows) * copies - 1
    numbers = {
        near
        for index in marked
        for near in range(max(index - reach, 0), max(min(index + reach, last), index) + 1)
    }
    return tuple(_line(program, rows, culprits[0], k, k in marked) for k in sorted(numbers))


def _line(program: Program, rows: IntArray, on: TaskAt, index: int, is_culprit: bool) -> TaskLine:
    copy, position = divmod(index, len(rows))
    row = int(rows[position])
    return TaskLine(
        at=TaskAt(on.rank, on.stream, index),
        name=format_number(position, copy),
        action=format_action(program, row),
        source=format_line_of(program, row),
        is_culprit=is_culprit,
    )
