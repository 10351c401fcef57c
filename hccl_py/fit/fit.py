"""Cost models from measured times: least squares with the project's own programs as the model.

Without contention, what a program takes is the length of its critical path, a sum of parameters
times how often the path counts them. Which path is critical depends on the parameters, so paths are
collected:

    fit the parameters to the critical paths known so far
    simulate: where a program takes longer than that, its critical path is another one, whose
    counts are read off by moving each parameter a little; add it
    again, until simulated times are those of the known paths

Where links are shared, every point is simulated, and differences of simulations are the slopes.

All parameters are fitted at first: one that is held too early may make another path critical than
the one that was measured. What the times do not determine is then put back, one by one, as far as
they are explained as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec

import numpy as np

from hccl_py.clocks.cost import CostModel
from hccl_py.errors import ParameterError
from hccl_py.fit.critical_paths import CriticalPaths
from hccl_py.fit.determined import deciding_rows, hold, not_determined
from hccl_py.fit.parameters import Parameter, TimedCall, used_parameters, with_plain_links
from hccl_py.fit.same_programs import counted_once
from hccl_py.fit.search import DISTINCT, ModelTimes, Search, Solution
from hccl_py.fit.simulated import SimulatedTimes
from hccl_py.simulator.entry import Network
from hccl_py.values import Floats

_ALIKE = 0.9
"""The correlation from which two estimates are said to hang together."""

_DECIDING = 3
"""Samples that are named for each estimate."""


@dataclass(frozen=True)
class Estimate:
    """A parameter's value and standard error, both in µs or GB/s.

    The value is None where a rate costs nothing; the error is None where there are not more times
    than parameters, or no value. `decided_by` names the samples that tell most of it, by number,
    each with its share.
    """

    parameter: Parameter
    value: float | None
    error: float | None
    decided_by: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True)
class HeldParameter:
    """A parameter that the times do not determine, and why. Its value is that of the base model, or
    the one that was found, where the base model's does not explain the times.
    """

    parameter: Parameter
    value: float | None
    why: str


@dataclass(frozen=True)
class Likeness:
    """Two estimates whose errors hang together: times tell one combination of them well, and the
    other badly. Near 1 a step or a byte that costs more in both explains the times about as well,
    near -1 one that costs more in one and less in the other.
    """

    one: Parameter
    other: Parameter
    correlation: float


@dataclass(frozen=True, eq=False)
class Fit:
    """The cost model found, and how well it explains the times.

    `model_us` and `weights` have one value per sample; a weight below 1 is that of a time far off.
    `rank` parameters, or combinations of them, are what the times tell of all that were asked for.
    """

    cost: CostModel
    estimates: tuple[Estimate, ...]
    held: tuple[HeldParameter, ...]
    model_us: Floats
    weights: Floats
    alike: tuple[Likeness, ...]
    rank: int


def fit(
    samples: Sequence[TimedCall],
    base: CostModel,
    parameters: Sequence[Parameter] | None = None,
    network: Network = "uncontended",
    near: CostModel | None = None,
) -> Fit:
    """Return the cost model whose simulated times come nearest to the measured ones.

    Fitted are the parameters named, else α and β of the links that the programs use, and γ. What
    these times do not determine keeps its value in `base`, if that explains them as well: what
    grows in step with parameters that are fitted, and what has a standard error larger than itself.
    Samples with the same program and the same time count once. The search begins at `near`, where
    that is known.

    Raises ParameterError for fewer than two samples, where nothing can be determined, and without
    scipy.
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
    asked = used_parameters(samples) if parameters is None else parameters
    times: type[ModelTimes] = SimulatedTimes if network == "contended" else CriticalPaths
    once, place = counted_once(samples)
    base = with_plain_links(base, asked)
    search = Search(once, base, asked, times, near)
    everything = tuple(range(len(search.parameters)))
    solution = search.solve(search.starts(search.start, everything), everything)
    rank = _rank(solution)
    kept: dict[int, str] = {}
    while reasons := not_determined(search, solution):
        solution, k, is_base = hold(search, tuple(reasons), solution)
        kept[k] = reasons[k]
        if not is_base:
            kept[k] += f", and its value in {base.name} does not explain these times"
    if not solution.free:
        raise ParameterError(
            "These times tell nothing about links or reductions."
            if parameters is None
            else f"These times tell nothing about {', '.join(p.name for p in parameters)}.",
            "Measure more sizes, small ones and large ones, of two ranks or more.",
        )
    found = _fit_of(search, solution, kept, rank)
    first = {number: k for k, number in reversed(list(enumerate(place)))}
    estimates = tuple(
        replace(e, decided_by=tuple((first[row], share) for row, share in e.decided_by))
        for e in found.estimates
    )
    model_us, weights = found.model_us[place], found.weights[place]
    return replace(found, estimates=estimates, model_us=model_us, weights=weights)


def _rank(solution: Solution) -> int:
    """Return the number of combinations of parameters that times depend on, to a hundredth."""
    columns = solution.columns[:, solution.columns.any(axis=0)]
    return int(np.linalg.matrix_rank(columns / np.linalg.norm(columns, axis=0), DISTINCT))


def _fit_of(search: Search, solution: Solution, kept: Mapping[int, str], rank: int) -> Fit:
    """Put a solution into the units of a cost model."""
    cost, errors = search.paths.cost(solution.at), solution.errors()
    estimates = []
    for number, (k, shares) in enumerate(deciding_rows(solution)):
        parameter = search.parameters[k]
        value, at = parameter.of(cost), parameter.microseconds(cost)
        error = None if errors is None or value is None else float(errors[number])
        if error is not None and value is not None and parameter.is_rate:
            error *= value / at
        most = np.argsort(-shares, kind="stable")[:_DECIDING].tolist()
        decided_by = tuple((row, float(shares[row])) for row in most)
        estimates.append(Estimate(parameter, value, error, decided_by))
    held = [
        HeldParameter(search.parameters[k], search.parameters[k].of(cost), why)
        for k, why in kept.items()
    ]
    found = tuple(estimates), tuple(held), solution.model_us, solution.weights
    return Fit(cost, *found, tuple(_alike(search, solution)), rank)


def _alike(search: Search, solution: Solution) -> Iterator[Likeness]:
    """Yield pairs of estimates whose errors hang together, those most alike first."""
    table = solution.correlations()
    one, other = np.nonzero(np.triu(np.abs(table) > _ALIKE, 1))
    for k in np.argsort(-np.abs(table[one, other]), kind="stable").tolist():
        pair = [search.parameters[solution.free[j]] for j in (one[k], other[k])]
        yield Likeness(pair[0], pair[1], float(table[one[k], other[k]]))
