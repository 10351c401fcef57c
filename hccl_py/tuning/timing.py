"""Timing candidates at many sizes: each with a limited effort, or all of them into a file.

A candidate begins with the smallest and the largest size and goes on between them, so that the
curve of a slow one is coarser and its range the same. The choice of HCCL's rules has no limit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, replace

from hccl_py.documents.disk import PathLike
from hccl_py.orchestration.allowance import Allowance
from hccl_py.tuning.candidates import Candidate
from hccl_py.tuning.points import BEATEN, Outcome, Point, evaluate
from hccl_py.tuning.sweep import Sweep, processes, sweep

INSTRUCTIONS_PER_S, SHARED_TASKS_PER_S = 50_000, 250_000
"""Instructions that are recorded, and tasks that share links simulated, in a second of a core. An
effort in seconds stands for these counts, so that omissions do not depend on the machine.
"""

Outcomes = list[Outcome | None]
"""One for each point of a job; None where its effort was spent."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class TimingJob:
    """A candidate and its points, the most important first."""

    candidate: Candidate
    points: tuple[Point, ...]
    is_hccl: tuple[bool, ...]
    limits_us: tuple[float | None, ...] = ()
    """The time at each point that a candidate has to beat; empty, or None: there is none."""

    @staticmethod
    def of(way: Sequence[tuple[Point, Candidate]]) -> TimingJob:
        """Put the points of one candidate, which come by size, in the order in which they are
        timed.
        """
        order = sorted(_spread(len(way)), key=lambda place: not way[place][1].is_hccl)
        chosen = [way[place] for place in order]
        return TimingJob(
            replace(way[0][1], is_hccl=False),
            tuple(point for point, _ in chosen),
            tuple(one.is_hccl for _, one in chosen),
        )

    def at(self, place: int) -> TimingJob:
        """Return the job of one of the points."""
        return replace(
            self, points=(self.points[place],), is_hccl=(self.is_hccl[place],), limits_us=()
        )

    def without(self, places: Collection[int]) -> TimingJob:
        """Return the job of all other points."""
        kept = [place for place in range(len(self.points)) if place not in places]
        return replace(
            self,
            points=tuple(self.points[place] for place in kept),
            is_hccl=tuple(self.is_hccl[place] for place in kept),
        )

    def to_beat(self, limits_us: Mapping[int, float]) -> TimingJob:
        """Return the job with a time to beat for each size in bytes that has one."""
        found = tuple(limits_us.get(point.call.bytes) for point in self.points)
        return replace(self, limits_us=found)


def _spread(count: int) -> list[int]:
    """Return 0 .. count - 1: the first, the last, then the middles of all gaps, again and again."""
    found = [0, count - 1][: min(count, 2)]
    gaps = [(0, count - 1)]
    while gaps:
        low, high = gaps.pop(0)
        middle = (low + high) // 2
        if middle not in (low, high):
            found.append(middle)
            gaps += [(low, middle), (middle, high)]
    return found


@contextmanager
def workers(
    jobs: int | None, pool: Executor | None, *, here: bool = True
) -> Iterator[Executor | None]:
    """Yield the pool that does the work: the one given, or one of so many processes, which ends
    with the block; None, for this process, where there is one job and it may work `here`.
    """
    if pool is not None or (here and jobs == 1):
        yield pool
        return
    own = processes(jobs)
    try:
        yield own
    finally:
        own.shutdown(cancel_futures=True)


def timed(
    todo: Sequence[TimingJob], effort_s: float | None, pool: Executor | None
) -> Iterator[tuple[int, Outcomes]]:
    """Yield the numbers of jobs with their outcomes as they come; without a pool this process does
    the work.
    """
    if pool is None:
        for number, job in enumerate(todo):
            yield number, _timed(job, effort_s)
        return
    started: dict[Future[Outcomes], int] = {
        pool.submit(_timed, job, effort_s): number for number, job in enumerate(todo)
    }
    for future in as_completed(started):
        yield started[future], future.result()


def _timed(job: TimingJob, effort_s: float | None) -> Outcomes:
    """Time points until the effort is spent, none with more than half of it; give up where the
    first one fails.
    """
    found: Outcomes = []
    spent = 0.0
    limits = job.limits_us or (None,) * len(job.points)
    for point, is_hccl, limit_us in zip(job.points, job.is_hccl, limits, strict=True):
        if effort_s is not None and spent > effort_s and not is_hccl:
            break
        allowance, shared_tasks = Allowance(), None
        if effort_s is not None and not is_hccl:
            allowance = Allowance(int(effort_s / 2 * INSTRUCTIONS_PER_S))
            shared_tasks = int(effort_s * SHARED_TASKS_PER_S)
        outcome = evaluate(point, allowance, shared_tasks, limit_us)
        spent += allowance.spent / INSTRUCTIONS_PER_S
        if point.network == "contended":
            spent += outcome.tasks / SHARED_TASKS_PER_S
        found.append(outcome)
        if not is_hccl and all(one.error not in (None, BEATEN) for one in found if one):
            break
    return found + [None] * (len(job.points) - len(found))


def timed_into(
    path: PathLike,
    todo: Sequence[TimingJob],
    jobs: int | None,
    pool: Executor | None,
    progress: Progress | None,
) -> tuple[list[Outcomes], Sweep]:
    """Time all points that the file does not have, without a limit, by the pool or so many
    processes; return the outcomes of each job too. Raises as `sweep`.
    """
    points = [p for job in todo for p in sorted(job.points, key=lambda point: point.call.bytes)]
    with workers(jobs, pool, here=False) as executor:
        found = sweep(points, path, executor=executor, progress=progress)
    by_key = {
        point.key: outcome for point, outcome in zip(found.points, found.outcomes, strict=True)
    }
    return [[by_key[point.key] for point in job.points] for job in todo], found
