"""Busy, waiting and idle time of every stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hccl_py.enums import TaskKind
from hccl_py.values import Floats

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
