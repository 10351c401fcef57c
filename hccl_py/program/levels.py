"""How many transfers between ranks come one after another: the level of every task."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hccl_py.enums import READS, WRITES
from hccl_py.program.kernels import kernel, reading
from hccl_py.values import IntArray

if TYPE_CHECKING:
    from hccl_py.program.program import Program

__all__ = ["levels"]


def levels(program: Program) -> IntArray:
    """Return for every task how many transfers between ranks the longest chain has that ends in
    it, itself included, by stream order and from posts to waits.

    What is on one level depends on nothing else there. DeadlockError or OrchestrationError where
    the program is not clean (`Linked.check`).
    """
    tasks, linked = program.tasks, program.linked
    linked.check(program)
    is_transfer = np.isin(tasks.kind, (*READS, *WRITES)) & (tasks.size > 0)
    queue = tasks.rank.astype(np.int64) * program.streams + tasks.stream
    return _levels.sized(len(tasks))(
        reading(linked.order),
        reading(linked.post_of),
        reading(queue),
        reading(is_transfer),
        program.ranks * program.streams,
    )


@kernel
def _levels(
    order: npt.NDArray[np.int32],
    post_of: npt.NDArray[np.int32],
    queue: IntArray,
    is_transfer: npt.NDArray[np.bool_],
    queues: int,
) -> IntArray:
    """Go through the walk's order; every queue knows the level of its last task."""
    last = np.zeros(queues, np.int64)
    found = np.zeros(len(order), np.int64)
    for row in order:
        level = last[queue[row]]
        post = post_of[row]
        if post >= 0 and found[post] > level:
            level = found[post]
        if is_transfer[row]:
            level += 1
        found[row] = level
        last[queue[row]] = level
    return found
