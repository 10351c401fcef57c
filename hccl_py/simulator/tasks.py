"""The uncontended simulation of the task view: start and end of every task."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from hccl_py.clocks.cost import CostModel
from hccl_py.clocks.durations import CostColumns, Durations, step_begins
from hccl_py.clocks.stragglers import EVEN, Stragglers
from hccl_py.enums import POST, WAIT, moves_data
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
    """Times of all tasks by row, in µs: those of `TaskDurations` with jitter, and the queue and the
    RDMA connection of each (-1: none).
    """

    program: Program
    durations: Durations
    queue: npt.NDArray[np.int32]
    on_stream: Floats
    after: Floats
    connection: npt.NDArray[np.int64]

    @staticmethod
    def of(program: Program, durations: Durations) -> TaskCosts:
        """Look every task up, many at a time: all else that it takes stays in the cache."""
        tasks, count = program.tasks, len(program.tasks)
        queue, connection = np.empty(count, np.int32), np.empty(count, np.int64)
        on_stream, after = np.empty(count), np.empty(count)
        is_rdma = np.append(program.transports.is_rdma, False)  # behind the last end: none, -1
        flows = durations.flows_by_row(program)
        for rows in _parts(count):
            columns = _columns(program, durations, rows)
            if flows is not None:
                columns = columns._replace(flows=flows[rows])
            on_stream[rows], _, after[rows] = durations.times(columns)
            sends = is_rdma[tasks.end[rows]] & ((columns.kind == POST) | (after[rows] > 0))
            connection[rows] = np.where(sends, tasks.end[rows], -1)
            stream = tasks.table.stream[tasks.instruction[rows]]
            queue[rows] = tasks.rank[rows] * np.int32(program.streams) + stream
        if durations.joins and tasks.table.joined.any():
            on_stream = _of_steps(program, on_stream)
        if durations.jitter.spread:
            longer = durations.jitter.of_rows(program, slice(None))
            on_stream, after = on_stream * longer, after * longer
        return TaskCosts(program, durations, queue, on_stream, after, connection)

    @cached_property
    def task_us(self) -> Floats:
        """The part of the time on the stream before a data task's data moves."""
        program, durations = self.program, self.durations
        found = np.empty(len(program.tasks))
        for rows in _parts(len(found)):
            found[rows] = durations.times(_columns(program, durations, rows)).task_us
        return np.asarray(found * durations.jitter.of_rows(program, slice(None)))


def _parts(count: int) -> Iterator[slice]:
    return (slice(at, min(at + _AT_ONCE, count)) for at in range(0, count, _AT_ONCE))


def _columns(program: Program, durations: Durations, rows: slice) -> CostColumns:
    tasks, instruction = program.tasks, program.tasks.instruction[rows]
    of = durations.classes(tasks.rank[rows], tasks.end[rows])
    return CostColumns(
        tasks.table.kind[instruction],
        of,
        tasks.size[rows],
        tasks.table.duration_us[instruction],
        durations.pays_alpha(of, tasks.cell[rows]),
    )


def _of_steps(program: Program, on_stream: Floats) -> Floats:
    """Let the last task of every step take as long as the longest, and the others nothing."""
    tasks, queues = program.tasks, queues_of(program)
    rows = queues.rows
    starts = queues.first[:-1][np.diff(queues.first) > 0]
    joined = tasks.table.joined[tasks.instruction[rows]]
    begins = step_begins(joined, moves_data(tasks.kind)[rows], starts)
    found = np.zeros(len(rows))
    last = np.append(begins[1:], len(rows)) - 1
    found[rows[last]] = np.maximum.reduceat(on_stream[rows], begins)
    return found


# By row: `queue` (rank · streams + stream), `post_of` a wait, `on_stream` and `after` as in
# TaskCosts, `connection` (-1: none). `order` lists rows so that each comes after all that it waits
# for. One step for each row; `start`, `end`, `effect` and `behind` are those of a Timeline.
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
    """Time tasks in one pass in topological order: only sums and maxima, as in all engines."""
    # Invariant: clocks, connections and effects are those after all rows that `order` lists before.
    clock = np.full(queues, begin)  # until when each stream is busy
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
            # Over RDMA a post sets out behind the writes before it, and keeps no connection busy.
            effect[row] = (max(t, busy[w]) if w >= 0 else t) + after[row]
            if w >= 0:
                behind[row] = last[w]
        else:
            t += on_stream[row]
            effect[row] = t
            w = connection[row]
            if w >= 0:  # an RDMA write: the stream goes on, the connection sends
                busy[w] = max(busy[w], t) + after[row]
                effect[row] = busy[w]
                behind[row] = last[w]
                last[w] = row
        end[row] = t
        clock[q] = t
    return start, end, effect, behind
