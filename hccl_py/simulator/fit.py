"""α, β and γ from measured times: least squares with the project's own programs as the model.

What a program takes is the length of its critical path, a sum of parameters times how often the
path counts them. Which path is critical depends on the parameters, so paths are collected:

    fit the parameters to the critical paths known so far
    simulate: where a program takes longer than that, its critical path is another one, whose
    counts are read off by moving each parameter a little; add it
    again, until simulated times are those of the known paths

With the paths given, times are piecewise linear, and scipy's bounded least squares minimise the
relative deviations, no parameter below 0. Where two link types work at once that may end with the
wrong one waited for, so it starts with each of them slow, too, and the best end counts.
Times far off count less (Cauchy's loss) where there are at least three to a parameter.

All parameters are fitted at first: one that is held too early may make another path critical than
the one that was measured. What the times do not determine is then put back, one by one, as far as
they are explained as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec

import numpy as np

from hccl_py.cost import CostModel
from hccl_py.errors import ParameterError
from hccl_py.simulator.fit_critical_paths import (
    CriticalPaths,
    Linearization,
    Parameter,
    TimedCall,
    used_parameters,
)
from hccl_py.values import Floats

__all__ = ["Estimate", "Fit", "Kept", "Parameter", "TimedCall", "fit"]

Free = tuple[int, ...]

_ROUNDS = 100
_TOLERANCE = 1e-15
"""Of scipy's search, which is cheap: it simulates nothing."""
_SLOW = 4.0
"""How many times as much a slow start costs."""
_DISTINCT = 0.01
"""What a parameter must explain by itself, as a share of all that it explains."""
_OTHER = 1.05
_SAME = 1e-8
_CAUCHY = 2.385
"""Usual deviations at which a weight is a half."""
_ROBUST = 3
"""Times per parameter from which times far off count less."""
_UNSURE = 4.0
"""By how many variances of a time the misfit may grow where a parameter is kept: two errors."""
_NORMAL = 0.6745
"""The median of the size of normal deviations, whose standard deviation is 1."""


@dataclass(frozen=True)
class Estimate:
    """A parameter's value and standard error, both in µs or GB/s.

    The value is None where a rate costs nothing; the error is None where there are not more times
    than parameters, or no value.
    """

    parameter: Parameter
    value: float | None
    error: float | None


@dataclass(frozen=True)
class Kept:
    """A parameter that the times do not determine, and why. Its value is that of the base model, or
    the one that was found, where the base model's does not explain the times.
    """

    parameter: Parameter
    value: float | None
    why: str


@dataclass(frozen=True, eq=False)
class Fit:
    """The cost model found, and how well it explains the times.

    `model_us` and `weights` have one value per sample; a weight below 1 is that of a time far off.
    """

    cost: CostModel
    estimates: tuple[Estimate, ...]
    kept: tuple[Kept, ...]
    model_us: Floats
    weights: Floats


def fit(samples: Sequence[TimedCall], base: CostModel) -> Fit:
    """Return the cost model whose uncontended times come nearest to the measured ones.

    Fitted are α and β of the links that the programs use, and γ. What these times do not determine
    keeps its value in `base`, if that explains them as well: what grows in step with parameters
    that are fitted, and what has a standard error larger than itself. Raises ParameterError for
    fewer than two samples, where nothing can be determined, and without scipy.
    """
    if find_spec("scipy") is None:
        raise ParameterError("Fitting needs scipy.", "pip install 'hccl-py[fit]' brings it.")
    if len(samples) < 2:
        raise ParameterError(
            f"{len(samples)} measured time is not enough to fit."
            if samples
            else "There is no measured time to fit.",
            "Measure two sizes or more: small ones tell α, large ones β.",
        )
    problem = _Problem(samples, base)
    everything = tuple(range(len(problem.parameters)))
    solution = problem.solve(problem.starts(problem.start, everything), everything)
    kept: dict[int, str] = {}
    while reasons := problem.not_determined(solution):
        solution, k, is_base = problem.keep(tuple(reasons), solution)
        kept[k] = reasons[k]
        if not is_base:
            kept[k] += f", and its value in {base.name} does not explain these times"
    if not solution.free:
        raise ParameterError(
            "These times tell nothing about links or reductions.",
            "Measure more sizes, small ones and large ones, of two ranks or more.",
        )
    return _fit_of(problem, solution, kept)


@dataclass(frozen=True, eq=False)
class _Solution:
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
        most = (1 + slack) * self.weights @ self.off**2 + len(off) * _SAME**2
        return bool(self.weights @ off**2 <= most)

    def least_certain(self, base: Floats) -> dict[int, str]:
        """Return the parameter with the largest error as a share of itself, found or in the base,
        if there is one whose error is larger.
        """
        errors = self.errors()
        if errors is None or not self.free:
            return {}
        free = list(self.free)
        share = errors / np.maximum(np.maximum(self.at, base)[free], np.finfo(float).tiny)
        worst = int(np.argmax(share))
        return {free[worst]: "its standard error is larger than itself"} if share[worst] > 1 else {}


class _Problem:
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

    def not_determined(self, solution: _Solution) -> dict[int, str]:
        """Return free parameters of which these times do not determine one, and why, those first
        that take less of the time; empty where all are determined.
        """
        return (
            self._indistinct(solution)
            or self._not_unique(solution)
            or solution.least_certain(self.base)
        )

    def keep(self, some: Free, solution: _Solution) -> tuple[_Solution, int, bool]:
        """Fit the others with one of these parameters as in the base model: the first with which
        the times are explained as well. Return which one, and True.

        Without one the critical paths depend on its value: the first stays as it was found.
        """
        for k in some:
            others = tuple(j for j in solution.free if j != k)
            at = solution.at.copy()
            at[k] = self.base[k]
            for starts in [at], self.starts(at, others):
                kept = self.solve(starts, others)
                spare = max(len(kept.off) - len(others), 1)
                if solution.is_matched_by(kept.off, _UNSURE / spare):
                    return kept, k, True
        others = tuple(j for j in solution.free if j != some[0])
        return replace(solution, free=others), some[0], False

    def _indistinct(self, solution: _Solution) -> dict[int, str]:
        """Return a parameter that takes none of the time, or one that grows in step with others
        that take more in the base model, and these.
        """
        names = [parameter.name for parameter in self.parameters]
        sizes = np.linalg.norm(solution.columns, axis=0)
        distinct: list[int] = []
        found: dict[int, str] = {}
        for k in sorted(solution.free, key=lambda k: -sizes[k] * self.start[k]):
            if not sizes[k]:
                return {k: "it has no part in these times"}
            others = solution.columns[:, distinct] / sizes[distinct]
            own = solution.columns[:, k] / sizes[k]
            shares = np.linalg.lstsq(others, own, rcond=None)[0]
            if np.linalg.norm(own - others @ shares) > _DISTINCT:
                distinct.append(k)
                continue
            like = [j for j, share in zip(distinct, shares, strict=True) if abs(share) > _DISTINCT]
            found = {k: f"it grows in step with {' and '.join(names[j] for j in like)}"}
            found |= dict.fromkeys(like, f"it grows in step with {names[k]}")
        return found

    def solve(self, starts: Sequence[Floats], free: Free) -> _Solution:
        """Fit some parameters; the others stay as they are where it starts."""
        for start in starts:
            self.paths.extend(start)
        for _ in range(_ROUNDS):
            ends = [self._search(start, free) for start in starts]
            here = min(ends, key=lambda end: float(np.abs(self._off(end.time_us)).sum()))
            if not self.paths.extend(here.at):
                break
        off = self._off(here.time_us)
        model_us = here.time_us[self._row]
        weights = 1 / (1 + (off / self._scale(here, free)) ** 2)
        return _Solution(here.at, free, model_us, self._columns(here), off, weights)

    def _not_unique(self, solution: _Solution) -> dict[int, str]:
        """Return the free parameters that may as well be others: the rest then makes up for it."""
        size = np.linalg.norm(solution.columns, axis=0) * solution.at
        by_size = sorted(solution.free, key=lambda k: float(size[k]))
        unique = (k for k in by_size if not self._is_unique(k, solution))
        return dict.fromkeys(unique, "others explain these times as well")

    def _is_unique(self, k: int, solution: _Solution) -> bool:
        others = tuple(kept for kept in solution.free if kept != k)
        for factor in (_OTHER, 1 / _OTHER):
            start = solution.at.copy()
            start[k] = start[k] * factor or (_OTHER - 1) * self.parameters[k].usual
            end = self._search(start, others)
            while self.paths.extend(end.at):
                end = self._search(start, others)
            if solution.is_matched_by(self._off(end.time_us), _SAME):
                return False
        return True

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

    def _search(self, start: Floats, free: Free) -> Linearization:
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
                lambda values: self._off(linearize(values).time_us),
                here.at[chosen],
                jac=lambda values: -self._columns(linearize(values))[:, chosen],
                bounds=(0, np.inf),
                x_scale=unit,
                **{"loss": "cauchy", "f_scale": scale} if np.isfinite(scale) else {},
                **dict.fromkeys(("ftol", "xtol", "gtol"), _TOLERANCE),
            )
            before, here = here, linearize(np.where(end.active_mask < 0, 0, end.x))
            if np.isinf(scale) or np.allclose(here.at, before.at, rtol=_SAME, atol=0):
                break
        return here

    def _off(self, time_us: Floats) -> Floats:
        """Return relative deviations of the measured times from what the programs take."""
        return np.asarray(1 - time_us[self._row] / self._time_us)

    def _columns(self, here: Linearization) -> Floats:
        return np.asarray(here.slopes[self._row] / self._time_us[:, None])

    def _scale(self, here: Linearization, free: Free) -> float:
        """Return the deviation at which a time counts half; infinite where there are few times to
        a parameter, of which those in step are one.
        """
        off, columns = self._off(here.time_us), self._columns(here)[:, list(free)]
        sizes = np.linalg.norm(columns, axis=0)
        parameters = int(np.linalg.matrix_rank(columns[:, sizes > 0] / sizes[sizes > 0], _DISTINCT))
        if len(off) < _ROBUST * parameters:
            return float("inf")
        size = np.sort(np.abs(off))[max(parameters - 1, 0) :]  # as many are met exactly
        return _CAUCHY * max(float(np.median(size)) / _NORMAL, _SAME)


def _fit_of(problem: _Problem, solution: _Solution, kept: Mapping[int, str]) -> Fit:
    """Put a solution into the units of a cost model."""
    cost, errors = problem.paths.cost(solution.at), solution.errors()
    estimates = []
    for number, k in enumerate(solution.free):
        parameter, at = problem.parameters[k], float(solution.at[k])
        value = parameter.of(cost)
        error = None if errors is None or value is None else float(errors[number])
        if error is not None and value is not None and parameter.is_rate:
            error *= value / at
        estimates.append(Estimate(parameter, value, error))
    held = [
        Kept(problem.parameters[k], problem.parameters[k].of(cost), why) for k, why in kept.items()
    ]
    return Fit(cost, tuple(estimates), tuple(held), solution.model_us, solution.weights)
