"""Least squares over the critical paths known so far, from several starts.

With the paths given, times are piecewise linear, and scipy's bounded least squares minimise the
relative deviations, no parameter below 0. Where two link types work at once that may end with the
wrong one waited for, so it starts with each of them slow, too, and the best end counts.
Times far off count less (Cauchy's loss) where there are at least three to a parameter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hccl_py.cost import CostModel
from hccl_py.simulator.fit_critical_paths import (
    CriticalPaths,
    Linearization,
    TimedCall,
    used_parameters,
)
from hccl_py.values import Floats

__all__ = ["DISTINCT", "SAME", "Free", "Search", "Solution"]

Free = tuple[int, ...]
"""The parameters that are fitted, by their numbers."""

DISTINCT = 0.01
"""What a parameter must explain by itself, as a share of all that it explains."""

SAME = 1e-8
"""The relative deviation between times that are the same."""

_ROUNDS = 100
_TOLERANCE = 1e-15
"""Of scipy's search, which is cheap: it simulates nothing."""
_SLOW = 4.0
"""How many times as much a slow start costs."""
_CAUCHY = 2.385
"""Usual deviations at which a weight is a half."""
_ROBUST = 3
"""Times per parameter from which times far off count less."""
_NORMAL = 0.6745
"""The median of the size of normal deviations, whose standard deviation is 1."""


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
        columns = np.sqrt(self.weights)[:, None] * self.columns[:, self.free]
        size = np.linalg.norm(columns, axis=0)
        spread = np.linalg.pinv((columns / size).T @ (columns / size))
        variance = self.weights @ self.off**2 / spare
        return np.asarray(np.sqrt(np.diag(spread) * variance) / size)

    def is_matched_by(self, off: Floats, slack: float) -> bool:
        """Whether the sum of the squares of other deviations, weighted as here, is at most this
        one's with a share of slack.
        """
        most = (1 + slack) * self.weights @ self.off**2 + len(off) * SAME**2
        return bool(self.weights @ off**2 <= most)


class Search:
    """Measured times and the programs that should take them; equal calls share theirs."""

    def __init__(self, samples: Sequence[TimedCall], base: CostModel) -> None:
        distinct = {id(sample.program): sample for sample in samples}
        place = {key: number for number, key in enumerate(distinct)}
        self._row = [place[id(sample.program)] for sample in samples]
        self._time_us = np.array([sample.time_us for sample in samples])
        self.parameters = used_parameters(distinct.values())
        self.paths = CriticalPaths(list(distinct.values()), base, self.parameters)
        self.base: Floats = np.array([p.microseconds(base) for p in self.parameters])
        self.start: Floats = np.where(self.base, self.base, [p.usual for p in self.parameters])

    def solve(self, starts: Sequence[Floats], free: Free) -> Solution:
        """Fit some parameters; the others stay as they are where it starts."""
        for start in starts:
            self.paths.extend(start)
        for _ in range(_ROUNDS):
            ends = [self.nearest(start, free) for start in starts]
            here = min(ends, key=lambda end: float(np.abs(self.off(end.time_us)).sum()))
            if not self.paths.extend(here.at):
                break
        off = self.off(here.time_us)
        model_us = here.time_us[self._row]
        weights = 1 / (1 + (off / self._scale(here, free)) ** 2)
        return Solution(here.at, free, model_us, self._columns(here), off, weights)

    def starts(self, at: Floats, free: Free) -> list[Floats]:
        """Return a point with what is free as in the base model; with several link types also with
        each of them slow in α, in β, in both.
        """
        usual = at.copy()
        usual[list(free)] = self.start[list(free)]
        links = {k: self.parameters[k].link for k in free if self.parameters[k].link}
        slow = [[k] for k in links]
        slow += [[k for k in links if links[k] == link] for link in dict.fromkeys(links.values())]
        starts = [usual]
        for some in slow if len(set(links.values())) > 1 else ():
            starts.append(usual.copy())
            starts[-1][some] *= _SLOW
        return starts

    def nearest(self, start: Floats, free: Free) -> Linearization:
        """Return the least squares that are reached from a start.

        The scale of Cauchy's loss follows the deviations, until nothing moves.
        """
        from scipy.optimize import least_squares  # optional, and slow to import

        chosen, here = list(free), self.paths.linearize(start)
        unit = np.maximum(start, [parameter.usual for parameter in self.parameters])[chosen]

        def linearize(values: Floats) -> Linearization:
            at = start.copy()
            at[chosen] = values
            return self.paths.linearize(at)

        for _ in range(_ROUNDS if chosen else 0):
            scale = self._scale(here, free)
            end = least_squares(
                lambda values: self.off(linearize(values).time_us),
                here.at[chosen],
                jac=lambda values: -self._columns(linearize(values))[:, chosen],
                bounds=(0, np.inf),
                x_scale=unit,
                **{"loss": "cauchy", "f_scale": scale} if np.isfinite(scale) else {},
                **dict.fromkeys(("ftol", "xtol", "gtol"), _TOLERANCE),
            )
            before, here = here, linearize(np.where(end.active_mask < 0, 0, end.x))
            if np.isinf(scale) or np.allclose(here.at, before.at, rtol=SAME, atol=0):
                break
        return here

    def off(self, time_us: Floats) -> Floats:
        """Return relative deviations of the measured times from what the programs take."""
        return np.asarray(1 - time_us[self._row] / self._time_us)

    def _columns(self, here: Linearization) -> Floats:
        return np.asarray(here.slopes[self._row] / self._time_us[:, None])

    def _scale(self, here: Linearization, free: Free) -> float:
        """Return the deviation at which a time counts half; infinite where there are few times to
        a parameter, of which those in step are one.
        """
        off, columns = self.off(here.time_us), self._columns(here)[:, list(free)]
        sizes = np.linalg.norm(columns, axis=0)
        parameters = int(np.linalg.matrix_rank(columns[:, sizes > 0] / sizes[sizes > 0], DISTINCT))
        if len(off) < _ROBUST * parameters:
            return float("inf")
        size = np.sort(np.abs(off))[max(parameters - 1, 0) :]  # as many are met exactly
        return _CAUCHY * max(float(np.median(size)) / _NORMAL, SAME)
