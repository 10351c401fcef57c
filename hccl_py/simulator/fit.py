"""α, β and γ from measured times: least squares with the project's own programs as the model.

What a program takes is the longest of its chains, each a sum of parameters times how often it
counts them. Which is the longest depends on the parameters, so chains are found on the way:

    fit the parameters to the chains found so far
    simulate: where a program takes longer than that, it has a longer chain, found by moving each
    parameter a little; add it
    again, until simulated times are those of the chains found

With the longest chains given, the fit is a linear least squares of the relative deviations, no
parameter below 0. It is solved and gone to, as far as deviations get smaller, until nothing moves.
Where two sorts of links work at once that may end with the wrong one waited for, so it starts with
each of them slow, too, and the best end counts.
Times far off count less (Cauchy's weights) where there are at least three to a parameter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from hccl_py.cost import CostModel
from hccl_py.errors import ParameterError
from hccl_py.simulator.fit_chains import Around, Chains, Parameter, Sample, used_parameters
from hccl_py.values import Floats

__all__ = ["Estimate", "Fit", "Kept", "Parameter", "Sample", "fit"]

Free = tuple[int, ...]

_ROUNDS = 100
_SHORTEST = 1 / 64
"""The least share of a step that is tried."""
_SLOW = 4.0
"""How many times as much a slow start costs."""
_APART = 0.01
"""What a parameter must explain by itself, as a share of all that it explains."""
_OTHER = 1.05
_SAME = 1e-8
_CAUCHY = 2.385
"""Usual deviations at which a weight is a half."""
_ROBUST = 3
"""Times per parameter from which weights are used."""
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
    """A parameter that the times do not tell, its value in the base model, and why."""

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


def fit(samples: Sequence[Sample], base: CostModel) -> Fit:
    """Return the cost model whose uncontended times come nearest to the measured ones.

    Fitted are α and β of the links that the programs use, and γ. What cannot be told from these
    times keeps its value in `base`: what grows in step with parameters that are fitted, and what
    has a standard error larger than itself. Raises ParameterError for fewer than two samples, and
    where nothing can be told.
    """
    if len(samples) < 2:
        raise ParameterError(
            f"{len(samples)} measured time is not enough to fit."
            if samples
            else "There is no measured time to fit.",
            "Measure two sizes or more: small ones tell α, large ones β.",
        )
    problem = _Problem(samples, base)
    free = tuple(range(len(problem.parameters)))
    kept = problem.never_apart(free)
    while True:
        free = tuple(k for k in free if k not in kept)
        if not free:
            raise ParameterError(
                "These times tell nothing about links or reductions.",
                "Measure more sizes, small ones and large ones, of two ranks or more.",
            )
        found = problem.solve(free)
        more = problem.not_apart(found.at, free) or problem.not_unique(found)
        more = more or found.most_blurred(problem.base)
        if not more:
            return _spelled(problem, found, kept)
        kept |= more


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

    def most_blurred(self, base: Floats) -> dict[int, str]:
        """Return the parameter with the largest error as a share of itself, found or in the base,
        if there is one whose error is larger.
        """
        errors = self.errors()
        if errors is None:
            return {}
        free = list(self.free)
        share = errors / np.maximum(np.maximum(self.at, base)[free], np.finfo(float).tiny)
        worst = int(np.argmax(share))
        return {free[worst]: "its standard error is larger than itself"} if share[worst] > 1 else {}


class _Problem:
    """Measured times and the programs that should take them; equal calls share theirs."""

    def __init__(self, samples: Sequence[Sample], base: CostModel) -> None:
        distinct = {id(sample.program): sample for sample in samples}
        place = {key: number for number, key in enumerate(distinct)}
        self._row = [place[id(sample.program)] for sample in samples]
        self._time_us = np.array([sample.time_us for sample in samples])
        self.parameters = used_parameters(distinct.values())
        self.chains = Chains(list(distinct.values()), base, self.parameters)
        self.base: Floats = np.array([p.microseconds(base) for p in self.parameters])

    def never_apart(self, free: Free) -> dict[int, str]:
        """Return what cannot be told, wherever the search starts."""
        found: list[dict[int, str]] = []
        for start in self._starts(free):
            self.chains.grow(start)
            found.append(self.not_apart(start, free))
        return {k: why for k, why in found[0].items() if all(k in other for other in found)}

    def _start(self, free: Free) -> Floats:
        """Return the base model, with something where what is free costs nothing there."""
        at = self.base.copy()
        for k in free:
            at[k] = at[k] or self.parameters[k].usual
        return at

    def not_apart(self, at: Floats, free: Free) -> dict[int, str]:
        """Return which free parameters cannot be told from others that take more of the time, or
        take none, and why.
        """
        columns = self._columns(self.chains.around(at))
        sizes = np.linalg.norm(columns, axis=0)
        apart: list[int] = []
        found = {}
        for k in sorted(free, key=lambda k: -sizes[k] * at[k]):
            if not sizes[k]:
                found[k] = "it has no part in these times"
                continue
            others, own = columns[:, apart] / sizes[apart], columns[:, k] / sizes[k]
            shares = np.linalg.lstsq(others, own, rcond=None)[0]
            if np.linalg.norm(own - others @ shares) > _APART:
                apart.append(k)
                continue
            like = [self.parameters[a].name for a in np.array(apart)[np.abs(shares) > _APART]]
            found[k] = f"it grows in step with {' and '.join(like)}"
        return found

    def solve(self, free: Free) -> _Solution:
        """Fit some parameters; the others keep their value in the base model."""
        starts = self._starts(free)
        for start in starts:
            self.chains.grow(start)
        for _ in range(_ROUNDS):
            ends = [self._search(start, free) for start in starts]
            here = min(ends, key=lambda end: float(np.abs(self._off(end.time_us)).sum()))
            if not self.chains.grow(here.at):
                break
        off = self._off(here.time_us)
        model_us, weights = here.time_us[self._row], _weights(off, len(free))
        return _Solution(here.at, free, model_us, self._columns(here), off, weights)

    def not_unique(self, found: _Solution) -> dict[int, str]:
        """Return a free parameter that may as well be another, if there is one: the others then
        make up for it.
        """
        size = np.linalg.norm(found.columns, axis=0) * found.at
        least = found.weights @ found.off**2 + len(found.off) * _SAME**2
        for k in sorted(found.free, key=lambda k: float(size[k])):
            others = tuple(other for other in found.free if other != k)
            for factor in (_OTHER, 1 / _OTHER):
                start = found.at.copy()
                start[k] = start[k] * factor or (_OTHER - 1) * self.parameters[k].usual
                end = self._search(start, others)
                while self.chains.grow(end.at):
                    end = self._search(start, others)
                if found.weights @ self._off(end.time_us) ** 2 <= least * (1 + _SAME):
                    return {k: "others explain these times as well"}
        return {}

    def _starts(self, free: Free) -> list[Floats]:
        """Return the base model, and with several sorts of links each of them slow in α, in β, in
        both.
        """
        at = self._start(free)
        links = {k: self.parameters[k].link for k in free if self.parameters[k].link}
        slow = [[k] for k in links]
        slow += [[k for k in links if links[k] == link] for link in dict.fromkeys(links.values())]
        starts = [at]
        for some in slow if len(set(links.values())) > 1 else ():
            starts.append(at.copy())
            starts[-1][some] *= _SLOW
        return starts

    def _search(self, start: Floats, free: Free) -> Around:
        """Go from a start until nothing moves."""
        here = self.chains.around(start)
        for _ in range(_ROUNDS):
            weights = _weights(self._off(here.time_us), len(free))
            there = self._towards(self._aim(here, free, weights), here, weights)
            if np.allclose(there.at, here.at, rtol=_SAME, atol=0):
                return there
            here = there
        return here

    def _off(self, time_us: Floats) -> Floats:
        """Return relative deviations of the measured times from what the programs take."""
        return np.asarray(1 - time_us[self._row] / self._time_us)

    def _columns(self, here: Around) -> Floats:
        return np.asarray(here.slopes[self._row] / self._time_us[:, None])

    def _aim(self, here: Around, free: Free, weights: Floats) -> Floats:
        """Return the least squares of the linear continuation."""
        columns, root = self._columns(here), np.sqrt(weights)
        wanted = self._off(here.time_us) + columns[:, free] @ here.at[list(free)]
        aim = here.at.copy()
        aim[list(free)] = _not_below_zero(root[:, None] * columns[:, free], root * wanted)
        return aim

    def _towards(self, aim: Floats, here: Around, weights: Floats) -> Around:
        """Go as far as the deviations get smaller; stay where they do not."""
        least = weights @ self._off(here.time_us) ** 2
        share = 1.0
        while share >= _SHORTEST:
            at = here.at + share * (aim - here.at)
            if weights @ self._off(self.chains.around(at).time_us) ** 2 < least:
                return self.chains.around(at)
            share /= 2
        return here


def _weights(off: Floats, parameters: int) -> Floats:
    """Return Cauchy's weights: 1, and less the more deviations are above the usual ones."""
    if len(off) < _ROBUST * parameters:
        return np.ones(len(off))
    size = np.sort(np.abs(off))[max(parameters - 1, 0) :]  # as many are met exactly
    usual = max(float(np.median(size)) / _NORMAL, _SAME)
    return np.asarray(1 / (1 + (off / (_CAUCHY * usual)) ** 2))


def _not_below_zero(columns: Floats, wanted: Floats) -> Floats:
    """Return the least squares with no value below 0; of few columns, so all choices of those at 0
    are tried.
    """
    size = np.linalg.norm(columns, axis=0)
    size[size == 0] = 1
    best, least = np.zeros(len(size)), float("inf")
    for count in range(len(size), -1, -1):
        for chosen in combinations(range(len(size)), count):
            some = np.zeros(len(size))
            part = columns[:, chosen] / size[list(chosen)]
            some[list(chosen)] = np.linalg.lstsq(part, wanted, rcond=None)[0] / size[list(chosen)]
            loss = float(np.sum((columns @ some - wanted) ** 2))
            if (some >= 0).all() and loss < least:
                best, least = some, loss
        if count == len(size) and np.isfinite(least):
            break  # the least squares of all are not below 0: nothing is better
    return best


def _spelled(problem: _Problem, found: _Solution, kept: Mapping[int, str]) -> Fit:
    """Put a solution into the units of a cost model."""
    cost, errors = problem.chains.cost(found.at), found.errors()
    estimates = []
    for number, k in enumerate(found.free):
        parameter, at = problem.parameters[k], float(found.at[k])
        value = parameter.of(cost)
        error = None if errors is None or value is None else float(errors[number])
        if error is not None and value is not None and parameter.is_rate:
            error *= value / at
        estimates.append(Estimate(parameter, value, error))
    held = [
        Kept(problem.parameters[k], problem.parameters[k].of(cost), why) for k, why in kept.items()
    ]
    return Fit(cost, tuple(estimates), tuple(held), found.model_us, found.weights)
