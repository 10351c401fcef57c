"""From the outcomes of a comparison or a sweep to a tuning table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from hccl_py.call.op_param import OpParam
from hccl_py.documents.disk import PathLike
from hccl_py.errors import ParameterError
from hccl_py.plugins.discovery import Registry, installed_executors
from hccl_py.selection.answer import Selection
from hccl_py.selection.select import select
from hccl_py.topology.topology import Topology
from hccl_py.tuning.candidates import candidates
from hccl_py.tuning.points import Outcome, Point
from hccl_py.tuning.recording import rounded_us
from hccl_py.tuning.table import Sample, Shape, TuningEntry, TuningTable, Winner, ranges_of


def alternatives(point: Point, registry: Registry | None = None) -> list[Point]:
    """Return the points of one call for every executor that suits it, the point's own left out."""
    topology = point.call.topology()
    known = installed_executors() if registry is None else registry
    found = candidates(point.call.param(topology.size), topology, point.call.config, known)
    return [
        point.model_copy(update={"executor": one.executor, "levels": one.levels}) for one in found
    ]


def tune(points: Iterable[Point], outcomes: Iterable[Outcome]) -> TuningTable:
    """Return the table of the fastest candidate of each call, and of the choice of HCCL's rules.

    Ties go to HCCL's choice, then by name. Points whose outcome is an error do not count. Raises
    ParameterError where ranks or links are slow, since a table is for machines without such
    defects, and where two cost models have one name.
    """
    calls: dict[object, _TimedCall] = {}
    machines: dict[object, Topology] = {}
    for point, outcome in zip(points, outcomes, strict=True):
        _check_even(point)
        if outcome.error is None and outcome.executor:
            at = point.call.cluster, point.call.config
            machine = machines.get(at) or machines.setdefault(at, point.call.topology())
            timed = point.call, point.cost, point.network
            calls.setdefault(timed, _TimedCall(point, machine)).add(point, outcome)
    entries = [call.entry() for call in calls.values()]
    _check_one_model(entries)
    return TuningTable.joined([call.point.cost for call in calls.values()], entries)


def save_winners(points: Iterable[Point], outcomes: Iterable[Outcome], path: PathLike) -> None:
    """Write the table of these times to a file, or merge them into the one that it has; raises as
    `tune`, and FileError for a file that holds something else.
    """
    table = tune(points, outcomes)
    if Path(path).exists():
        table = TuningTable.read(path).merged(table)
    table.write(path)


def _check_even(point: Point) -> None:
    if point.slow:
        raise ParameterError(
            f"A point has slow parts: {' '.join(point.slow)}.",
            "Tuning tables are made without --slow.",
        )


def _check_one_model(entries: Iterable[TuningEntry]) -> None:
    """Refuse times of one entry that are of several models: they cannot be compared."""
    models: dict[tuple[str | int, ...], tuple[str, str]] = {}
    for entry in entries:
        wanted = models.setdefault(entry.key, (entry.cost, entry.network))
        if wanted != (entry.cost, entry.network):
            raise ParameterError(
                f"{entry.op} on {entry.topology} was timed by two models: "
                f"{' '.join(wanted)} and {entry.cost} {entry.network}.",
                "Make a table of each.",
            )


class _CandidateTime(NamedTuple):
    """A candidate that was timed: its executor, the algorithm of each level, the words for them."""

    executor: str
    algorithm: dict[str, str]
    levels: dict[str, str]
    us: float

    @property
    def way(self) -> tuple[str, dict[str, str]]:
        """The key of the candidate."""
        return self.executor, self.algorithm


class _TimedCall:
    """One call on one machine, and its candidates that were timed."""

    def __init__(self, point: Point, topology: Topology) -> None:
        self.point, self.topology = point, topology
        self.op: OpParam = point.call.param(topology.size)
        self._timed: list[_CandidateTime] = []
        self._bytes = 0

    def add(self, point: Point, outcome: Outcome) -> None:
        """Add a candidate; one that the rules chose gives way to the same one by name."""
        by_name = point.executor is not None
        levels = point.levels if by_name else self._hccl.levels
        new = _CandidateTime(outcome.executor, outcome.algorithm, dict(levels), outcome.time_us)
        others = [one for one in self._timed if one.way != new.way]
        if by_name or len(others) == len(self._timed):
            self._timed = [*others, new]
        self._bytes = outcome.bytes

    def entry(self) -> TuningEntry:
        """Return the entry of this call's size alone."""
        point, config = self.point, self.point.call.config
        return TuningEntry(
            op=self.op.name,
            dtype=self.op.dtype.value,
            reduce_op=None if self.op.reduce is None else self.op.reduce.spelling,
            mode=config.mode.value,
            deterministic=config.deterministic,
            buffsize_mb=config.buffsize_mb,
            topology=Shape.of(self.topology),
            cost=point.cost.name,
            network=point.network,
            ruleset=config.ruleset,
            ranges=tuple(ranges_of([self._winner()])),
        )

    def _winner(self) -> Winner:
        rules = (self._hccl.executor, dict(self._hccl.algorithm))
        hccl = next((one for one in self._timed if one.way == rules), None)

        def rank(one: _CandidateTime) -> tuple[float, bool, str, list[str]]:
            words = [*one.algorithm.values()]
            return rounded_us(one.us), one is not hccl, one.executor, words

        best = min(self._timed, key=rank)
        sample = Sample(
            bytes=self._bytes,
            simulated_us=best.us,
            hccl_executor=self._hccl.executor,
            hccl_levels=dict(self._hccl.levels if hccl is None else hccl.levels),
            hccl_us=None if hccl is None else hccl.us,
        )
        return Winner(executor=best.executor, levels=best.levels, sample=sample)

    @cached_property
    def _hccl(self) -> Selection:
        """The choice of HCCL's rules."""
        config = replace(self.point.call.config, strict=False)
        return select(self.op, self.topology, config, installed_executors())[0]
