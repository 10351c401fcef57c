"""Busy, waiting and idle time of every stream, waits by cause, and overruns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hccl_py.enums import POST, WAIT, TaskKind
from hccl_py.values import Floats, IntArray

if TYPE_CHECKING:
    from hccl_py.simulator.timeline import Timeline


@dataclass(frozen=True, eq=False)
class StreamUsage:
    """Microseconds per stream, [ranks, streams]; the three sum to the total of the timeline.

    Busy: data and compute tasks. Waiting: waits for notifies. Idle: before the first task, after
    the last one. A stream does not wait for its RDMA writes: they keep their connection busy, which
    the use of links shows. `tasks` counts what is on the stream; one that a rank never uses is
    idle.
    """

    busy_us: Floats
    waiting_us: Floats
    idle_us: Floats
    tasks: npt.NDArray[np.int64]

    def of_ranks(self) -> Floats:
        """Return busy, waiting and idle µs of every rank, [ranks, 3]: the mean over the streams
        that it uses; all idle where it uses none.
        """
        used = self.tasks > 0
        used[~used.any(axis=1)] = True
        columns = (self.busy_us, self.waiting_us, self.idle_us)
        sums = np.stack([np.where(used, column, 0.0).sum(axis=1) for column in columns], axis=1)
        return np.asarray(sums / used.sum(axis=1)[:, None])


ROUNDING = 1e-12
"""The share of the whole that sums of times are off by where nothing is left."""


def usage(timeline: Timeline) -> StreamUsage:
    """Add the tasks up by rank and stream."""
    program, kind = timeline.program, timeline.program.tasks.kind
    shape = program.ranks, program.streams
    queue = program.tasks.rank.astype(np.int64) * program.streams + program.tasks.stream
    length, waits = timeline.end_us - timeline.start_us, kind == TaskKind.NOTIFY_WAIT

    def summed(rows: npt.NDArray[np.bool_]) -> Floats:
        weights = np.where(rows, length, 0.0)
        found = np.bincount(queue, weights, shape[0] * shape[1])
        return found.astype(np.float64).reshape(shape)

    waiting, busy = summed(waits), summed(~waits)
    idle = np.maximum(timeline.total_us - busy - waiting, 0.0)
    idle[idle < ROUNDING * timeline.total_us] = 0.0
    tasks = np.bincount(queue, minlength=shape[0] * shape[1]).reshape(shape)
    return StreamUsage(busy, waiting, idle, tasks)


def overruns(timeline: Timeline) -> IntArray:
    """Return the rows of posts that take effect while an earlier post of their notify is not
    consumed. A wait that ends at that very time has consumed it.
    """
    tasks = timeline.program.tasks
    is_post = tasks.kind == POST
    rows = np.flatnonzero(is_post | (tasks.kind == WAIT))
    order = np.lexsort((is_post[rows], timeline.effect_us[rows], tasks.cell[rows]))
    rows = rows[order]
    is_post, cell = is_post[rows], tasks.cell[rows]
    change = np.where(is_post, 1, -1)
    set_before = np.cumsum(change) - change  # over all cells: every one begins empty
    first = np.flatnonzero(np.diff(cell, prepend=-1))
    own = set_before - np.repeat(set_before[first], np.diff(np.append(first, len(cell))))
    found: IntArray = np.sort(rows[is_post & (own > 0)]).astype(np.int64)
    return found


@dataclass(frozen=True, eq=False)
class Waits:
    """`rank[k]` waits `us[k]` microseconds for posts of rank `on[k]`, all its streams together.

    Pairs are sorted by rank, then by on; those that never wait are left out. `local_us` has, for
    each rank, what its streams wait for each other.
    """

    rank: npt.NDArray[np.int64]
    on: npt.NDArray[np.int64]
    us: Floats
    local_us: Floats


def waits(timeline: Timeline) -> Waits:
    """Add waits up by the waiting rank and the posting rank."""
    program, tasks = timeline.program, timeline.program.tasks
    rows = np.flatnonzero(tasks.kind == TaskKind.NOTIFY_WAIT)
    rows = rows[timeline.end_us[rows] > timeline.start_us[rows]]
    us = timeline.end_us[rows] - timeline.start_us[rows]
    rank, on = tasks.rank[rows], tasks.rank[program.linked.post_of[rows]]
    is_local = rank == on
    local = np.bincount(rank[is_local], us[is_local], program.ranks).astype(np.float64)
    pair = (rank.astype(np.int64) * program.ranks + on)[~is_local]
    pairs, place = np.unique(pair, return_inverse=True)
    found = np.bincount(place.reshape(-1), us[~is_local], len(pairs)).astype(np.float64)
    return Waits(pairs // program.ranks, pairs % program.ranks, found, local)
