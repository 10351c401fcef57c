"""The program of a job: a `Program` that keeps the streams and calls of the job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hccl_py.program.program import Program
from hccl_py.values import IntArray

if TYPE_CHECKING:
    from hccl_py.jobs.job import Job


class CallOn(NamedTuple):
    """A call of one communicator, or of several at once, on the job's stream with this number."""

    label: str
    stream: int


@dataclass(frozen=True, eq=False, repr=False)
class JobProgram(Program):
    """The first streams of every rank are those of the job, then come the communicators' own.

    `call_of_label` has for every label the number of the call whose tasks bear it, -1 for none;
    `job` is the job as it was issued. A program file does not keep these members.
    """

    calls_run: tuple[CallOn, ...] = ()
    call_of_label: tuple[int, ...] = ()
    job: Job | None = None

    def __repr__(self) -> str:
        names = ", ".join(self.stream_names)
        return f"<Program of a job on {names}: {self.ranks} ranks, {self.task_count} tasks>"

    @property
    def call_of_task(self) -> IntArray:
        """The number of the call of every task; -1 for kernels and events, which are the job's."""
        tasks = self.tasks
        of_label = np.array([*self.call_of_label, -1], np.int64)  # no label: the last one
        return of_label[tasks.table.label[tasks.instruction]]
