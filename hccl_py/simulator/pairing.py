"""Posts paired with waits by time, where several streams share a notify that counts.

The untimed walk takes the posts of such a notify in some legal order. Here waits take them in the
order in which they take effect, and the program is timed anew, until both agree. Where one stream
waits, that only ever makes tasks earlier: the k earliest posts are there no later than any k that
the waits so far have taken.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hccl_py.enums import POST, WAIT
from hccl_py.errors import NotSupportedError
from hccl_py.program.describe import format_notify, format_place
from hccl_py.program.matching import Linked, match, shared_cells
from hccl_py.program.program import Program
from hccl_py.simulator.timeline import Timeline
from hccl_py.values import IntArray

MOST_PASSES = 100


def paired_in_time(program: Program, simulated: Callable[[Program], Timeline]) -> Timeline:
    """Time a program so that every wait of a shared notify takes the post that is there first.

    The timeline's program has the pairs that it was timed with. Raises NotSupportedError where
    waits in no order take each other's posts back and forth.
    """
    timeline = simulated(program)
    cells = shared_cells(program) if program.counts_posts else np.zeros(0, np.int64)
    if not len(cells):
        return timeline
    for _ in range(MOST_PASSES):
        linked = _linked(timeline, cells)
        if linked is None:
            return timeline
        timeline = simulated(timeline.program.with_pairs(linked))
    raise _unsteady(program, cells)


def _linked(timeline: Timeline, cells: IntArray) -> Linked | None:
    """Return the pairs by times, None where they are what the times were found with."""
    program = timeline.program
    tasks, before = program.tasks, program.linked
    place = np.empty(len(tasks), np.int64)
    place[before.order] = np.arange(len(before.order))
    is_shared = np.isin(tasks.cell, cells)
    waits = np.flatnonzero(is_shared & (tasks.kind == WAIT))
    posts = np.flatnonzero(is_shared & (tasks.kind == POST))
    waits = waits[np.lexsort((place[waits], timeline.start_us[waits], tasks.cell[waits]))]
    posts = posts[np.lexsort((place[posts], timeline.effect_us[posts], tasks.cell[posts]))]
    first = np.searchsorted(tasks.cell[posts], tasks.cell[waits])
    number = np.arange(len(waits)) - np.searchsorted(tasks.cell[waits], tasks.cell[waits])
    post_of = before.post_of.copy()
    post_of[waits] = posts[first + number]
    if (post_of == before.post_of).all():
        return None
    cell = tasks.cell.copy()
    cell[posts] = program.cells + np.arange(len(posts))
    cell[waits] = cell[post_of[waits]]
    again = match(program, cell)
    if len(again.order) < len(before.order):
        raise _unsteady(program, cells)
    return again


def _unsteady(program: Program, cells: IntArray) -> NotSupportedError:
    tasks = program.tasks
    row = int(np.flatnonzero(np.isin(tasks.cell, cells) & (tasks.kind == WAIT))[0])
    return NotSupportedError(
        f"Nothing says which wait takes which post, so the program has no time: "
        f"{format_place(program, row)} waits for {format_notify(program, row)}, and others do.",
        "Let one stream do all waits of a notify, or use one notify for each.",
    )
