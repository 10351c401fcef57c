"""Comparison of all candidates for a call, at every size, by simulation.

    call = CallSpec("all_reduce", cluster=ClusterSpec(ranks=8))
    found = compare(Point(call=call, cost=CostModel.of("atlas-800t-a2")), [1 << 20])

A candidate has a limited effort, in seconds of a core (see `timing`); one that is the fastest at
some size has as much again for each size that it lacks. Omissions are listed. With a file there is
no limit: every point is timed, and a comparison that was killed goes on.

The choice of HCCL's rules is timed first. A large program whose busiest link alone needs longer
cannot win: it is not simulated, unless every candidate is wanted.

Without contention links carry any number of flows at once, which no machine can: a time below that
of the program's busiest link counts as the link's.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property

from hccl_py.call.op_param import OpParam
from hccl_py.clocks.cost import ENGINES
from hccl_py.clocks.engines import usual_engine
from hccl_py.clocks.measured import Accuracy, TimedCallFacts, accuracy_of
from hccl_py.documents.disk import PathLike, format_path
from hccl_py.errors import NotSupportedError, ParameterError, did_you_mean
from hccl_py.plugins.authors import author_class
from hccl_py.plugins.discovery import installed_executors
from hccl_py.selection.answer import Selection
from hccl_py.selection.select import select
from hccl_py.topology.topology import Topology
from hccl_py.trace.units import format_share, format_size
from hccl_py.tuning.candidates import Candidate, candidates
from hccl_py.tuning.points import BEATEN, Outcome, Point
from hccl_py.tuning.recording import rounded_us
from hccl_py.tuning.sweep import GRACE_S
from hccl_py.tuning.timing import Outcomes, Progress, TimingJob, timed, timed_into, workers

ENDED = "Ctrl-C came before."

MOST_NAMED = 6
"""Candidates that a remark names."""

EFFORT_S = 1.0
"""Seconds of a core for all sizes of one candidate together."""


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
        """The simulated time, or that of the busiest link where that is longer."""
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
    """All rows by size, the fastest first; candidates left out, and notes on the choices of HCCL.

    `op` is the call at the smallest size.
    """

    point: Point
    op: OpParam
    topology: Topology
    rows: tuple[Row, ...]
    left_out: tuple[LeftOut, ...]
    notes: tuple[str, ...]
    spent_s: float
    is_partial: bool = False
    """True if Ctrl-C ended it before all candidates were tried."""

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
        """The choice of HCCL's rules at each size where it was timed."""
        return {row.bytes: row for row in self.rows if row.candidate.is_hccl}

    def accuracy(self, size: int) -> Accuracy:
        """Return the accuracy of the times at a size."""
        call = TimedCallFacts(
            op=self.op.name,
            bytes=size,
            ranks=self.topology.size,
            engine=usual_engine(self.topology),
            network=self.point.network,
        )
        return accuracy_of(self.point.cost.measured, call)

    def is_at_floor(self, row: Row) -> bool:
        """True if a call takes the least time of any call of its engine."""
        engines = self.point.cost.engines
        floors = [engines.of(name).call_us for name in ENGINES]
        return any(us and rounded_us(us) == rounded_us(row.time_us) for us in floors)

    def ties(self, row: Row) -> bool:
        """True if a row that is not the fastest differs from it by less than times are true."""
        best, band = self.winners[row.bytes], self.accuracy(row.bytes).band or 0.0
        is_level = self.is_at_floor(row) or row.time_us <= best.time_us * (1 + band)
        return band > 0 and not row.is_winner and is_level

    @property
    def remarks(self) -> list[str]:
        """Remarks for below a table of the rows."""
        return [*self._level(), *self._by_link(), *self.notes, *self._left_out()]

    def _level(self) -> list[str]:
        """Return a sentence with the number of candidates of each size that are ties."""
        tied: dict[float, list[str]] = {}
        for size, rows in self.by_size.items():
            count, band = sum(map(self.ties, rows)), self.accuracy(size).band
            if count and band is not None:
                tied.setdefault(band, []).append(f"{count + 1} at {format_size(size)}")
        floor = [format_size(size) for size, row in self.winners.items() if self.is_at_floor(row)]
        return [
            f"ties, as times within {format_share(band)} are not told apart: {', '.join(counts)}"
            for band, counts in tied.items()
        ] + [f"at the call's floor, where programs do not differ: {', '.join(floor)}"] * bool(floor)

    def _by_link(self) -> list[str]:
        """Name the candidates whose times are those of their busiest links."""
        bound = [
            row for row in self.rows if row.outcome.busiest_us > (row.outcome.simulated_us or 0)
        ]
        names = dict.fromkeys(row.candidate.name for row in bound)
        if not names:
            return []
        return [
            f"as long as their busiest links need, which is more than every flow alone: "
            f"{', '.join(names)}. --network contended times them exactly."
        ]

    def _left_out(self) -> list[str]:
        """Name some of the candidates left out by reason, those first that are the fastest at
        other sizes.
        """
        best = {row.candidate.name for row in self.winners.values()}
        sizes, reasons = len(self.by_size), dict[str, list[str]]()
        for one in sorted(self.left_out, key=lambda one: one.candidate.name not in best):
            name = one.candidate.name
            name += " (the fastest at others)" if name in best else ""
            name = f"{name} at {len(one.sizes)}" if sizes > 1 else name
            reasons.setdefault(one.reason, []).append(name)
        found = []
        for reason, names in reasons.items():
            rest = len(names) - MOST_NAMED
            said = ", ".join(names[:MOST_NAMED]) + (
                f" and {rest} more (--json)" if rest > 0 else ""
            )
            of_sizes = f"left out, of {sizes} sizes: {said}. {reason}"
            found.append(of_sizes if sizes > 1 else f"left out: {said}. {reason}")
        return found

    def cost_of_rules(self, size: int) -> float | None:
        """Return the time of HCCL's choice over that of the winner; None where it was not timed."""
        chosen, best = self.hccl.get(size), self.winners[size]
        return chosen.time_us / best.time_us if chosen and best.time_us else None


def compare(
    point: Point,
    sizes: Iterable[int],
    *,
    executors: Collection[str] = (),
    own: str | None = None,
    effort_s: float | None = EFFORT_S,
    every: bool = False,
    out: PathLike | None = None,
    jobs: int | None = None,
    pool: Executor | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Time every candidate of a point's call at every data size in bytes.

    `executors` names those that take part, by default all that suit; `own` is `module:Class` of the
    current folder, which takes part beside them. `effort_s` is in seconds for each candidate, None
    for any. `every` times those that cannot win, too. `out` is a file of a sweep, .csv or .parquet:
    then every point is timed, but those that it has. The work is done by `pool`, or by `jobs`
    processes, or by as many as there are cores; with one job and no file in this process.
    `progress` is called with how many candidates, or points of the file, are done, and of how many.
    Ctrl-C ends it with what was timed by then, once the choice of HCCL's rules is. Raises
    ParameterError for unknown executors, NotSupportedError where nothing suits, and as `select` and
    `sweep`.
    """
    began = time.perf_counter()
    topology = point.call.topology()
    todo, notes = _planned(point, sorted(set(sizes)), topology, executors, own)
    is_partial = False
    if out is None:
        with workers(jobs, pool) as workforce:
            tried = _LimitedComparison(todo, effort_s, workforce, progress, every=every)
            is_partial = not tried.run()
        found = tried.found
    else:
        found, swept = timed_into(out, todo, jobs, pool, progress)
        notes += (
            f"{swept.computed} of {len(swept.points)} points timed, all are in {format_path(out)}",
        )
    rows = [row for at in zip(todo, found, strict=True) for row in _rows(*at)]
    left = [one for at in zip(todo, found, strict=True) for one in _left_out(*at)]
    if not rows:
        raise NotSupportedError(
            f"No candidate of {point.call.op} could be timed.",
            f"{left[0].candidate.name}: {left[0].reason}" if left else "See `hccl-py list`.",
        )
    left.sort(key=lambda one: one.candidate.name)
    spent = time.perf_counter() - began
    ranked = _ranked(rows)
    op = ranked[0].point.call.param(topology.size)
    return Comparison(point, op, topology, ranked, tuple(left), notes, spent, is_partial)


class _LimitedComparison:
    """The jobs of a comparison with a limited effort, and the outcomes of each; `every` job is
    wanted, or only those that can win.
    """

    def __init__(
        self,
        todo: list[TimingJob],
        effort_s: float | None,
        pool: Executor | None,
        progress: Progress | None,
        *,
        every: bool,
    ) -> None:
        self._todo, self._effort_s, self._pool = todo, effort_s, pool
        self._progress, self._every = progress, every
        self.found: list[Outcomes] = [[None] * len(job.points) for job in todo]

    def run(self) -> bool:
        """Time the choices of HCCL's rules, all others, then the sizes that the fastest lack;
        return False where Ctrl-C ended that.
        """
        chosen = [
            (number, place)
            for number, job in enumerate(self._todo)
            for place, is_hccl in enumerate(job.is_hccl)
            if is_hccl
        ]
        self._tell(0)
        self._time(chosen, self._effort_s)
        try:
            with _ending_with_ctrl_c():
                self._time_others(chosen)
                if self._effort_s is not None:
                    self._time(self._lacking(), 2 * self._effort_s)
        except KeyboardInterrupt:
            return False
        return True

    def _tell(self, done: int) -> None:
        if self._progress is not None:
            self._progress(done, len(self._todo))

    def _time(self, places: list[tuple[int, int]], effort_s: float | None) -> None:
        jobs = [self._todo[number].at(place) for number, place in places]
        for which, (outcome,) in timed(jobs, effort_s, self._pool):
            number, place = places[which]
            self.found[number][place] = outcome

    def _time_others(self, chosen: list[tuple[int, int]]) -> None:
        """Time the points that HCCL's rules do not choose, up to the time that those take."""
        limits = {} if self._every else self._limits(chosen)
        done: list[set[int]] = [set() for _ in self._todo]
        for number, place in chosen:
            done[number].add(place)
        jobs = [
            job.without(places).to_beat(limits)
            for job, places in zip(self._todo, done, strict=True)
        ]
        for count, (number, outcomes) in enumerate(timed(jobs, self._effort_s, self._pool), 1):
            open_places = [p for p in range(len(self.found[number])) if p not in done[number]]
            for place, outcome in zip(open_places, outcomes, strict=True):
                self.found[number][place] = outcome
            self._tell(count)

    def _limits(self, chosen: list[tuple[int, int]]) -> dict[int, float]:
        """Return the time of the choice of HCCL's rules at each size where it was timed."""
        limits = {}
        for number, place in chosen:
            outcome = self.found[number][place]
            if outcome is not None and outcome.error is None:
                limits[self._todo[number].points[place].call.bytes] = outcome.time_us
        return limits

    def _lacking(self) -> list[tuple[int, int]]:
        """Return the points of the fastest candidates that have no time, and might win."""
        pairs = zip(self._todo, self.found, strict=True)
        ranked = _ranked([row for at in pairs for row in _rows(*at)])
        best = {row.candidate.name for row in ranked if row.is_winner}
        return [
            (number, place)
            for number, outcomes in enumerate(self.found)
            if self._todo[number].candidate.name in best
            for place, outcome in enumerate(outcomes)
            if outcome is None or outcome.error not in (None, BEATEN)
        ]


@contextmanager
def _ending_with_ctrl_c() -> Iterator[None]:
    """Raise KeyboardInterrupt where a pool breaks because Ctrl-C ended its workers first."""
    try:
        yield
    except BrokenExecutor as error:
        time.sleep(GRACE_S)
        raise error


def _planned(
    point: Point,
    sizes: Sequence[int],
    topology: Topology,
    executors: Collection[str],
    own: str | None,
) -> tuple[list[TimingJob], tuple[str, ...]]:
    """Return the jobs and notes on HCCL's choices; sizes that make the same call are one."""
    registry, own_name = installed_executors(), ""
    _check_names(point.call.op, executors)
    if own is not None:
        registry, own_name = registry.with_own(author_class(own, "executor"))
    by_name: dict[tuple[str, str], list[tuple[Point, Candidate]]] = {}
    notes: dict[str, None] = {}
    seen = set()
    for size in sizes:
        at = point.model_copy(update={"call": point.call.sized(size)})
        op = at.call.param(topology.size)
        if op in seen:
            continue
        seen.add(op)
        config = replace(point.call.config, strict=False)
        chosen, _ = select(op, topology, config, registry)
        notes |= dict.fromkeys(_notes(chosen))
        for one in candidates(op, topology, config, registry):
            is_own = one.executor == own_name
            if is_own or one.executor in executors or not executors:
                executor = own if is_own else one.executor
                update = {"executor": executor, "levels": one.levels}
                by_name.setdefault((one.executor, one.name), []).append(
                    (at.model_copy(update=update), one)
                )
    if own_name and all(executor != own_name for executor, _ in by_name):
        select(op, topology, config, registry, own_name)  # raises where it does not suit
        raise NotSupportedError(
            f"{own_name} adds in another order than HCCL_DETERMINISTIC asks for.",
            "State its order in the class's attribute order, or leave --deterministic out.",
        )
    todo = [TimingJob.of(found) for found in by_name.values()]
    todo.sort(key=lambda job: -sum(job.is_hccl))  # without a limit: they take the longest
    return todo, tuple(notes)


def _check_names(op: str, executors: Collection[str]) -> None:
    """Refuse names that no executor of the op has."""
    known = [r.name for r in installed_executors().for_op(op)]
    for name in executors:
        if name not in known:
            hint = did_you_mean(name, known)
            raise ParameterError(f"{op} has no executor {name!r}.", hint)


def _notes(chosen: Selection) -> list[str]:
    """Return notes on a choice of HCCL that differs from that of its rules here."""
    if chosen.unknown:
        return [f"HCCL's choice is not known here: {chosen.unknown}"]
    if chosen.refusal:
        return [f"HCCL refuses the call with {chosen.result}: {chosen.refusal}"]
    if chosen.hccl_executor != chosen.executor:
        return [chosen.reasons[-1]]
    if not chosen.fidelity.is_same:
        return [f"{chosen.executor} is {chosen.fidelity.kind}: {chosen.fidelity.deviation}"]
    return []


def _rows(job: TimingJob, outcomes: Outcomes) -> list[Row]:
    return [
        Row(replace(job.candidate, is_hccl=is_hccl, algorithm=outcome.algorithm), point, outcome)
        for point, is_hccl, outcome in zip(job.points, job.is_hccl, outcomes, strict=True)
        if outcome is not None and outcome.error is None
    ]


def _left_out(job: TimingJob, outcomes: Outcomes) -> list[LeftOut]:
    """Return the sizes that have no time, and why."""
    done = [one for one in outcomes if one is not None]
    is_timed = not done or any(one.error is None for one in done)
    spent = ("The effort was spent." if done else ENDED) if is_timed else done[0].error or ""
    missing: dict[str, list[int]] = {}
    for point, outcome in zip(job.points, outcomes, strict=True):
        if outcome is None or outcome.error is not None:
            reason = spent if outcome is None else outcome.error or ""
            missing.setdefault(reason, []).append(point.call.bytes)
    return [
        LeftOut(job.candidate, tuple(sorted(sizes)), reason) for reason, sizes in missing.items()
    ]


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
    return row.bytes, rounded_us(row.time_us), not row.candidate.is_hccl, row.candidate.name
