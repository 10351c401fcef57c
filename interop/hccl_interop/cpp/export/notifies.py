"""Notifies: the owner of each one between threads in C++, where only the owner waits for it; names
of those of channels.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from hccl_interop.cpp.export.text import camel_case
from hccl_py.enums import POST, WAIT
from hccl_py.errors import NotSupportedError
from hccl_py.program.program import Program
from hccl_py.program.transports import NOTIFY_NAMES
from hccl_py.values import values_of


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


def named_notifies(program: Program) -> dict[int, str]:
    """Return the names of a channel's notifies in C++, by number: the classic three, and those that
    tasks of one phase alone use, such as a barrier's.
    """
    transports = program.transports
    if transports.notify_names != NOTIFY_NAMES:
        return {}
    phases: dict[int, set[str]] = {}
    for one in (one for batch in program.batches for one in batch.instructions):
        if one.kind in (POST, WAIT) and np.max(values_of(one.end)) >= 0:
            label = program.labels[one.label] if one.label >= 0 else ""
            for number in np.unique(values_of(one.cell) % transports.stride).tolist():
                phases.setdefault(number, set()).add(label)
    names = {number: f"k{name}" for number, name in enumerate(NOTIFY_NAMES)}
    for number, labels in sorted(phases.items()):
        wish = f"k{camel_case(min(labels))}Signal"
        if number not in names and len(labels) == 1 and wish not in names.values():
            names |= {number: wish} if min(labels) else {}
    return names
