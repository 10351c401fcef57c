"""Overlapped and exposed communication of a job.

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
    """One call of a job, in microseconds: the begin of its first rank, the end of its last one, and
    the exposed time on the rank where that is longest.
    """

    label: str
    stream: str
    start_us: float
    end_us: float
    exposed_us: float


@dataclass(frozen=True, eq=False)
class Overlap:
    """Microseconds, one value per rank, and the times of every call.

    `total_us` is the end of the rank's last task. `compute_us` is the time in which kernels run,
    `communication_us` the time in which a call is under way, waiting for other ranks included, from
    its first task on the job's stream to its last one; `overlapped_us` is both at once,
    `exposed_us` communication without a kernel.
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
    """Measure a timeline of a job's program; ParameterError for any other program."""
    program = _job_program(timeline)
    spans = call_spans(timeline)
    start, end = spans
    exposed = np.zeros_like(start)
    measured = [_measured(timeline, rank, spans, exposed) for rank in range(program.ranks)]
    total, compute, communication, both = np.array(measured).reshape(-1, 4).T
    calls = tuple(
        CallTimes(
            call.label,
            program.stream_names[call.stream],
            float(start[:, number].min()),
            float(end[:, number].max()),
            float(exposed[:, number].max()),
        )
        for number, call in enumerate(program.calls_run)
        if (start[:, number] <= end[:, number]).any()
    )
    return Overlap(total, compute, communication, both, calls)


def _job_program(timeline: Timeline) -> JobProgram:
    program = timeline.program
    if not isinstance(program, JobProgram):
        raise ParameterError(
            f"{program!r} does not say which of its tasks are calls.",
            "Time what job.program() returns; program files do not keep it.",
        )
    return program


def call_spans(timeline: Timeline) -> tuple[Floats, Floats]:
    """Return begin and end of every call, [ranks, calls], in microseconds; infinity and -infinity
    where a rank has no task of the call. ParameterError for a timeline of no job.

    Tasks on the job's stream count alone: sub streams wait for their call long before it begins.
    """
    program = _job_program(timeline)
    tasks, call = program.tasks, program.call_of_task
    stream = np.array([one.stream for one in program.calls_run] + [-1])
    rows = np.flatnonzero((call >= 0) & (stream[call] == tasks.stream))
    at = tasks.rank[rows], call[rows]
    start = np.full((program.ranks, len(program.calls_run)), np.inf)
    end = -start
    np.minimum.at(start, at, timeline.start_us[rows])
    np.maximum.at(end, at, timeline.end_us[rows])
    return start, end


def _measured(
    timeline: Timeline, rank: int, spans: tuple[Floats, Floats], exposed: Floats
) -> tuple[float, float, float, float]:
    """Return total, compute, communication and overlapped time of a rank, and set its row of
    `exposed`, [ranks, calls].
    """
    tasks = timeline.program.tasks
    rows = slice(tasks.first[rank], tasks.first[rank + 1])
    start, end = timeline.start_us[rows], timeline.end_us[rows]
    is_kernel = tasks.kind[rows] == TaskKind.COMPUTE
    compute = _Busy(start[is_kernel], end[is_kernel])
    begin, finish = (span[rank] for span in spans)
    made = begin <= finish
    begin, finish = begin[made], finish[made]
    communication = _Busy(begin, finish)
    exposed[rank, made] = finish - begin - (compute.until(finish) - compute.until(begin))
    both = compute.until(communication.end) - compute.until(communication.start)
    return end.max(initial=0.0), compute.total, communication.total, float(both.sum())


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
