"""Deleting synchronisation, to see whether it is missed.

Recorded once, every author's line that posts or waits is a candidate. Mutants of a program:

    line    all posts and waits of one line are gone
    pair    the posts of one line are gone, and the waits of another that consumed them, one notify
            (Ack, DataSignal, DataAck, ...) at a time: every post that is left has its wait, only
            the order is lost
    all     all synchronisation between ranks is gone

A program that stays right without some synchronisation does not need it, or no check looks at it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hccl_py.enums import TaskKind
from hccl_py.program.edit import without
from hccl_py.program.program import Program
from hccl_py.program.transports import NOTIFY_NAMES
from hccl_py.values import IntArray

_LOCAL_MAIN, _LOCAL_SUB = 1 << 20, 1 << 20 | 1
"""Numbers for the notifies between a rank's streams, beyond those of any transport."""


@dataclass(frozen=True, eq=False)
class Mutant:
    """Synchronisation to delete: a name in words, the author's lines, and the task rows.

    The words are unique, and the same in all programs of an executor.
    """

    words: str
    lines: tuple[str, ...]
    rows: IntArray

    def of(self, program: Program) -> Program:
        """Return the program without these tasks."""
        keep = np.ones(len(program.tasks), np.bool_)
        keep[self.rows] = False
        return without(program, keep)


def sync_mutants(program: Program) -> Iterator[Mutant]:
    """Yield every mutant of a program; of several that delete the same tasks, the first."""
    seen: set[bytes] = set()
    for mutant in (*_pairs(program), *_all(program), *_lines(program)):
        name = mutant.rows.tobytes()
        if len(mutant.rows) and name not in seen:
            seen.add(name)
            yield mutant


def _pairs(program: Program) -> Iterator[Mutant]:
    """Group waits and the posts that they consumed by notify and lines."""
    waits = np.flatnonzero(program.linked.post_of >= 0)
    posts = program.linked.post_of[waits]
    line = _line_of(program)
    keys = np.column_stack([line[posts], line[waits], _notifies(program, waits)])
    for key, pick in _groups(keys):
        post_line, wait_line, notify = key
        lines = tuple(dict.fromkeys(_format(program, at) for at in (post_line, wait_line)))
        where = f"posted at {lines[0]}, awaited at {lines[-1]}"
        if len(lines) == 1:
            where = f"posted and awaited at {lines[0]}"
        rows = np.sort(np.concatenate([posts[pick], waits[pick]]))
        yield Mutant(f"{_format_notify(notify)} {where}", lines, rows)


def _lines(program: Program) -> Iterator[Mutant]:
    rows = _sync_rows(program)
    for (number,), pick in _groups(_line_of(program)[rows][:, None]):
        line = _format(program, number)
        yield Mutant(words_of_line(line), (line,), rows[pick])


def words_of_line(line: str) -> str:
    """Return the words for the mutant of a whole line."""
    return f"every post and wait of {line}"


def _all(program: Program) -> Iterator[Mutant]:
    rows = _sync_rows(program)
    rows = rows[program.tasks.cell[rows] < program.transports.cells]
    lines = np.unique(_line_of(program)[rows]).tolist()
    names = tuple(_format(program, number) for number in lines)
    yield Mutant("all synchronisation between ranks", names, rows)


def _sync_rows(program: Program) -> IntArray:
    kinds = (TaskKind.NOTIFY_POST, TaskKind.NOTIFY_WAIT)
    rows: IntArray = np.flatnonzero(np.isin(program.tasks.kind, kinds))
    return rows


def _line_of(program: Program) -> npt.NDArray[np.int32]:
    line: npt.NDArray[np.int32] = program.tasks.table.line[program.tasks.instruction]
    return line


def _notifies(program: Program, rows: IntArray) -> IntArray:
    """Number the notify of every row: its index on the transport, or a number for its owner."""
    transports, slots = program.transports, program.local_notifies.slots
    cell = program.tasks.cell[rows]
    owner = np.array([_LOCAL_SUB if stream else _LOCAL_MAIN for stream, _ in slots] or [0])
    local = owner[(cell - transports.cells) % len(owner)]
    numbers: IntArray = np.where(cell < transports.cells, cell % transports.stride, local)
    return numbers


def _groups(keys: npt.NDArray[np.integer]) -> Iterator[tuple[tuple[int, ...], IntArray]]:
    """Yield every distinct row of `keys`, with the places where it stands."""
    unique, group = np.unique(keys, axis=0, return_inverse=True)
    for number, key in enumerate(unique.tolist()):
        yield tuple(key), np.flatnonzero(group.reshape(-1) == number)


def _format(program: Program, line: int) -> str:
    return program.lines[line] if line >= 0 else "a task without a line"


def _format_notify(number: int) -> str:
    if number < len(NOTIFY_NAMES):
        return NOTIFY_NAMES[number]
    if number >= _LOCAL_MAIN:
        return "notify of a sub stream" if number == _LOCAL_SUB else "notify of main"
    return f"extra notify {number - len(NOTIFY_NAMES)} of the transport"
