"""Parameters fitted to a part of the measured times, and the model's times of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hccl_py.clocks.cost import CostModel
from hccl_py.errors import ParameterError
from hccl_py.fit.fit import Fit, fit
from hccl_py.fit.parameters import Parameter, TimedCall, used_parameters
from hccl_py.fit.simulated import simulated
from hccl_py.simulator.entry import Network

_OF_PROGRAMS = ("copy_gbps", "task_us")
"""Parameters that times of whole programs tell beside α, β and γ."""


@dataclass(frozen=True)
class Prediction:
    """A fit, and for every measured time the model's time in µs and its weight in the fit, 1 for a
    time that was held out.
    """

    fit: Fit
    model_us: tuple[float, ...]
    weights: tuple[float, ...]


def fit_and_predict(
    calls: Sequence[TimedCall],
    held_out: Sequence[bool],
    model: CostModel,
    parameters: Sequence[Parameter] | None,
    network: Network,
) -> Prediction:
    """Fit to the calls that are not held out, and simulate the others with the model found.

    Raises as `fit`.
    """
    flags = list(zip(calls, held_out, strict=True))
    learned = [call for call, is_out in flags if not is_out]
    found = fit(learned, model, parameters, network)
    about = {
        "name": f"fitted-{calls[0].topology.product.name}",
        "sources": f"hccl-py fit of {len(learned)} measured times, {network}, from {model.name}",
        "uncertain": "; ".join(f"{k.parameter.name} was kept: {k.why}" for k in found.held),
        "measured": (),
    }
    found = replace(found, cost=found.cost.model_copy(update=about))
    others = [call for call, is_out in flags if is_out]
    predicted = iter(simulated(others, found.cost, network).tolist())
    model_us, weights = iter(found.model_us.tolist()), iter(found.weights.tolist())
    return Prediction(
        found,
        tuple(next(predicted if is_out else model_us) for is_out in held_out),
        tuple(1.0 if is_out else next(weights) for is_out in held_out),
    )


def program_parameters(calls: Sequence[TimedCall], network: Network) -> list[Parameter]:
    """Return the parameters that are fitted to times of whole programs where none are named."""
    beside = (*_OF_PROGRAMS, *(("memory_gbps",) if network == "contended" else ()))
    return [*used_parameters(calls), *(Parameter("", name) for name in beside)]


def parse_parameters(text: str) -> list[Parameter]:
    """Return the parameters of a list of names; ParameterError where one stands twice."""
    found = [Parameter.parse(name) for name in text.split(",")]
    names = [name for parameter in found for name in parameter.name.split("=")]
    for name in names:
        if names.count(name) > 1:
            raise ParameterError(f"--parameters has {name} twice.", "Leave one out.")
    return found
