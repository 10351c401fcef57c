"""Reads of undefined or overwritten memory, and data that no task reads."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from hccl_py.values import IntArray
from hccl_py.verifier.analysis.contents import Contents
from hccl_py.verifier.analysis.moves import memory_at
from hccl_py.verifier.checks.culprits import findings_at
from hccl_py.verifier.finding import Finding, MemoryRange
from hccl_py.verifier.subject import Subject


def find_undefined(subject: Subject, contents: Contents, racing: IntArray) -> Iterator[Finding]:
    """Yield READ_UNDEFINED and REDUCE_INTO_UNDEFINED; rows that race have findings already."""
    for name, notes, side in (
        ("READ_UNDEFINED", contents.undefined, 0),
        ("REDUCE_INTO_UNDEFINED", contents.into_undefined, 1),
    ):
        noted = _NotedRanges(subject, contents, notes, side, racing)
        yield from findings_at(subject, noted.rows, partial(_undefined, subject, name, noted))


def find_clobbers(subject: Subject, contents: Contents) -> Iterator[Finding]:
    """Yield INPLACE_CLOBBER for reads of an input that the op itself has overwritten."""
    notes = _NotedRanges(subject, contents, contents.clobbered, 0)

    def make(row: int) -> Finding:
        span = notes.span(row)
        return subject.finding(
            "INPLACE_CLOBBER",
            f"In place, {subject.place(row)} reads {subject.words(span)} after the op has "
            "overwritten it with its output: IN and OUT are the same memory.",
            "Stage the input in CCL memory before the first write to OUT, or refuse calls in "
            "place.",
            rows=[(row, 0)],
            memory=[span],
        )

    yield from findings_at(subject, notes.rows, make)


def find_dead(subject: Subject, contents: Contents, racing: IntArray) -> Iterator[Finding]:
    """Yield DEAD_TRANSFER for tasks whose data is never read and not output; not for rows that
    race, where that depends on timing.
    """
    transfers = contents.memory.transfers
    dead = ~contents.is_used & ~transfers.garbage & ~np.isin(transfers.row, racing)

    def make(row: int) -> Finding:
        return subject.finding(
            "DEAD_TRANSFER",
            f"{subject.place(row)} moves {int(subject.tasks.size[row])} bytes that no task reads: "
            "they are overwritten, or left behind.",
            "Leave the task out.",
            rows=[(row, 0)],
        )

    yield from findings_at(subject, transfers.row[dead], make, shown=2)


class _NotedRanges:
    """Notes (move, start, stop) about one side of moves, by task row; `rows` are those with any."""

    def __init__(
        self,
        subject: Subject,
        contents: Contents,
        notes: IntArray,
        side: int,
        excused: IntArray | None = None,
    ) -> None:
        rows = contents.memory.transfers.row[notes[:, 0]]
        kept = np.ones(len(rows), bool) if excused is None else ~np.isin(rows, excused)
        order = np.lexsort((notes[kept, 1], rows[kept]))
        self._subject, self._memory, self._side = subject, contents.memory, side
        self._row, self._range = rows[kept][order], notes[kept, 1:][order]
        self.rows = np.unique(self._row)

    def span(self, row: int) -> MemoryRange:
        """Return the first range of neighbouring bytes of a row, in its buffer."""
        low, high = np.searchsorted(self._row, [row, row + 1])
        start, stop = self._range[low:high].T
        gaps = np.flatnonzero(start[1:] > stop[:-1])
        last = stop[gaps[0]] if len(gaps) else stop[-1]
        whole = memory_at(self._subject, row)[self._side]
        buffer = self._memory.program.buffers.index(whole.buffer)
        return self._memory.range_of(whole.rank, buffer, int(start[0]), int(last))


def _undefined(subject: Subject, name: str, notes: _NotedRanges, row: int) -> Finding:
    verb, span = "reads" if name == "READ_UNDEFINED" else "reduces into", notes.span(row)
    return subject.finding(
        name,
        f"{subject.place(row)} {verb} {subject.words(span)}, which no task has written before.",
        "Write it first (stage the input, clear scratch), or order this task after the one that "
        "writes it.",
        rows=[(row, 0)],
        memory=[span],
    )
