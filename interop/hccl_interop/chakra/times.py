"""Begin and end of the kernels and calls of a job, from a timeline of its program."""

from __future__ import annotations

import numpy as np

from hccl_py.enums import TaskKind
from hccl_py.jobs.overlap import call_spans
from hccl_py.simulator.timeline import Timeline


class JobTimes:
    """Microseconds from the beginning of the job; ParameterError for a timeline of no job."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._call_start, self._call_end = call_spans(timeline)
        tasks = timeline.program.tasks
        kernels = np.flatnonzero(tasks.kind == TaskKind.COMPUTE)
        self._kernels = kernels[np.lexsort((kernels, tasks.stream[kernels], tasks.rank[kernels]))]
        self._streams = int(tasks.stream.max(initial=0)) + 1
        self._queue = tasks.rank[self._kernels] * self._streams + tasks.stream[self._kernels]

    def kernel(self, rank: int, stream: int, number: int) -> tuple[float, float]:
        """Return begin and end of a rank's kernel, the k-th on its stream."""
        first = int(np.searchsorted(self._queue, rank * self._streams + stream))
        row = self._kernels[first + number]
        return float(self._timeline.start_us[row]), float(self._timeline.end_us[row])

    def call(self, rank: int, number: int) -> tuple[float, float]:
        """Return begin and end of the k-th call of the job on a rank."""
        return float(self._call_start[rank, number]), float(self._call_end[rank, number])
