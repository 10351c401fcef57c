"""How much of the communication of a job is hidden behind computation.

compute        ████████████████████████
communication        ████████████▒▒▒▒▒▒▒▒▒▒▒▒    █ overlapped  ▒ exposed
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hccl_py.enums import TaskKind
from hccl_py.errors import ParameterError
from hccl_py.jobs.program import JobProgram
from hccl_py.simulator.timeline import Timeline
from hccl_py.values import Floats


@dataclass(frozen=True, eq=False)
class CallTimes:
    """One call of a job: when its first rank begins and its last one ends, and what is exposed of
    it on the rank where that is most; microseconds.
    """

    label: str
    stream: str
    start_us: float
    end_us: float
    exposed_us: float


@dataclass(frozen=True, eq=False)
class Overlap:
    """Microseconds, one value per rank, and what the calls add to them.

    `total_us` is when the rank is done. `compute_us` is the time in which kernels run,
    `communication_us` that in which a call is under way, waiting for other ranks included, from its
    first task on the job's stream to its last one; `overlapped_us` is both at once, `exposed_us`
    communication without a kernel.
    """

    total_us: Floats
    compute_us: Floats
    communication_us: Floats
    overlapped_us: Floats
    calls: tuple[CallTimes, ...]

    @property
    def exposed_us(self) -> Floats:
        """Communication while no kernel runs."""
        return self.communication_us - self.overlapped_us

    @cached_property
    def worst(self) -> int:
        """The rank with the most exposed communication."""
        return int(np.argmax(self.exposed_us))

    @property
    def hidden(self) -> float:
        """The share of all communication that is overlapped, 1 where there is none."""
        whole = float(self.communication_us.sum())
        return float(self.overlapped_us.sum()) / whole if whole else 1.0


def overlap(timeline: Timeline) -> Overlap:
    """Measure a timeline of a job's program; ParameterError for programs of other make."""
    program = timeline.program
    if not isinstance(program, JobProgram):
        raise ParameterError(
            f"{program!r} does not say which of its tasks are calls.",
            "Time what job.program() returns; program files do not keep it.",
        )
    spans = _Spans(timeline, program)
    measured = [spans.measure(rank) for rank in range(program.ranks)]
    total, compute, communication, both = np.array(measured).reshape(-1, 4).T
    return Overlap(total, compute, communication, both, spans.calls())


class _Spans:
    """Begin and end of the kernels and of the calls of every rank."""

    def __init__(self, timeline: Timeline, program: JobProgram) -> None:
        tasks = program.tasks
        self._timeline, self._program, self._first = timeline, program, tasks.first
        self._is_kernel = tasks.kind == TaskKind.COMPUTE
        call = program.call_of_task
        stream = np.array([c.stream for c in program.calls_run] + [-1])
        # Sub streams wait for their call long before it begins.
        self._call = np.where(stream[call] == tasks.stream, call, -1)
        shape = program.ranks, len(program.calls_run)
        self._exposed = np.zeros(shape)
        self._start, self._end = np.full(shape, np.inf), np.full(shape, -np.inf)

    def measure(self, rank: int) -> tuple[float, float, float, float]:
        """Return total, compute, communication and overlapped time of a rank."""
        rows = slice(self._first[rank], self._first[rank + 1])
        start, end = self._timeline.start_us[rows], self._timeline.end_us[rows]
        kernel, call = self._is_kernel[rows], self._call[rows]
        compute = _Busy(start[kernel], end[kernel])
        mine = call >= 0
        begin, finish = self._start[rank], self._end[rank]
        np.minimum.at(begin, call[mine], start[mine])
        np.maximum.at(finish, call[mine], end[mine])
        made = begin <= finish
        communication = _Busy(begin[made], finish[made])
        self._exposed[rank, made] = finish[made] - begin[made]
        self._exposed[rank, made] -= compute.until(finish[made]) - compute.until(begin[made])
        both = compute.until(communication.end) - compute.until(communication.start)
        return end.max(initial=0.0), compute.total, communication.total, float(both.sum())

    def calls(self) -> tuple[CallTimes, ...]:
        """Return the calls with tasks, after all ranks are measured."""
        names = self._program.stream_names
        return tuple(
            CallTimes(
                call.label,
                names[call.stream],
                float(self._start[:, number].min()),
                float(self._end[:, number].max()),
                float(self._exposed[:, number].max()),
            )
            for number, call in enumerate(self._program.calls_run)
            if (self._start[:, number] <= self._end[:, number]).any()
        )


class _Busy:
    """The time that spans cover, as spans apart from each other, in order."""

    def __init__(self, start: Floats, end: Floats) -> None:
        some = end > start
        order = np.argsort(start[some], kind="stable")
        start, end = start[some][order], np.maximum.accumulate(end[some][order])
        opens = np.append(True, start[1:] > end[:-1])[: len(start)]
        self.start = start[opens]
        self.end = end[np.append(opens[1:], True)[: len(start)]]

    @property
    def total(self) -> float:
        """Microseconds that are covered."""
        return float((self.end - self.start).sum())

    def until(self, at_us: Floats) -> Floats:
        """Return the microseconds that are covered before each moment."""
        if not len(self.start):
            return np.zeros(len(at_us))
        edges = np.stack([self.start, self.end], axis=1).reshape(-1)
        done = np.cumsum(self.end - self.start)
        covered = np.stack([np.append(0.0, done[:-1]), done], axis=1).reshape(-1)
        found: Floats = np.interp(at_us, edges, covered)
        return found
