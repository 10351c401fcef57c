"""The uncontended simulation of the task view: start and end of every task."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from hccl_py.clocks.cost import CostModel
from hccl_py.clocks.durations import Durations
from hccl_py.clocks.stragglers import EVEN, Stragglers
from hccl_py.enums import POST, WAIT, TaskKind, moves_data
from hccl_py.program.kernels import kernel
from hccl_py.program.matching import queues_of
from hccl_py.program.program import Program
from hccl_py.simulator.pairing import paired_in_time
from hccl_py.simulator.timeline import Timeline
from hccl_py.topology.topology import Topology
from hccl_py.values import Floats

_AT_ONCE = 1 << 18
"""Tasks that are looked up together."""


def simulate_tasks(
    program: Program,
    topology: Topology | None,
    cost: CostModel,
    slow: Stragglers = EVEN,
) -> Timeline:
    """Time every task alone on its link; raises as `Linked.check` does for programs that cannot
    end.
    """
    program.linked.check(program, once=True)
    return simulate_reached(program, topology, cost, slow)


def simulate_reached(
    program: Program,
    topology: Topology | None,
    cost: CostModel,
    slow: Stragglers = EVEN,
) -> Timeline:
    """Time what a program gets done, every task alone on its link; tasks that it never reaches have
    NaN for times.
    """
    if len(program.linked.stuck):
        return _simulated(program, topology, cost, slow)
    return paired_in_time(program, lambda paired: _simulated(paired, topology, cost, slow))


def _simulated(
    program: Program, topology: Topology | None, cost: CostModel, slow: Stragglers
) -> Timeline:
    linked = program.linked
    costs = TaskCosts.of(program, Durations(program, topology, cost, slow))
    run = _time_tasks.sized(len(program.tasks))
    start, end, effect, behind = run(
        linked.order,
        linked.post_of,
        costs.queue,
        program.tasks.kind,
        costs.on_stream,
        costs.after,
        costs.connection,
        program.ranks * program.streams,
        len(program.transports),
        costs.durations.launch_us,
    )
    return Timeline(program, costs.durations.links, start, end, effect, behind)


@dataclass(frozen=True, eq=False)
class TaskCosts:
    """What every task takes alone, in µs, by row.

    `on_stream` keeps its stream busy; `after` is a post's latency, or the time of an RDMA write on
    its connection, which `connection` numbers (-1: none).
    """

    program: Program
    durations: Durations
    queue: npt.NDArray[np.int32]
    on_stream: Floats
    after: Floats
    connection: npt.NDArray[np.int64]

    @staticmethod
    def of(program: Program, durations: Durations) -> TaskCosts:
        """Look every task up, many at a time: what that takes besides stays in the cache."""
        count = len(program.tasks)
        queue, connection = np.empty(count, np.int32), np.empty(count, np.int64)
        on_stream, after = np.empty(count), np.empty(count)
        columns: list[Any] = [queue, on_stream, after, connection]
        for first in range(0, count, _AT_ONCE):
            rows = slice(first, min(first + _AT_ONCE, count))
            for column, found in zip(columns, _looked_up(program, durations, rows), strict=True):
                column[rows] = found
        if durations.joins and program.tasks.table.joined.any():
            on_stream = _of_steps(program, on_stream)
        if durations.jitter.spread:
            longer = durations.jitter.of_rows(program, slice(None))
            on_stream, after = on_stream * longer, after * longer
        return TaskCosts(program, durations, queue, on_stream, after, connection)

    @cached_property
    def task_us(self) -> Floats:
        """What of the time on the stream is before a data task's data moves."""
        tasks, durations = self.program.tasks, self.durations
        us = durations.task_us[durations.classes(tasks.rank, tasks.end)]
        us = us * durations.jitter.of_rows(self.program, slice(None))
        return np.broadcast_to(us, tasks.kind.shape)


def _looked_up(program: Program, durations: Durations, rows: slice) -> tuple[npt.NDArray[Any], ...]:
    """Return the columns of TaskCosts for some rows, without what chance adds."""
    tasks = program.tasks
    instruction, end, size = tasks.instruction[rows], tasks.end[rows], tasks.size[rows]
    kind, stream = tasks.table.kind[instruction], tasks.table.stream[instruction]
    is_data, is_post = moves_data(kind), kind == TaskKind.NOTIFY_POST
    of = durations.classes(tasks.rank[rows], end)
    compute = durations.of_compute(of, tasks.table.duration_us[instruction])
    on_stream = np.where(is_data, durations.on_stream(kind, of, size), compute)
    on_stream = np.where(is_post, durations.post_us[of], on_stream)
    on_stream = np.where(kind == WAIT, durations.wait_us[of], on_stream)
    after = np.where(is_data, durations.on_connection(kind, of, size), 0.0)
    latency = durations.of_post(of, durations.pays_alpha(of, tasks.cell[rows]))
    after = np.where(is_post, latency, after)
    remote = end >= 0
    is_rdma = np.zeros(len(kind), np.bool_)
    is_rdma[remote] = program.transports.is_rdma[end[remote]]
    connection = np.where(is_rdma & (is_post | (after > 0)), end, -1)
    queue = tasks.rank[rows] * np.int32(program.streams) + stream
    return queue, on_stream, after, connection


def _of_steps(program: Program, on_stream: Floats) -> Floats:
    """Let the last task of every step take as long as the longest, and the others nothing."""
    tasks, queues = program.tasks, queues_of(program)
    rows = queues.rows
    is_data = moves_data(tasks.kind)[rows]
    goes_on = (tasks.table.joined[tasks.instruction[rows]] > 0) & is_data
    goes_on[1:] &= is_data[:-1]
    goes_on[queues.first[:-1][np.diff(queues.first) > 0]] = False
    begins = np.flatnonzero(~goes_on)
    found = np.zeros(len(rows))
    last = np.append(begins[1:], len(rows)) - 1
    found[rows[last]] = np.maximum.reduceat(on_stream[rows], begins)
    return found


@kernel
def _time_tasks(
    order: npt.NDArray[np.int32],
    post_of: npt.NDArray[np.int32],
    queue: npt.NDArray[np.int32],
    kinds: npt.NDArray[np.int8],
    on_stream: Floats,
    after: Floats,
    connection: npt.NDArray[np.int64],
    queues: int,
    ends: int,
    begin: float,
) -> tuple[Floats, Floats, Floats, npt.NDArray[np.int32]]:
    """One pass in topological order; engines only add durations and take maxima."""
    clock = np.full(queues, begin)
    busy = np.zeros(ends + 1)  # until when each RDMA connection sends
    last = np.full(ends + 1, -1, np.int32)  # the last write on it
    behind = np.full(len(kinds), -1, np.int32)
    start = np.full(len(kinds), np.nan)
    end = np.full(len(kinds), np.nan)
    effect = np.full(len(kinds), np.nan)
    for row in order:
        q = queue[row]
        t = clock[q]
        start[row] = t
        if kinds[row] == WAIT:
            t = max(t, effect[post_of[row]]) + on_stream[row]
            effect[row] = t
        elif kinds[row] == POST:
            w = connection[row]
            t += on_stream[row]
            effect[row] = (max(t, busy[w]) if w >= 0 else t) + after[row]
            if w >= 0:
                behind[row] = last[w]
        else:
            t += on_stream[row]
            effect[row] = t
            w = connection[row]
            if w >= 0:
                busy[w] = max(busy[w], t) + after[row]
                effect[row] = busy[w]
                behind[row] = last[w]
                last[w] = row
        end[row] = t
        clock[q] = t
    return start, end, effect, behind
