"""The uncontended simulation by batches: final clocks of very large programs, never expanded.

Every (batch, stream) is a queue of vector instructions with one clock per lane. As long as all
lanes keep the same time one number stands for them (uniform.py). From there on a queue runs in
lock-step until a wait of it finds an empty cell in some lane; go round the queues while any moves.
A batch that depends on itself (a pipelined chain) stops there: the same clocks, cells and counters
then go on rank by rank. On the way they note when tasks of chosen ranks start and end. All add and
compare the numbers that the simulation by tasks does, so all give the same times to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hccl_py.clocks.cost import CostModel
from hccl_py.clocks.durations import Durations
from hccl_py.clocks.engines import call_us
from hccl_py.clocks.jitter import Jitter
from hccl_py.clocks.stragglers import EVEN, Stragglers
from hccl_py.enums import RDMA_WRITES
from hccl_py.errors import DeadlockError, NotSupportedError, OrchestrationError
from hccl_py.program.describe import notify_name
from hccl_py.program.edit import part_of
from hccl_py.program.program import Program
from hccl_py.simulator.batches.code import compiled
from hccl_py.simulator.batches.kernels import in_lockstep, rank_by_rank
from hccl_py.simulator.batches.state import Instructions, Notes, State
from hccl_py.simulator.batches.uniform import advance_uniform
from hccl_py.simulator.tasks import simulate_tasks
from hccl_py.simulator.timeline import Timeline
from hccl_py.topology.topology import Topology
from hccl_py.values import Floats, IntArray


@dataclass(frozen=True, eq=False)
class Clocks:
    """When every stream of every rank ends, shape [ranks, streams], and every RDMA connection;
    microseconds.

    `lockstep` is the share of tasks that whole batches did together, `floor_us` the least time of
    the program's calls.
    """

    end_us: Floats
    connection_us: Floats
    lockstep: float
    floor_us: float

    @property
    def makespan_us(self) -> float:
        """When all tasks are done."""
        return float(max(self.end_us.max(initial=0.0), self.connection_us.max(initial=0.0)))

    @property
    def total_us(self) -> float:
        """The time of the program: no less than its calls take at least."""
        return max(self.makespan_us, self.floor_us)


def simulate_batches(
    program: Program,
    topology: Topology | None,
    cost: CostModel,
    slow: Stragglers = EVEN,
    *,
    lockstep: bool = True,
) -> Clocks:
    """Time a program by its batches; `lockstep=False` goes rank by rank from the start.

    A program whose notifies count is expanded and timed task by task. Raises DeadlockError where
    streams can never end, OrchestrationError for a post on a full cell and for one without a
    wait.
    """
    if program.counts_posts:
        program.linked.check(program)
        return _clocks_of(simulate_tasks(program, topology, cost, slow))
    run = _Run.of(program, topology, cost, slow, np.zeros(0, np.int64), 0)
    run.go(lockstep=lockstep)
    run.check()
    return run.clocks()


@dataclass(frozen=True, eq=False)
class RankTimes:
    """Times of some ranks' tasks in µs, by the task rows of `part`, which has no others.

    `spent` are the µs that all tasks of a rank's stream work and wait, those that `part` leaves out
    included, [ranks, streams, 2]; `tasks` how many there are, [ranks, streams], a row for every
    rank of `ranks`. Tasks that are never reached have NaN for times.
    """

    ranks: IntArray
    part: Program
    start_us: Floats
    end_us: Floats
    effect_us: Floats
    spent: Floats
    tasks: IntArray
    total_us: float


def time_ranks(
    program: Program,
    topology: Topology | None,
    cost: CostModel,
    slow: Stragglers = EVEN,
    *,
    ranks: Sequence[int],
    most: int,
    lockstep: bool = True,
) -> RankTimes:
    """Time a program by its batches, and keep the times of the first `most` tasks of every stream
    of some ranks: those that the simulation by tasks finds, to the last bit.

    A program that can never end is timed as far as it gets. Raises OrchestrationError for a post on
    a full cell, NotSupportedError for a program whose notifies count.
    """
    if program.counts_posts:
        raise NotSupportedError(
            f"The program has {program.task_count} tasks, and notifies that count: only whole "
            "programs of that kind are timed.",
            "Take a smaller one.",
        )
    shown = np.unique(np.asarray(ranks, np.int64))
    run = _Run.of(program, topology, cost, slow, shown, most)
    run.go(lockstep=lockstep)
    part = part_of(program, shown, most)
    tasks = part.tasks
    row_of = np.zeros((len(shown), program.streams), np.int64)
    counts = np.zeros((len(shown), program.streams), np.int64)
    spent = np.zeros((len(shown), program.streams, 2))
    for k, (rank, stream, count) in enumerate(run.noted):
        place = np.searchsorted(shown, rank), stream
        row_of[place], counts[place], spent[place] = run.notes.row[k], count, run.notes.spent[k]
    rows = row_of[np.searchsorted(shown, tasks.rank), tasks.stream] + tasks.index
    start, end, effect = run.notes.times[rows].T
    clocks = run.clocks()
    return RankTimes(shown, part, start, end, effect, spent, counts, clocks.total_us)


def _clocks_of(timeline: Timeline) -> Clocks:
    """Return the clocks at the end of a timeline."""
    program, tasks = timeline.program, timeline.program.tasks
    end = np.zeros((program.ranks, program.streams))
    np.maximum.at(end, (tasks.rank, tasks.stream), timeline.end_us)
    connection = np.zeros(len(program.transports))
    sent = np.flatnonzero(np.isin(tasks.kind, RDMA_WRITES))
    np.maximum.at(connection, tasks.end[sent], timeline.effect_us[sent])
    return Clocks(end, connection, 0.0, timeline.floor_us)


@dataclass(eq=False)
class _Run:
    """One pass through the three loops. `noted` has rank, stream and number of tasks of every noted
    lane.
    """

    program: Program
    queues: list[tuple[IntArray, int]]
    code: Instructions
    state: State
    notes: Notes
    noted: list[tuple[int, int, int]]
    jitter: Jitter
    floor_us: float
    done: int = 0
    together: float = 0.0

    @staticmethod
    def of(
        program: Program,
        topology: Topology | None,
        cost: CostModel,
        slow: Stragglers,
        ranks: IntArray,
        most: int,
    ) -> _Run:
        durations = Durations(program, topology, cost, slow)
        queues, code = compiled(program, durations)
        state = State(
            np.full(int(code.lane_first[-1]), durations.launch_us),
            np.full(program.cells, -1.0),
            np.zeros(len(program.transports) + 1),
        )
        notes, noted = _notes(queues, code, ranks, most)
        floor_us = call_us(program, topology, cost)
        return _Run(program, queues, code, state, notes, noted, durations.jitter, floor_us)

    def go(self, *, lockstep: bool) -> None:
        """Run the loops, one after the other, as far as they get."""
        program, code, state, notes = self.program, self.code, self.state, self.notes
        steps = program.task_count
        counter, lanes = code.first[:-1].copy(), np.diff(code.lane_first)
        lockstep = lockstep and not self.jitter.spread  # lanes keep the same time no more
        if lockstep:
            self._add(advance_uniform(code, counter, state, notes))
        if lockstep and self.done < steps:
            room = np.empty((3, int(lanes.max())), np.int64)
            self._add(in_lockstep.sized(steps)(code, counter, state, room, notes))
        self.together = self.done / max(steps, 1)
        if self.done < steps:
            queue_of = np.repeat(np.arange(len(counter)), lanes)
            waiter = np.full(program.cells, -1)
            stack = np.empty(len(queue_of) + program.cells + 1, np.int64)
            finish = rank_by_rank.sized(steps)
            rest = state, waiter, stack, notes, self._seeds(), self.jitter.spread
            self._add(finish(code, counter[queue_of], queue_of, *rest))

    def _seeds(self) -> IntArray:
        """Return the seed of every lane."""
        streams = self.program.streams
        parts = [self.jitter.seeds[ranks * streams + stream] for ranks, stream in self.queues]
        return np.concatenate(parts) if parts else np.zeros(0, np.int64)

    def _add(self, done: int) -> None:
        self.done += _checked(done, self.program)

    def check(self) -> None:
        """Raise where streams can never end, or a post is left over."""
        program, steps = self.program, self.program.task_count
        if self.done < steps:
            raise DeadlockError(
                f"Deadlock: {self.done} of {steps} tasks done, no stream can go on.",
                "Record it with fewer ranks and look at program.linked.report(program).",
            )
        for cell in np.flatnonzero(self.state.cell >= 0)[:1].tolist():
            raise OrchestrationError(
                f"Unmatched post: no task waits for {_notify(program, cell)}.",
                "Record it with fewer ranks and call program.linked.check(program).",
                finding="UNMATCHED_POST",
            )

    def clocks(self) -> Clocks:
        """Return when every stream and connection ends."""
        first, program = self.code.lane_first, self.program
        end = np.zeros((program.ranks, program.streams))
        for queue, (ranks, stream) in enumerate(self.queues):
            end[ranks, stream] = self.state.clock[first[queue] : first[queue + 1]]
        return Clocks(end, self.state.connection[:-1], self.together, self.floor_us)


def _notes(
    queues: list[tuple[IntArray, int]], code: Instructions, ranks: IntArray, most: int
) -> tuple[Notes, list[tuple[int, int, int]]]:
    """Return room for the times of the first `most` tasks of every lane of some ranks."""
    counts, first, lanes, noted = np.diff(code.first).tolist(), [0], [], []
    for queue, (of_queue, stream) in enumerate(queues):
        places = np.flatnonzero(np.isin(of_queue, ranks))
        lanes += places.tolist()
        noted += [(rank, stream, counts[queue]) for rank in of_queue[places].tolist()]
        first.append(len(lanes))
    kept = np.array([min(count, most) for _, _, count in noted], np.int64)
    notes = Notes(
        np.array(first),
        np.array(lanes, np.int64),
        np.cumsum(kept) - kept,
        kept,
        np.full((int(kept.sum()), 3), np.nan),
        np.zeros((len(noted), 2)),
        np.zeros(len(noted)),
    )
    return notes, noted


def _checked(done: int, program: Program) -> int:
    if done < 0:
        raise OrchestrationError(
            f"Notify overrun: {_notify(program, -done - 1)} is posted while it is still set.",
            "Record it with fewer ranks and call program.linked.check(program).",
            finding="NOTIFY_OVERRUN",
        )
    return done


def _notify(program: Program, cell: int) -> str:
    """Return the notify of a cell and whose it is: `Ack of rank 1 from rank 0`."""
    transports, name = program.transports, notify_name(program, cell)
    if cell >= transports.cells:
        rank = (cell - transports.cells) // len(program.local_notifies.slots)
        return f"{name} of rank {rank}"
    end = cell // transports.stride
    return f"{name} of rank {transports.rank[end]} from rank {transports.peer[end]}"
