"""Numbers of posts and waits of every notify, counted from the batches without expanding them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hccl_py.enums import TaskKind
from hccl_py.values import IntArray, values_of

if TYPE_CHECKING:
    from hccl_py.program.program import Program


def check_balance(program: Program) -> None:
    """Raise as `Linked.check` where some notify is posted more or less often than it is waited for:
    a post that is left over would let a wait of the next run pass. Far cheaper than to match all
    posts and waits, which finds more.
    """
    posts, waits = (_counts(program, kind) for kind in (TaskKind.NOTIFY_POST, TaskKind.NOTIFY_WAIT))
    if (posts != waits).any():
        program.linked.check(program)


def _counts(program: Program, kind: TaskKind) -> IntArray:
    """Return the number of tasks of a kind for every cell."""
    cells = [
        np.broadcast_to(values_of(instruction.cell), len(batch.ranks))
        for batch in program.batches
        for instruction in batch.instructions
        if instruction.kind is kind
    ]
    return np.bincount(np.concatenate([np.zeros(0, np.int64), *cells]), minlength=program.cells)
