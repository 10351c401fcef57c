"""Notifies between threads: the owner of each in C++, where only the owner waits for it."""

from __future__ import annotations

from collections import Counter

import numpy as np

from hccl_py.enums import WAIT
from hccl_py.errors import NotSupportedError
from hccl_py.program.program import Program


def notifies_of_threads(program: Program) -> list[tuple[int, int]]:
    """Return thread and index of every notify between the streams of a rank.

    The owner is the stream that waits. In a program's own layout the notifies that an executor has
    beside its forks belong to main even if another stream waits. Every thread counts its own
    notifies from 0. NotSupportedError where several streams wait for one.
    """
    slots, tasks = program.local_notifies.slots, program.tasks
    mine = (tasks.kind == WAIT) & (tasks.cell >= program.transports.cells)
    slot = (tasks.cell[mine] - program.transports.cells) % max(len(slots), 1)
    waits = np.unique(np.stack([slot, tasks.stream[mine]], axis=1), axis=0).tolist()
    waiting = dict(waits)
    if len(waiting) < len(waits):
        raise NotSupportedError(
            "Several streams wait for one notify, and in C++ only the thread that owns it can.",
            "Give every stream that waits a notify of its own.",
        )
    owners = [waiting.get(k, slots[k][0]) for k in range(len(slots))]
    used: Counter[int] = Counter()
    found = []
    for owner in owners:
        found.append((owner, used[owner]))
        used[owner] += 1
    return found
