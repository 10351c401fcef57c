"""The two sides of one task: overlaps, unequal lengths, other data types, parts of elements."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from hccl_py.enums import DataType
from hccl_py.values import IntArray
from hccl_py.verifier.analysis.moves import Mask, MoveColumns, memory_at, rows_where
from hccl_py.verifier.checks.culprits import findings_at
from hccl_py.verifier.finding import Finding
from hccl_py.verifier.subject import Subject


def find_slices(subject: Subject) -> Iterator[Finding]:
    """Yield SELF_OVERLAP, SLICE_LEN_MISMATCH and DTYPE_MISMATCH."""
    for test, make in (
        (_overlaps, _overlap),
        (_differs_in_length, _length),
        (_differs_in_dtype, _dtype_of),
        (_splits_elements, _parts),
    ):
        rows = rows_where(subject, test)
        yield from findings_at(subject, rows, partial(make, subject))


def _overlaps(moves: MoveColumns) -> Mask:
    masks = [_overlaps_in(moves, *layout) for layout in _layouts(moves.subject)]
    found: Mask = np.logical_or.reduce(masks)
    return found


def _layouts(subject: Subject) -> list[tuple[IntArray, IntArray]]:
    """Return the possible layouts of memory: by buffer the number of the memory that it lies in,
    and its offset there, [ranks, buffers].
    """
    names = subject.program.buffers
    memories, begin = np.arange(len(names)), np.zeros_like(subject.program.buffer_sizes)
    if not subject.in_place or "IN" not in names or "OUT" not in names:
        return [(memories, begin)]
    into, out = names.index("IN"), names.index("OUT")
    memories[out] = into
    layouts = []
    for _, offsets in subject.in_place:
        begin = begin.copy()
        begin[:, out] = offsets
        layouts.append((memories, begin))
    return layouts


def _overlaps_in(moves: MoveColumns, memories: IntArray, begin: IntArray) -> Mask:
    src, dst = moves.src, moves.dst
    same = (src.owner == dst.owner) & (memories[src.buffer] == memories[dst.buffer])
    source, target = (side.start + begin[side.owner, side.buffer] for side in (src, dst))
    start = np.maximum(source, target)
    stop = np.minimum(source + src.size, target + dst.size)
    # Where IN is OUT, a copy of a range to itself under the other name changes nothing.
    renamed = (src.buffer != dst.buffer) & (source == target) & (src.size == dst.size)
    found: Mask = same & (start < stop) & (moves.reduces | ~renamed)
    return found


def _differs_in_length(moves: MoveColumns) -> Mask:
    return np.not_equal(moves.src.size, moves.dst.size)


def _differs_in_dtype(moves: MoveColumns) -> Mask:
    dtype, wanted = moves.table.dtype[moves.instruction], moves.subject.program.op.dtype.number
    found: Mask = moves.reduces & moves.moves_bytes & (dtype != wanted)
    return found


def _splits_elements(moves: MoveColumns) -> Mask:
    """Pick reductions in the op's own data type that start or end inside an element."""
    unit, src, dst = moves.subject.program.op.unit, moves.src, moves.dst
    parts = (src.start % unit) | (dst.start % unit) | (src.size % unit)
    found: Mask = moves.reduces & moves.moves_bytes & (parts != 0) & ~_differs_in_dtype(moves)
    return found


def _overlap(subject: Subject, row: int) -> Finding:
    source, target = memory_at(subject, row)
    shared = f"bytes {max(source.start, target.start)} to {min(source.stop, target.stop)}"
    if source.buffer != target.buffer:
        shared = "bytes, as in place IN and OUT are one memory"
    return subject.finding(
        "SELF_OVERLAP",
        f"{subject.place(row)} {subject.action(row)}: both sides share {shared}.",
        "What a task reads while it writes is undefined: use slices apart, or stage the data.",
        rows=[(row, 0)],
        memory=[source, target],
    )


def _length(subject: Subject, row: int) -> Finding:
    source, target = memory_at(subject, row)
    return subject.finding(
        "SLICE_LEN_MISMATCH",
        f"{subject.place(row)} {subject.action(row)}: "
        f"{source.stop - source.start} bytes into {target.stop - target.start}.",
        "Both sides of a task have the same length.",
        rows=[(row, 0)],
        memory=[source, target],
    )


def _dtype_of(subject: Subject, row: int) -> Finding:
    number = int(subject.tasks.table.dtype[subject.tasks.instruction[row]])
    wanted = subject.program.op.dtype.value
    return subject.finding(
        "DTYPE_MISMATCH",
        f"{subject.place(row)} {subject.action(row)} as {DataType.from_number(number).value}, "
        f"but the op reduces {wanted}.",
        f"Reduce in the op's data type, {wanted}.",
        rows=[(row, 0)],
        memory=memory_at(subject, row),
    )


def _parts(subject: Subject, row: int) -> Finding:
    op = subject.program.op
    return subject.finding(
        "DTYPE_MISMATCH",
        f"{subject.place(row)} {subject.action(row)}, "
        f"but an element of {op.dtype.value} has {op.unit} bytes: {_cut(subject, row)}.",
        f"Let offsets and sizes of what is reduced be multiples of {op.unit}.",
        rows=[(row, 0)],
        memory=memory_at(subject, row),
    )


def _cut(subject: Subject, row: int) -> str:
    """Return words about the first number that is no multiple of the element."""
    unit = subject.program.op.unit
    for name, memory in zip(("source", "destination"), memory_at(subject, row), strict=True):
        for what, number in (
            ("begins at byte", memory.start),
            ("has a length of", memory.stop - memory.start),
        ):
            if number % unit:
                return f"the {name} {what} {number}"
    raise AssertionError("only slices that cut an element come here")
