"""Least squares over times of programs as functions of parameters, from several starts.

Such functions are the critical paths known so far, with which times are piecewise linear, or the
simulation itself. scipy's bounded least squares minimise the relative deviations, no parameter
below 0. Where two link types work at once that may end with the wrong one waited for, so it starts
with each of them slow, too, and the best end counts.

Times far off count less: against paths by Cauchy's loss, whose scale follows the deviations, where
there are at least three times to a parameter; against simulations by the soft absolute value, whose
scale is fixed, as whole groups of times are far off in valleys of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from hccl_py.clocks.cost import CostModel
from hccl_py.clocks.engines import engine_of
from hccl_py.fit.parameters import Linearization, Parameter, TimedCall
from hccl_py.fit.same_programs import alike_programs
from hccl_py.values import Floats

Free = tuple[int, ...]
"""The parameters that are fitted, by their numbers."""

DISTINCT = 0.01
"""What a parameter must explain by itself, as a share of all that it explains."""

SAME = 1e-8
"""The relative deviation between times that are the same."""

_ROUNDS = 100
_SLOW = 4.0
"""How many times as much a slow start costs."""
_AROUND = 8.0
_DRAWN = 60
_STARTED = 3
"""How far off points are drawn around a start, how many, and at how many a search starts."""
_FIRST = 4
"""Points that a search over simulations looks at from each start before the best one goes on."""
_SOFT = 0.1
"""The relative deviation from which times count less against simulations."""
_CAUCHY = 2.385
"""Usual deviations at which a weight is a half."""
_ROBUST = 3
"""ModelTimes per parameter from which times far off count less."""
_NORMAL = 0.6745
"""The median of the size of normal deviations, whose standard deviation is 1."""


class ModelTimes(Protocol):
    """Times of programs as functions of parameters in microseconds.

    `learns` says that points that were not extended to may have other times than they seem to; what
    does not is simulated. `tolerance` is that of the search, which looks at `most` points, `steady`
    by how much, relatively, a point may move that does not move any more.
    """

    learns: bool
    tolerance: float
    most: int
    steady: float

    def cost(self, at: Floats) -> CostModel:
        """Return the cost model of a point."""

    def time_us(self, at: Floats) -> Floats:
        """Return the times of the programs at a point."""

    def linearize(self, at: Floats) -> Linearization:
        """Return that, and how it grows with each parameter."""

    def extend(self, at: Floats) -> bool:
        """Learn of a point; whether times there are other ones then."""


@dataclass(frozen=True, eq=False)
class Solution:
    """A point at which nothing moves any more, for the parameters that are `free`.

    One row per sample: `model_us`, `columns` (slopes of the relative deviations), `off` (relative
    deviations), `weights`.
    """

    at: Floats
    free: Free
    model_us: Floats
    columns: Floats
    off: Floats
    weights: Floats

    def errors(self) -> Floats | None:
        """Return the standard errors of the free parameters; None without a time to spare."""
        spare = len(self.off) - len(self.free)
        if spare < 1:
            return None
        spread, size = self._spread()
        variance = self.weights @ self.off**2 / spare
        return np.asarray(np.sqrt(np.diag(spread) * variance) / size)

    def correlations(self) -> Floats:
        """Return the correlations of the errors of every two free parameters."""
        spread, _ = self._spread()
        one = np.sqrt(np.diag(spread))
        return np.asarray(spread / np.outer(one, one))

    def _spread(self) -> tuple[Floats, Floats]:
        """Return the covariance of the free parameters, each as a share of `size`, the second."""
        columns = np.sqrt(self.weights)[:, None] * self.columns[:, self.free]
        size = np.linalg.norm(columns, axis=0)
        return np.linalg.pinv((columns / size).T @ (columns / size)), size

    def is_matched_by(self, off: Floats, slack: float) -> bool:
        """Return True if the sum of the squares of other deviations, weighted as here, is at most
        this one's with a share of slack.
        """
        most = (1 + slack) * self.weights @ self.off**2 + len(off) * SAME**2
        return bool(self.weights @ off**2 <= most)


class Search:
    """Measured times and the programs that should take them; equal calls share theirs."""

    def __init__(
        self,
        samples: Sequence[TimedCall],
        base: CostModel,
        parameters: Sequence[Parameter],
        times: Callable[[Sequence[TimedCall], CostModel, Sequence[Parameter]], ModelTimes],
        near: CostModel | None = None,
    ) -> None:
        distinct, self._row = alike_programs(samples)
        self._time_us = np.array([sample.time_us for sample in samples])
        self.parameters = parameters
        self.samples = samples
        self.paths = times(distinct, base, parameters)
        self.base: Floats = np.array([p.microseconds(base) for p in self.parameters])
        self._is_near = near is not None
        begin = np.array([p.microseconds(near or base) for p in self.parameters])
        usual = [p.usual for p in self.parameters]
        self.start: Floats = np.where(begin, begin, usual)
        floors = [k for k, p in enumerate(self.parameters) if p.engine]
        for k in floors:
            self.start[k] = min(self.times_of(parameters[k].engine), default=self.start[k])

    def times_of(self, engine: str) -> list[float]:
        """Return the measured times of the calls of an engine."""
        return [s.time_us for s in self.samples if engine_of(s.program, s.topology) == engine]

    def solve(self, starts: Sequence[Floats], free: Free) -> Solution:
        """Fit some parameters; the others stay as they are where it starts."""
        for start in starts:
            self.paths.extend(start)
        if not self.paths.learns:
            if len(starts) > 1:
                starts = [self._best([self.nearest(s, free, _FIRST) for s in starts]).at]
            here = self.nearest(starts[0], free)
        for _ in range(_ROUNDS if self.paths.learns else 0):
            here = self._best([self.nearest(start, free) for start in starts])
            if not self.paths.extend(here.at):
                break
        off = self.off(here.time_us)
        model_us = here.time_us[self._row]
        weights = 1 / (1 + (off / self._scale(here, free)) ** 2)
        if not self.paths.learns:
            weights = 1 / np.sqrt(1 + (off / _SOFT) ** 2)
        return Solution(here.at, free, model_us, self._columns(here), off, weights)

    def starts(self, at: Floats, free: Free) -> list[Floats]:
        """Return a point with what is free as in the base model; with several link types also with
        each of them slow in α, in β, in both. Simulated times have valleys of their own: the best
        of points around it are added.
        """
        usual = at.copy()
        usual[list(free)] = self.start[list(free)]
        if not self.paths.learns:
            return [usual] if self._is_near else [usual, *self._around(usual, free)]
        links = {k: self.parameters[k].link for k in free if self.parameters[k].link}
        slow = [[k] for k in links]
        slow += [[k for k in links if links[k] == link] for link in dict.fromkeys(links.values())]
        starts = [usual]
        for some in slow if len(set(links.values())) > 1 else ():
            starts.append(usual.copy())
            starts[-1][some] *= _SLOW
        return starts

    def _best(self, ends: Sequence[Linearization]) -> Linearization:
        """Return the end with the smallest deviations."""
        return min(ends, key=lambda end: float(np.abs(self.off(end.time_us)).sum()))

    def _around(self, usual: Floats, free: Free) -> list[Floats]:
        """Return the best of points drawn around one, each free parameter up to so many times as
        large or small.
        """
        rng = np.random.default_rng(len(free))
        chosen = [k for k in free if not self.parameters[k].engine]
        drawn = np.tile(usual, (_DRAWN, 1))
        drawn[:, chosen] *= _AROUND ** rng.uniform(-1, 1, (_DRAWN, len(chosen)))
        misfit = [float(np.abs(self.off(self.paths.time_us(at))).sum()) for at in drawn]
        return [drawn[k] for k in np.argsort(misfit, kind="stable")[:_STARTED]]

    def nearest(self, start: Floats, free: Free, most: int | None = None) -> Linearization:
        """Return the least squares that are reached from a start, over `most` points.

        The scale of Cauchy's loss follows the deviations, until nothing moves.
        """
        from scipy.optimize import least_squares  # optional, and slow to import

        chosen, here = list(free), self.paths.linearize(start)
        unit = np.where(start > 0, start, [p.usual for p in self.parameters])[chosen]

        def put(values: Floats) -> Floats:
            at = start.copy()
            at[chosen] = values * unit
            return at

        for _ in range(_ROUNDS if chosen else 0):
            scale = self._scale(here, free)
            end = least_squares(
                lambda values: self.off(self.paths.time_us(put(values))),
                here.at[chosen] / unit,
                jac=lambda v: -self._columns(self.paths.linearize(put(v)))[:, chosen] * unit,
                bounds=(0, np.inf),
                **self._loss(scale),
                max_nfev=most or self.paths.most,
                **dict.fromkeys(("ftol", "xtol", "gtol"), self.paths.tolerance),
            )
            found = put(np.where(end.active_mask < 0, 0, end.x))
            before, here = here, self.paths.linearize(found)
            if np.isinf(scale) or np.allclose(here.at, before.at, rtol=self.paths.steady, atol=0):
                break
        return here

    def _loss(self, scale: float) -> dict[str, Any]:
        if not self.paths.learns:
            return {"loss": "soft_l1", "f_scale": _SOFT}
        return {"loss": "cauchy", "f_scale": scale} if np.isfinite(scale) else {}

    def off(self, time_us: Floats) -> Floats:
        """Return relative deviations of the measured times from what the programs take."""
        return np.asarray(1 - time_us[self._row] / self._time_us)

    def off_at(self, at: Floats) -> Floats:
        """Return the relative deviations at a point."""
        self.paths.extend(at)
        return self.off(self.paths.time_us(at))

    def _columns(self, here: Linearization) -> Floats:
        return np.asarray(here.slopes[self._row] / self._time_us[:, None])

    def _scale(self, here: Linearization, free: Free) -> float:
        """Return the deviation at which a time counts half; infinite where there are few times to
        a parameter, of which those in step are one, and for simulated times.
        """
        off, columns = self.off(here.time_us), self._columns(here)[:, list(free)]
        sizes = np.linalg.norm(columns, axis=0)
        parameters = int(np.linalg.matrix_rank(columns[:, sizes > 0] / sizes[sizes > 0], DISTINCT))
        if len(off) < _ROBUST * parameters or not self.paths.learns:
            return float("inf")
        size = np.sort(np.abs(off))[max(parameters - 1, 0) :]  # as many are met exactly
        return _CAUCHY * max(float(np.median(size)) / _NORMAL, SAME)
