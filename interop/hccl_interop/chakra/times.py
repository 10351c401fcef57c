"""When the kernels and calls of a job begin and end, as a timeline of its program says."""

from __future__ import annotations

import numpy as np

from hccl_py.enums import TaskKind
from hccl_py.errors import ParameterError
from hccl_py.jobs import JobProgram
from hccl_py.simulator.timeline import Timeline


class JobTimes:
    """Microseconds from the beginning of the job; ParameterError for a program of other make."""

    def __init__(self, timeline: Timeline) -> None:
        program = timeline.program
        if not isinstance(program, JobProgram):
            raise ParameterError(
                f"{program!r} does not say which of its tasks are calls.",
                "Time what job.program() returns; program files do not keep it.",
            )
        tasks = program.tasks
        self._timeline, self._calls = timeline, max(len(program.calls_run), 1)
        kernels = np.flatnonzero(tasks.kind == TaskKind.COMPUTE)
        self._kernels = kernels[np.lexsort((kernels, tasks.stream[kernels], tasks.rank[kernels]))]
        self._streams = int(tasks.stream.max(initial=0)) + 1
        self._place = tasks.rank[self._kernels] * self._streams + tasks.stream[self._kernels]
        call = program.call_of_task
        stream = np.array([found.stream for found in program.calls_run] + [-1])
        rows = np.flatnonzero((call >= 0) & (stream[call] == tasks.stream))
        keys = tasks.rank[rows] * self._calls + call[rows]
        self._start = np.full(program.ranks * self._calls, np.inf)
        self._end = np.full(program.ranks * self._calls, -np.inf)
        np.minimum.at(self._start, keys, timeline.start_us[rows])
        np.maximum.at(self._end, keys, timeline.end_us[rows])

    def kernel(self, rank: int, stream: int, number: int) -> tuple[float, float]:
        """Return begin and end of a rank's kernel, the k-th on its stream."""
        first = int(np.searchsorted(self._place, rank * self._streams + stream))
        row = self._kernels[first + number]
        return float(self._timeline.start_us[row]), float(self._timeline.end_us[row])

    def call(self, rank: int, number: int) -> tuple[float, float]:
        """Return begin and end of the k-th call of the job on a rank."""
        at = rank * self._calls + number
        return float(self._start[at]), float(self._end[at])
