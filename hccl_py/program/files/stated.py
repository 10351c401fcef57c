"""What a file can say and a recording never does: the values that keep it.

A recording cannot post a notify that nobody asked for, a file can, and the verifier wants to see
it. These classes stand in for their bases only where a file needs them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from hccl_py.op_param import OpParam
from hccl_py.program.program import Declared, Program
from hccl_py.program.transports import Transports
from hccl_py.values import IntArray

__all__ = ["FileDeclared", "FileOp", "FileTransports", "Numbers", "local_notify_counts"]

Numbers: TypeAlias = tuple["int | Numbers", ...]


@dataclass(frozen=True)
class FileOp(OpParam):
    """An op with members that OpParam has no field for, such as the `counts` of a v-op."""

    extra: tuple[tuple[str, Numbers], ...] = ()


@dataclass(frozen=True, eq=False)
class FileDeclared(Declared):
    """`local_notifies[rank, stream]`: how many notifies the rank requests for that stream."""

    local_notifies: IntArray


@dataclass(frozen=True, eq=False)
class FileTransports(Transports):
    """Transports of which tasks use more notifies than were requested: every end has `slots`
    cells.

    An end that was used but never requested has 0 `notifies`.
    """

    slots: int = 0

    @property
    def stride(self) -> int:
        """Cells reserved for each end, used ones included."""
        return max(super().stride, self.slots)


def local_notify_counts(program: Program) -> IntArray:
    """Return how many local notifies each rank requested for each stream, [ranks, streams].

    In a recorded program the counts follow from the layout of `LocalNotifies.of`; a rank that has
    notify k of a stream has those before it.
    """
    declared = program.declared
    if isinstance(declared, FileDeclared):
        return declared.local_notifies
    counts = np.zeros((program.ranks, program.streams), np.int64)
    requests = np.stack([declared.sub_streams, declared.notifies], axis=1)
    most = int(declared.sub_streams.max(initial=0))
    for subs, notifies in np.unique(requests, axis=0).tolist():
        mine = (requests == (subs, notifies)).all(axis=1)
        extra = range(2 * most, 2 * most + max(notifies - 2 * subs, 0))
        slots = [*range(subs), *range(most, most + subs), *extra][:notifies]
        for slot in slots:
            stream, index = program.local_notifies.slots[slot]
            counts[mine, stream] = np.maximum(counts[mine, stream], index + 1)
    return counts
