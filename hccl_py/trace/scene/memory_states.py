"""The origin of all data in memory, followed exactly through every task, without bytes."""

from __future__ import annotations

import numpy as np

from hccl_py.enums import moves_data
from hccl_py.program.program import Program
from hccl_py.trace.scene.model import MemoryStates
from hccl_py.values import Floats, IntArray
from hccl_py.verifier.analysis.contents import Contents, contents_of
from hccl_py.verifier.analysis.memory import MemoryIntervals, memory_of
from hccl_py.verifier.subject import Options, Subject

MOST_MOVES = 100_000
"""Tasks that move data up to which memory is followed."""

_MOST_RANKS = 4096


def memory_states(
    program: Program,
    order: IntArray,
    effect_us: Floats,
    bar_of: IntArray,
) -> tuple[MemoryStates | None, str]:
    """Return the changes of memory, or None and why there are none.

    `order` has the task rows as they take effect, `effect_us` when (by row), `bar_of` their bars.
    A call in place begins with what IN has in OUT.
    """
    moves = int(moves_data(program.tasks.kind).sum())
    if moves > MOST_MOVES or program.ranks > _MOST_RANKS:
        return None, (
            f"What memory holds is shown up to {MOST_MOVES} tasks that move data and "
            f"{_MOST_RANKS} ranks; this program has {moves} and {program.ranks}."
        )
    subject = Subject(program, Options())
    copied = subject.in_place[0][1] if program.op.in_place and subject.in_place else None
    memory = memory_of(subject, copied=copied)
    contents = contents_of(memory, order.astype(np.int32), copied, keep_written=True)
    return _changes(memory, contents, copied, effect_us, bar_of), ""


def _changes(
    memory: MemoryIntervals,
    contents: Contents,
    copied: IntArray | None,
    effect_us: Floats,
    bar_of: IntArray,
) -> MemoryStates:
    program, spaces, written = memory.program, memory.spaces, contents.written
    flat = spaces.base.reshape(-1)
    place = np.searchsorted(flat, written.start, side="right") - 1
    row = memory.transfers.row[written.writer]
    first = _beginnings(memory, copied)
    begin = len(first[0])
    origins, number, leaf, moved = _origins(contents)
    known = written.content >= 0
    content = np.where(known, written.content, 0)
    inputs = spaces.base[:, program.buffers.index("IN")] if "IN" in program.buffers else flat[:0]
    offset = np.zeros(len(content), np.int64)
    offset[known] = (written.start + written.delta + moved[content] - inputs[leaf[content]])[known]
    buffers = len(program.buffers)

    def joined(before: IntArray, behind: IntArray) -> IntArray:
        return np.concatenate([before, behind])

    rank, buffer, start, stop, beginning = first
    return MemoryStates(
        sizes=spaces.size,
        bar=joined(np.full(begin, -1), bar_of[row]),
        at_us=np.concatenate([np.zeros(begin), effect_us[row]]),
        rank=joined(rank, place // buffers).astype(np.int32),
        buffer=joined(buffer, place % buffers).astype(np.int32),
        start=joined(start, written.start - flat[place]),
        stop=joined(stop, written.stop - flat[place]),
        content=joined(number[rank], np.where(known, number[content], -1)).astype(np.int32),
        offset=joined(beginning, offset),
        origins=origins,
    )


def _beginnings(
    memory: MemoryIntervals, copied: IntArray | None
) -> tuple[IntArray, IntArray, IntArray, IntArray, IntArray]:
    """Return the contents before the first task: rank, buffer, start, stop, and the first byte in
    the rank's input.
    """
    names, size = memory.program.buffers, memory.spaces.size
    ranks = np.arange(memory.program.ranks)
    parts = []
    if "IN" in names:
        into = names.index("IN")
        none = np.zeros(len(ranks), np.int64)
        parts.append((ranks, none + into, none, size[:, into], none))
        if copied is not None and "OUT" in names:
            out = names.index("OUT")
            start = np.minimum(np.maximum(-copied, 0), size[:, out])
            stop = np.clip(size[:, into] - copied, start, size[:, out])
            parts.append((ranks, none + out, start, stop, start + copied))
    some = [np.concatenate(column) for column in zip(*parts, strict=True)] if parts else []
    columns = [column[some[3] > some[2]] for column in some] or [np.zeros(0, np.int64)] * 5
    return columns[0], columns[1], columns[2], columns[3], columns[4]


def _origins(
    contents: Contents,
) -> tuple[tuple[tuple[int, ...], ...], IntArray, IntArray, IntArray]:
    """Return the distinct sets of ranks that contents are made of; and by content the number of its
    set, the first input in it, and where that one lies from there on.
    """
    ranks, sums = contents.memory.program.ranks, contents.sums
    leaf = np.concatenate([np.arange(ranks), np.zeros(len(sums.left), np.int64)])
    moved = np.zeros(len(leaf), np.int64)
    masks = [1 << rank for rank in range(ranks)]
    sides = zip(sums.left.tolist(), sums.right.tolist(), sums.left_delta.tolist(), strict=True)
    for k, (left, right, delta) in enumerate(sides, start=ranks):
        masks.append(masks[left] | masks[right])
        leaf[k], moved[k] = leaf[left], moved[left] + delta
    known: dict[int, int] = {}
    number = np.array([known.setdefault(mask, len(known)) for mask in masks], np.int64)
    return tuple(_members(mask) for mask in known), number, leaf, moved


def _members(mask: int) -> tuple[int, ...]:
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return tuple(found)
