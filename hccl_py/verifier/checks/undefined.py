"""Reads of memory that holds nothing, or no longer what it should, and data that nobody reads."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hccl_py.values import IntArray
from hccl_py.verifier.analysis.contents import Contents
from hccl_py.verifier.analysis.memory import MemoryIntervals
from hccl_py.verifier.analysis.moves import memory_at
from hccl_py.verifier.checks.culprits import findings_at
from hccl_py.verifier.finding import Finding, MemoryRange
from hccl_py.verifier.subject import Subject


def find_undefined(
    subject: Subject, memory: MemoryIntervals, contents: Contents, racing: IntArray
) -> Iterator[Finding]:
    """Yield READ_UNDEFINED and REDUCE_INTO_UNDEFINED; rows that race have findings already."""
    read = _Notes(subject, memory, contents.undefined, 0, racing)
    yield from findings_at(
        subject, read.rows, lambda row: _undefined(subject, "READ_UNDEFINED", row, read.span(row))
    )
    into = _Notes(subject, memory, contents.into_undefined, 1, racing)
    yield from findings_at(
        subject,
        into.rows,
        lambda row: _undefined(subject, "REDUCE_INTO_UNDEFINED", row, into.span(row)),
    )


def find_clobbers(
    subject: Subject, memory: MemoryIntervals, contents: Contents
) -> Iterator[Finding]:
    """Yield INPLACE_CLOBBER for reads of an input that the op itself has overwritten."""
    notes = _Notes(subject, memory, contents.clobbered, 0)

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


def find_dead(
    subject: Subject, memory: MemoryIntervals, contents: Contents, racing: IntArray
) -> Iterator[Finding]:
    """Yield DEAD_TRANSFER: tasks of whose data nothing is read, and nothing is output; whether that
    of rows that race is depends on timing.
    """
    dead = ~contents.is_used & ~memory.transfers.garbage
    dead &= ~np.isin(memory.transfers.row, racing)

    def make(row: int) -> Finding:
        return subject.finding(
            "DEAD_TRANSFER",
            f"{subject.place(row)} moves {int(subject.tasks.size[row])} bytes that nobody reads: "
            "they are overwritten, or left behind.",
            "Leave the task out.",
            rows=[(row, 0)],
        )

    yield from findings_at(subject, memory.transfers.row[dead], make, shown=2)


class _Notes:
    """Notes about (move, start, stop), by task row: which rows have any, and the first range of
    each.
    """

    def __init__(
        self,
        subject: Subject,
        memory: MemoryIntervals,
        notes: IntArray,
        side: int,
        excused: IntArray | None = None,
    ) -> None:
        rows = memory.transfers.row[notes[:, 0]]
        kept = np.ones(len(rows), bool) if excused is None else ~np.isin(rows, excused)
        order = np.lexsort((notes[kept, 1], rows[kept]))
        self._subject, self._memory, self._side = subject, memory, side
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


def _undefined(subject: Subject, name: str, row: int, span: MemoryRange) -> Finding:
    verb = "reads" if name == "READ_UNDEFINED" else "reduces into"
    return subject.finding(
        name,
        f"{subject.place(row)} {verb} {subject.words(span)}, which nobody has written before.",
        "Write it first (stage the input, clear scratch), or order this task after the one that "
        "writes it.",
        rows=[(row, 0)],
        memory=[span],
    )
