"""Comparing: every way in which a call can run, at every size, by simulation.

    found = compare(Point(op="all_reduce", bytes=0, ranks=8, cost=CostModel.of("")), [1 << 20])

A candidate has a limited effort, in seconds of a core. It begins with the largest and the smallest
size and goes on between them, so that where it takes long its curve is coarser and its range the
same; what is left out is told. What HCCL's rules choose comes first, without a limit.

Without contention links carry any number of flows at once, and no machine does that: a time that is
less than what the program's busiest link needs counts as that.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import Executor, Future, as_completed
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property

from hccl_py.discovery import installed_executors
from hccl_py.errors import NotSupportedError, ParameterError, did_you_mean
from hccl_py.op_param import OpParam
from hccl_py.operators import make_operator
from hccl_py.selection.select import Selection, select
from hccl_py.topology.topology import Topology
from hccl_py.tuning.candidates import Candidate, candidates
from hccl_py.tuning.points import ANY_EFFORT, Effort, Outcome, Point, evaluate
from hccl_py.tuning.sweep import processes

__all__ = ["EFFORT_S", "Comparison", "LeftOut", "Row", "compare"]

EFFORT_S = 2.0
"""Seconds of a core for all sizes of one candidate together."""

SHARED_TASKS_PER_S = 250_000
"""What contended simulation is taken to do in a second."""


@dataclass(frozen=True)
class Row:
    """One candidate at one size."""

    candidate: Candidate
    point: Point
    outcome: Outcome
    is_winner: bool = False

    @property
    def bytes(self) -> int:
        """The data size that the call really has."""
        return self.outcome.bytes

    @property
    def time_us(self) -> float:
        """The simulated time, or what the busiest link needs where that is more."""
        return self.outcome.time_us

    @property
    def times_bound(self) -> float | None:
        """The time over the lower bound; None where that is 0."""
        bound = self.outcome.lower_bound_us
        return self.time_us / bound if bound else None


@dataclass(frozen=True)
class LeftOut:
    """A candidate that was not timed at some sizes, in bytes, and why."""

    candidate: Candidate
    sizes: tuple[int, ...]
    reason: str


@dataclass(frozen=True)
class Comparison:
    """All rows by size, the fastest first; what was left out, and notes on what HCCL does. `op` is
    the call at the smallest size.
    """

    point: Point
    op: OpParam
    topology: Topology
    rows: tuple[Row, ...]
    left_out: tuple[LeftOut, ...]
    notes: tuple[str, ...]
    spent_s: float

    @cached_property
    def by_size(self) -> dict[int, list[Row]]:
        """The rows of each size."""
        found: dict[int, list[Row]] = {}
        for row in self.rows:
            found.setdefault(row.bytes, []).append(row)
        return found

    @cached_property
    def winners(self) -> dict[int, Row]:
        """The fastest of each size."""
        return {row.bytes: row for row in self.rows if row.is_winner}

    @cached_property
    def hccl(self) -> dict[int, Row]:
        """What HCCL's rules choose at each size where that was timed."""
        return {row.bytes: row for row in self.rows if row.candidate.is_hccl}

    def left_out_lines(self) -> list[str]:
        """Say what was left out, candidates with the same reason together, and who of them is the
        fastest where it was timed.
        """
        best = {row.candidate.name for row in self.winners.values()}
        reasons: dict[tuple[str, int], list[str]] = {}
        for one in self.left_out:
            name = one.candidate.name
            name += " (the fastest at others)" if name in best else ""
            reasons.setdefault((one.reason, len(one.sizes)), []).append(name)
        return [
            f"left out at {missing} of {len(self.by_size)} sizes: {', '.join(names)}. {reason}"
            for (reason, missing), names in reasons.items()
        ]

    def cost_of_rules(self, size: int) -> float | None:
        """Return the time of what HCCL's rules choose over that of the winner; None where it was
        not timed.
        """
        chosen, best = self.hccl.get(size), self.winners[size]
        return chosen.time_us / best.time_us if chosen and best.time_us else None


@dataclass(frozen=True)
class _Job:
    """A candidate and the points to time it at, those first that matter most."""

    candidate: Candidate
    points: tuple[Point, ...]
    is_hccl: tuple[bool, ...]


def compare(
    point: Point,
    sizes: Iterable[int],
    *,
    executors: Collection[str] = (),
    effort_s: float | None = EFFORT_S,
    jobs: int | None = None,
    pool: Executor | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Time every candidate of a point's call at every data size in bytes.

    `executors` names those that take part, by default all that suit. `effort_s` is in seconds for
    each candidate, None for any. The work is done by `pool`, or by `jobs` processes, or by as many
    as there are cores; with one job in this process. `progress` is called with how many candidates
    are done, and of how many. Raises ParameterError for unknown executors, NotSupportedError where
    nothing suits, and what `select` raises for an illegal call.
    """
    began = time.perf_counter()
    topology = point.machine()
    todo, notes = _planned(point, sorted(set(sizes)), topology, executors)
    found: list[tuple[_Job, list[Outcome | None]]] = []
    for job, outcomes in _worked(todo, effort_s, jobs, pool):
        found.append((job, outcomes))
        if progress is not None:
            progress(len(found), len(todo))
    rows = [row for job, outcomes in found for row in _rows(job, outcomes)]
    left = [one for job, outcomes in found for one in _left_out(job, outcomes)]
    if not rows:
        raise NotSupportedError(
            f"No candidate of {point.op} could be timed.",
            f"{left[0].candidate.name}: {left[0].reason}" if left else "See `hccl-py list`.",
        )
    left.sort(key=lambda one: one.candidate.name)
    spent = time.perf_counter() - began
    ranked = _ranked(rows)
    op = ranked[0].point.call(topology.size)
    return Comparison(point, op, topology, ranked, tuple(left), notes, spent)


def _planned(
    point: Point, sizes: Sequence[int], topology: Topology, executors: Collection[str]
) -> tuple[list[_Job], tuple[str, ...]]:
    """Return the jobs and what is to be said of HCCL's choices; sizes that make the same call are
    one.
    """
    registry = installed_executors()
    _check_names(point.op, executors)
    ways: dict[tuple[str, str], list[tuple[Point, Candidate]]] = {}
    notes: dict[str, None] = {}
    seen = set()
    for size in sizes:
        at = point.model_copy(update={"bytes": size})
        op = at.call(topology.size)
        if op in seen:
            continue
        seen.add(op)
        config = point.config.model_copy(update={"strict": False})
        chosen, _ = select(op, topology, config, registry)
        notes |= dict.fromkeys(_notes(chosen))
        for one in candidates(op, topology, config, registry):
            if one.executor in executors or not executors:
                update = {"executor": one.executor, "levels": one.levels}
                ways.setdefault((one.executor, one.name), []).append(
                    (at.model_copy(update=update), one)
                )
    return [_job(way) for way in ways.values()], tuple(notes)


def _check_names(op: str, executors: Collection[str]) -> None:
    """Refuse names that no executor of the op has."""
    registry, served = installed_executors(), make_operator(op).runs_as
    known = [r.name for r in registry.for_op(served)]
    for name in executors:
        if name not in known:
            hint = did_you_mean(name, known)
            raise ParameterError(f"{op} has no executor {name!r}.", hint)


def _notes(chosen: Selection) -> list[str]:
    """Return why what HCCL takes is not what its rules choose here."""
    if chosen.refusal:
        return [f"HCCL refuses the call with {chosen.result}: {chosen.refusal}"]
    if chosen.hccl_executor != chosen.executor:
        return [chosen.reasons[-1]]
    return []


def _job(way: list[tuple[Point, Candidate]]) -> _Job:
    """Put the points of one candidate in the order in which they are timed."""
    order = _spread(len(way))
    order.sort(key=lambda place: not way[place][1].is_hccl)
    points = tuple(way[place][0] for place in order)
    return _Job(
        replace(way[0][1], is_hccl=False), points, tuple(way[place][1].is_hccl for place in order)
    )


def _spread(count: int) -> list[int]:
    """Return 0 .. count - 1: the last, the first, then again and again what lies in the middle."""
    found = [count - 1, 0][: min(count, 2)]
    gaps = [(0, count - 1)]
    while gaps:
        low, high = gaps.pop(0)
        middle = (low + high) // 2
        if middle not in (low, high):
            found.append(middle)
            gaps += [(low, middle), (middle, high)]
    return found


def _worked(
    todo: list[_Job], effort_s: float | None, jobs: int | None, pool: Executor | None
) -> Iterable[tuple[_Job, list[Outcome | None]]]:
    """Yield jobs with their outcomes as they come."""
    if pool is None and jobs == 1:
        for job in todo:
            yield job, _timed(job, effort_s)
        return
    with ExitStack() as stack:
        workers = pool or stack.enter_context(processes(jobs))
        started: dict[Future[list[Outcome | None]], _Job] = {
            workers.submit(_timed, job, effort_s): job for job in todo
        }
        for future in as_completed(started):
            yield started[future], future.result()


def _timed(job: _Job, effort_s: float | None) -> list[Outcome | None]:
    """Time points until the effort is spent; None for those that are left."""
    limit = Effort(effort_s, None if effort_s is None else int(effort_s * SHARED_TASKS_PER_S))
    found: list[Outcome | None] = []
    spent = 0.0
    for point, is_hccl in zip(job.points, job.is_hccl, strict=True):
        if effort_s is not None and spent > effort_s and not is_hccl:
            break
        began = time.process_time()
        outcome = evaluate(point, ANY_EFFORT if is_hccl else limit)
        if found:  # the first simulation of a process loads compiled code, later ones do not
            spent += time.process_time() - began
        found.append(outcome)
        if outcome.error is not None:
            break
    return found + [None] * (len(job.points) - len(found))


def _rows(job: _Job, outcomes: list[Outcome | None]) -> list[Row]:
    return [
        Row(replace(job.candidate, is_hccl=is_hccl, algorithm=outcome.algorithm), point, outcome)
        for point, is_hccl, outcome in zip(job.points, job.is_hccl, outcomes, strict=True)
        if outcome is not None and outcome.error is None
    ]


def _left_out(job: _Job, outcomes: list[Outcome | None]) -> list[LeftOut]:
    """Return the sizes that have no time, and why."""
    missing = [
        point.bytes
        for point, outcome in zip(job.points, outcomes, strict=True)
        if outcome is None or outcome.error is not None
    ]
    if not missing:
        return []
    done = [outcome for outcome in outcomes if outcome is not None]
    errors = [outcome.error for outcome in done if outcome.error is not None]
    slowest = max(outcome.record_s + outcome.simulate_s for outcome in done)
    reason = errors[0] if errors else f"One size took {slowest:.1f} s."
    return [LeftOut(job.candidate, tuple(sorted(missing)), reason)]


def _ranked(rows: list[Row]) -> tuple[Row, ...]:
    """Return rows by size, the fastest first, with the winners marked: of equal times HCCL's
    choice, then by name.
    """
    rows = sorted(rows, key=_order)
    winners: dict[int, Row] = {}
    for row in rows:
        winners.setdefault(row.bytes, row)
    return tuple(replace(row, is_winner=row is winners[row.bytes]) for row in rows)


def _order(row: Row) -> tuple[int, float, bool, str]:
    """Times that differ in the last digits only are equal."""
    return row.bytes, float(f"{row.time_us:.9g}"), not row.candidate.is_hccl, row.candidate.name
