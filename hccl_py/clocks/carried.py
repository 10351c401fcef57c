"""Bytes and posts over transports, found from a program's batches without expanding them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

import numpy as np

from hccl_py.enums import TaskKind
from hccl_py.program.instruction import Instruction
from hccl_py.program.program import Program
from hccl_py.values import Floats, IntArray, PerRank, values_of


def carried(program: Program) -> Floats:
    """Return the bytes that leave each transport end, what the peer reads included."""
    return _summed(program, lambda kind: kind.moves_data, _size)


def posted(program: Program) -> Floats:
    """Return the posts of each transport end."""
    return _summed(program, lambda kind: kind is TaskKind.NOTIFY_POST, lambda _: 1.0)


def _summed(
    program: Program,
    is_meant: Callable[[TaskKind], bool],
    amount: Callable[[Instruction], Floats | float],
) -> Floats:
    """Return the amounts of instructions of some kinds that leave each transport end."""
    own: Floats = np.zeros(len(program.transports))
    read = np.zeros(len(program.transports))
    for batch in program.batches:
        columns: dict[int, PerRank | int] = {}
        sums: defaultdict[tuple[int, bool], Floats | float] = defaultdict(float)
        known: dict[object, int] = {}
        for i in batch.instructions:
            if is_meant(i.kind) and _is_remote(i):
                key = i.end.key() if isinstance(i.end, PerRank) else i.end
                column = known.setdefault(key, len(known))
                columns[column] = i.end
                sums[column, i.kind.reads_remote] += amount(i)
        for (column, reads), size in sums.items():
            ends = np.broadcast_to(values_of(columns[column]), len(batch.ranks))
            np.add.at(read if reads else own, ends, size)
    return own + _to_far(read, program.transports.far)


def _is_remote(i: Instruction) -> bool:
    return isinstance(i.end, PerRank) or i.end >= 0


def _size(i: Instruction) -> Floats | float:
    return i.size.values().astype(np.float64) if isinstance(i.size, PerRank) else float(i.size)


def _to_far(read: Floats, far: IntArray) -> Floats:
    """Return the bytes that each end's peer reads through it."""
    found = np.zeros(len(read))
    found[far] = read
    return found
