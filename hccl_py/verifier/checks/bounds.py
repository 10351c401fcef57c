"""Memory that a task may not touch: beyond its buffer, or of a peer that does not export it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from hccl_py.program.describe import BUFFER_WORDS
from hccl_py.verifier.analysis.moves import Mask, MoveColumns, memory_at, rows_where
from hccl_py.verifier.checks.culprits import findings_at
from hccl_py.verifier.finding import Finding, MemoryRange
from hccl_py.verifier.subject import Subject

_LARGER = {
    "IN": "the op's count sets its size",
    "OUT": "the op's count sets its size",
    "CCL_IN": "let a round take less: ResourceRequest(max_count=...)",
    "CCL_OUT": "let a round take less: ResourceRequest(max_count=...)",
    "SCRATCH": "ask for more: ResourceRequest(scratch_bytes=...)",
}


def find_bounds(subject: Subject) -> Iterator[Finding]:
    """Yield OUT_OF_BOUNDS and REMOTE_NOT_EXPORTED."""
    for side in (0, 1):
        rows = rows_where(subject, partial(_are_beyond, side))
        yield from findings_at(subject, rows, partial(_outside, subject, side))
    rows = rows_where(subject, _hidden(subject))
    yield from findings_at(subject, rows, partial(_unexported, subject))


def _are_beyond(side: int, moves: MoveColumns) -> Mask:
    owner, buffer, start, size = moves.dst if side else moves.src
    sizes = moves.subject.program.buffer_sizes
    outside = (start < 0) | (start > sizes[owner, buffer] - size)
    return (size < 0) | ((size > 0) & outside)


def _hidden(subject: Subject) -> Callable[[MoveColumns], Mask]:
    """Pick tasks whose remote side lies in a buffer that the far end does not export.

    A transport that neither end requested and that exports nothing is not there at all, which is
    found elsewhere.
    """
    transports = subject.program.transports
    is_absent = (transports.notifies == 0) & (transports.notifies[transports.far] == 0)
    is_absent &= (transports.exports[transports.far] < 0).all(axis=1)

    def is_hidden(moves: MoveColumns) -> Mask:
        remote = (moves.reads_remote | moves.writes_remote) & moves.moves_bytes
        there = MoveColumns(subject, moves.rows[remote])
        buffer = np.where(there.reads_remote, there.src.buffer, there.dst.buffer)
        end = subject.tasks.end[there.rows]
        far = transports.far[end]
        hidden = ~is_absent[end]
        for column in transports.exports.T:
            hidden &= column[far] != buffer
        remote[remote] = hidden
        return remote

    return is_hidden


def _outside(subject: Subject, side: int, row: int) -> Finding:
    memory = memory_at(subject, row)[side]
    names = subject.program.buffers
    size = int(subject.program.buffer_sizes[memory.rank, names.index(memory.buffer)])
    verb = ("reduces into" if subject.kind(row).reduces else "writes") if side else "reads"
    return subject.finding(
        "OUT_OF_BOUNDS",
        f"{subject.place(row)} {verb} {subject.words(memory)}, {_limit(memory, size)}.",
        _fix(memory, size),
        rows=[(row, 0)],
        memory=[memory],
    )


def _limit(memory: MemoryRange, size: int) -> str:
    if memory.stop < memory.start:
        return f"a range of {memory.stop - memory.start} bytes"
    if memory.start < 0:
        return "but a buffer starts at byte 0"
    return f"but that buffer has {size} bytes"


def _fix(memory: MemoryRange, size: int) -> str:
    if memory.start < 0 or memory.stop < memory.start:
        return "Check how the offset and the size of this slice are computed."
    larger = _LARGER.get(memory.buffer, f"enlarge buffers.{memory.rank}.{memory.buffer}")
    if not size:
        word = BUFFER_WORDS.get(memory.buffer, memory.buffer)
        return f"Rank {memory.rank} has no {word}; {larger}."
    return f"Make the slice end at byte {size}, or earlier; or {larger}."


def _unexported(subject: Subject, row: int) -> Finding:
    source, target = memory_at(subject, row)
    memory = source if subject.kind(row).reads_remote else target
    names = subject.program.buffers
    transports = subject.program.transports
    far = int(transports.far[int(subject.tasks.end[row])])
    exported = [names[b] for b in dict.fromkeys(transports.exports[far].tolist()) if b >= 0]
    words = " and ".join(BUFFER_WORDS.get(name, name) for name in exported) or "nothing"
    return subject.finding(
        "REMOTE_NOT_EXPORTED",
        f"{subject.place(row)} {subject.action(row)}, "
        f"but rank {memory.rank} exports {words} on this transport.",
        f"Let rank {memory.rank} export the memory (PlaneRequest's input_mem and output_mem, "
        "exports in a program file), or stage the data in memory that is exported.",
        rows=[(row, 0)],
        memory=[memory],
    )
