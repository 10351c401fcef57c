"""Levels of tasks: the number of transfers between ranks that come one after another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hccl_py.enums import READS, WRITES
from hccl_py.program.kernels import kernel, reading
from hccl_py.values import IntArray

if TYPE_CHECKING:
    from hccl_py.program.program import Program


def levels(program: Program, places: Sequence[int] | None = None) -> IntArray:
    """Return for every task how many transfers between ranks the longest chain has that ends in
    it, itself included, by stream order and from posts to waits.

    `places` has a number for every rank, such as its host's: then only transfers between different
    places count. Transfers on one level do not depend on each other. DeadlockError or
    OrchestrationError where the program is not clean (`Linked.check`).
    """
    tasks, linked = program.tasks, program.linked
    linked.check(program)
    is_transfer = transfers(program, range(program.ranks) if places is None else places)
    queue = tasks.rank.astype(np.int64) * program.streams + tasks.stream
    return _levels.sized(len(tasks))(
        reading(linked.order),
        reading(linked.post_of),
        reading(queue),
        reading(is_transfer),
        program.ranks * program.streams,
    )


def transfers(program: Program, places: Sequence[int]) -> npt.NDArray[np.bool_]:
    """Return for every task whether it moves bytes between ranks of different places."""
    tasks, place = program.tasks, np.asarray(places)
    found = np.isin(tasks.kind, (*READS, *WRITES)) & (tasks.size > 0)
    found[found] = place[tasks.rank[found]] != place[tasks.peer[found]]
    return found


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
