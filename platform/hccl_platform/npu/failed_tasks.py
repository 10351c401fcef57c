"""Failed tasks of runs: from the runtime's numbers to rank, stream and peer."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field

from hccl_platform.lowering.part import Cell
from hccl_platform.npu.acl import TASK_TIMEOUT
from hccl_platform.npu.driver import TaskError
from hccl_platform.npu.issue import IssueList
from hccl_py.errors import ExecTimeoutError, HcclError, PeerLostError
from hccl_py.program.describe import format_stream

_RUNS = 64
"""Runs whose tasks are kept."""

_CAUSE_S = 1.0
"""Seconds that a rank whose streams wait for each other waits for the failure of another task: the
runtime reports every stream by itself, in any order.
"""


@dataclass(frozen=True, eq=False)
class IssuedRun:
    """A run that was enqueued, with the runtime's numbers of its tasks, in order, and streams."""

    issued: IssueList
    tag: str
    streams: tuple[int, ...]
    tasks: list[int] = field(default_factory=list)


class History:
    """The last runs of a session, and the tasks that have failed since it was opened."""

    def __init__(self, rank: int, limit_s: float) -> None:
        self._rank, self._limit_s = rank, limit_s
        self._runs: deque[IssuedRun] = deque(maxlen=_RUNS)
        self._failed: deque[TaskError] = deque(maxlen=_RUNS)
        self._noted = threading.Condition()

    def begin(self, run: IssuedRun) -> None:
        """Add a run, before its first task is enqueued."""
        self._runs.append(run)

    def note(self, failed: TaskError) -> None:
        """Add a task that has failed; called from any thread."""
        with self._noted:
            self._failed.append(failed)
            self._noted.notify_all()

    @property
    def has_failed(self) -> bool:
        """True if the runtime has reported a failed task of these runs."""
        return bool(self._known())

    def error(self, why: str) -> HcclError:
        """Return the error of the task that failed first; `why` describes it if the runtime has
        reported none.
        """
        with self._noted:
            known = self._known()
            if known and self._is_between_own_streams(known[0]):
                self._noted.wait_for(
                    lambda: not self._is_between_own_streams(self._known()[0]), _CAUSE_S
                )
                known = self._known()
        if known:
            return self._worded(*known[0])
        return PeerLostError(
            f"Rank {self._rank}: {why}", "The device's log (plog) says more; start the job anew."
        )

    def _known(self) -> list[tuple[IssuedRun, int, TaskError]]:
        """Return the failed tasks of these runs; waits for streams of this rank come last."""
        failures = [(self._found(failed), failed) for failed in tuple(self._failed)]
        known = [(*found, failed) for found, failed in failures if found is not None]
        return sorted(known, key=self._is_between_own_streams)

    def _found(self, failed: TaskError) -> tuple[IssuedRun, int] | None:
        """Return the latest run with a task of this number and stream, and the task's place."""
        for run in reversed(tuple(self._runs)):
            for at, number in enumerate(run.tasks):
                entry = run.issued.entries[at]
                if number == failed.task and run.streams[entry.stream] == failed.stream:
                    return run, at
        return None

    def _is_between_own_streams(self, known: tuple[IssuedRun, int, TaskError]) -> bool:
        """True if a task waits for this rank itself: then it is a consequence, hardly the cause."""
        run, at, _ = known
        cell = self._cell(run.issued, at)
        return cell is not None and cell.waiter == cell.poster

    @staticmethod
    def _cell(issued: IssueList, at: int) -> Cell | None:
        """Return the cell of a post or wait; None for other tasks."""
        entry = issued.entries[at]
        if entry.dst is not None:
            return None
        stream = issued.part.streams[entry.stream]
        return issued.part.cells[next(t.number for t in stream if t.place == entry.place)]

    def _worded(self, run: IssuedRun, at: int, failed: TaskError) -> HcclError:
        issued, entry = run.issued, run.issued.entries[at]
        where = (
            f"rank {self._rank}, {format_stream(entry.stream)}, task {entry.place} of "
            f"{issued.title}, tag {run.tag}"
        )
        cell = self._cell(issued, at)
        if cell is not None:
            other = cell.waiter if entry.is_post else cell.poster
            whose = f"rank {other}" if other != self._rank else "another stream of this rank"
            way = "for" if entry.is_post else "from"
            what = "post" if entry.is_post else "wait"
            peer = f"{what} of notify {cell.notify} {way} {whose}"
        else:
            owners = {
                slot // issued.buffers
                for t in issued.part.streams[entry.stream]
                if t.place == entry.place
                for slot in (
                    int(issued.part.moves.dst[t.number]),
                    int(issued.part.moves.src[t.number]),
                )
            }
            others = sorted(owners - {self._rank})
            what = "reduction" if entry.how else "copy"
            peer = f"{what} of {entry.size} bytes"
            peer += f" with rank {others[0]}" if others else ""
        if failed.error == TASK_TIMEOUT:
            return ExecTimeoutError(
                f"A task took longer than {self._limit_s:g} s: {peer}, {where}.",
                "See whether that rank runs. HCCL_EXEC_TIMEOUT limits the time of waits.",
            )
        return PeerLostError(
            f"A task failed with error {failed.error}: {peer}, {where}.",
            "The device or its link is lost: see `npu-smi info`; start the job anew.",
        )
