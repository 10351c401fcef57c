"""How a job begins and ends: its first stream wakes the others, and waits for them.

A stream that begins with waiting for another one needs no waking, and one that ends with an event
that the first stream waits for is known to be over.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from hccl_py.jobs.events import Crossing, Events, crossing
from hccl_py.jobs.layout import JobNumbers
from hccl_py.jobs.steps import Step
from hccl_py.values import IntArray


def begun(
    layout: JobNumbers, steps: Sequence[Step], events: Events, streams: int
) -> tuple[Crossing, ...]:
    """Return what the first stream posts for others to begin."""
    found = []
    for stream in range(1, streams):
        first = _last_of(reversed(list(enumerate(steps))), stream, layout.ranks)
        at = {number: wait.ranks for number, wait in events.waits.items()}
        ranks = _left(first, at)
        if len(ranks):
            found.append(crossing(layout, stream, ranks))
    return tuple(found)


def ended(
    layout: JobNumbers, steps: Sequence[Step], events: Events, streams: int
) -> tuple[tuple[int, Crossing], ...]:
    """Return what other streams post when they are done, with the stream that does."""
    found = []
    for stream in range(1, streams):
        last = _last_of(enumerate(steps), stream, layout.ranks)
        at = {
            number: np.concatenate(
                [np.zeros(0, np.int64), *(p.ranks for p in posts if not p.stream)]
            )
            for number, posts in events.posts.items()
        }
        ranks = _left(last, at)
        if len(ranks):
            found.append((stream, crossing(layout, 0, ranks)))
    return tuple(found)


def _last_of(steps: Iterable[tuple[int, Step]], stream: int, ranks: int) -> IntArray:
    """Return the number of the last of these steps that every rank has on a stream; -1 for none."""
    found = np.full(ranks, -1)
    for number, step in steps:
        if step.stream == stream:
            found[step.ranks] = number
    return found


def _left(step: IntArray, settled: dict[int, IntArray]) -> IntArray:
    """Return the ranks that have a step, less those at which it settles the matter."""
    is_left = step >= 0
    for number in np.unique(step[is_left]).tolist():
        here = settled.get(number, np.zeros(0, np.int64))
        is_left[here[step[here] == number]] = False
    return np.flatnonzero(is_left)
