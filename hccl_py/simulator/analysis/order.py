"""The order of tasks besides notifies: the task before each on its stream, or on its RDMA
connection.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hccl_py.program.matching import queues_of
from hccl_py.program.program import Program
from hccl_py.values import Floats

if TYPE_CHECKING:
    from hccl_py.simulator.timeline import Timeline

Rows = npt.NDArray[np.int32]


def before_on_stream(program: Program) -> Rows:
    """Return for every row the one before it on its stream, -1 for the first."""
    queues = queues_of(program)
    before = np.full(len(queues.rows), -1, np.int32)
    before[queues.rows[1:]] = queues.rows[:-1]
    starts = queues.first[:-1][np.diff(queues.first) > 0]
    before[queues.rows[starts]] = -1
    return before


def order_of(timeline: Timeline, connections: ConnectionOrder) -> Rows:
    """Return the rows so that each comes after all that it follows.

    That is the topological order, unless streams that share a connection came to it in another one,
    as they may where links are shared: then they did so in the order of time.
    """
    order = timeline.program.linked.order
    later = np.flatnonzero(connections.before >= 0)
    if len(later):
        place = np.empty(len(order), np.int32)
        place[order] = np.arange(len(order), dtype=np.int32)
        if (place[connections.before[later]] > place[later]).any():
            return np.lexsort((place, timeline.end_us)).astype(np.int32)
    return order


@dataclass(frozen=True, eq=False)
class ConnectionOrder:
    """The order on RDMA connections, one value per row.

    A write or a post sets out on its connection when its stream is that far and the write `before`
    it has been sent (-1: there is none). `stream_us` is how long the stream's side was ready
    earlier than that, `connection_us` how long the connection was: at least one is 0.
    """

    before: Rows
    stream_us: Floats
    connection_us: Floats

    @staticmethod
    def of(timeline: Timeline) -> ConnectionOrder:
        """Find which side came last."""
        before, count = timeline.behind, len(timeline.behind)
        found = ConnectionOrder(before, np.zeros(count), np.zeros(count))
        rows = np.flatnonzero(before >= 0)
        ready, sent = timeline.end_us[rows], timeline.effect_us[before[rows]]
        found.stream_us[rows] = np.maximum(sent - ready, 0.0)
        found.connection_us[rows] = np.maximum(ready - sent, 0.0)
        return found
