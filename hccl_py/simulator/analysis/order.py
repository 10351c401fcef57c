"""What a task waits for besides a notify: the task before it on its stream, or on its RDMA
connection.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from hccl_py.enums import TaskKind
from hccl_py.program.link import queues_of
from hccl_py.program.program import Program
from hccl_py.simulator.durations import Durations
from hccl_py.values import Floats

if TYPE_CHECKING:
    from hccl_py.simulator.timeline import Timeline

__all__ = ["Rows", "Wires", "before_on_stream", "order_of"]

Rows = npt.NDArray[np.int32]


def before_on_stream(program: Program) -> Rows:
    """Return for every row the one before it on its stream, -1 for the first."""
    queues = queues_of(program)
    before = np.full(len(queues.rows), -1, np.int32)
    before[queues.rows[1:]] = queues.rows[:-1]
    starts = queues.first[:-1][np.diff(queues.first) > 0]
    before[queues.rows[starts]] = -1
    return before


def order_of(timeline: Timeline, wires: Wires) -> Rows:
    """Return the rows so that each comes after all that it follows.

    That is the topological order, unless streams that share a connection came to it in another one,
    as they may where links are shared: then they did so in the order of time.
    """
    order = timeline.program.linked.order
    later = np.flatnonzero(wires.before >= 0)
    if len(later):
        place = np.empty(len(order), np.int32)
        place[order] = np.arange(len(order), dtype=np.int32)
        if (place[wires.before[later]] > place[later]).any():
            return np.lexsort((place, timeline.end_us)).astype(np.int32)
    return order


@dataclass(frozen=True, eq=False)
class Wires:
    """The order on RDMA connections, one value per row.

    A write starts on the wire, and a post sets its cell, when both its stream and the connection
    are that far. `before` is the row before on the connection (-1: none, or no connection);
    `stream_us` is how long the stream's side was ready earlier than that, `wire_us` how long the
    connection was: at least one is 0.
    """

    before: Rows
    stream_us: Floats
    wire_us: Floats

    @staticmethod
    def of(timeline: Timeline) -> Wires:
        """Find who shares connections, and which side came last."""
        count = len(timeline.program.tasks)
        found = Wires(np.full(count, -1, np.int32), np.zeros(count), np.zeros(count))
        if timeline.program.transports.is_rdma.any():
            found._fill(timeline)
        return found

    def _fill(self, timeline: Timeline) -> None:
        tasks = timeline.program.tasks
        rows = _on_wires(timeline)
        rows = rows[np.lexsort((timeline.effect_us[rows], tasks.end[rows]))]
        follows = np.flatnonzero(np.diff(tasks.end[rows]) == 0)
        one, row = rows[follows], rows[follows + 1]
        ready = timeline.end_us[row] + _latencies(timeline, row)
        acts = np.maximum(ready, timeline.effect_us[one])
        self.before[row] = one
        self.stream_us[row] = acts - ready
        self.wire_us[row] = acts - timeline.effect_us[one]


def _on_wires(timeline: Timeline) -> npt.NDArray[np.int64]:
    """Return the posts and writes on RDMA connections, in topological order; writes of no bytes
    never reach them.
    """
    program = timeline.program
    tasks, order = program.tasks, program.linked.order
    rows = order[tasks.end[order] >= 0].astype(np.int64)
    rows = rows[program.transports.is_rdma[tasks.end[rows]]]
    kind = tasks.table.kind[tasks.instruction[rows]]
    moves = timeline.effect_us[rows] > timeline.end_us[rows]
    is_post, is_wait = kind == TaskKind.NOTIFY_POST, kind == TaskKind.NOTIFY_WAIT
    return np.asarray(rows[is_post | (moves & ~is_wait)])


def _latencies(timeline: Timeline, rows: npt.NDArray[np.int64]) -> Floats:
    """Return what posts take alone; nothing for writes."""
    program, links = timeline.program, timeline.links
    tasks = program.tasks
    durations = Durations(program, links.topology, links.cost, links.slow)
    of = durations.classes(tasks.rank[rows], tasks.end[rows])
    notify = tasks.cell[rows] % program.transports.stride
    is_post = tasks.table.kind[tasks.instruction[rows]] == TaskKind.NOTIFY_POST
    return np.where(is_post, durations.of_post(of, notify), 0.0)
