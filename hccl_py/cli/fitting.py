"""What `hccl-py fit` does: parameters fitted to the measured times, what is held out predicted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hccl_py.cli.fit_groups import TimesGroup
from hccl_py.cli.fit_report import FitReport
from hccl_py.clocks.cost import CostModel
from hccl_py.clocks.cost_files import find_cost
from hccl_py.errors import ParameterError
from hccl_py.fit.fit import fit
from hccl_py.fit.parameters import Parameter, TimedCall, used_parameters
from hccl_py.fit.simulated import simulated
from hccl_py.simulator.entry import Network

_OF_PROGRAMS = ("copy_gbps", "task_us")
"""What a list of programs tells beside α, β and γ, unless the user says what to fit."""


def fitted(
    groups: Sequence[TimesGroup], base: str | None, network: Network, parameters: str | None
) -> FitReport:
    """Fit what is not held out, and predict what is."""
    product = groups[0].product
    model = CostModel.of(product) if base is None else find_cost(base, product)
    samples = [sample for group in groups for sample in group.samples]
    calls = [TimedCall(s.plan.program, s.topology, s.time_us) for s in samples]
    learned = [call for call, s in zip(calls, samples, strict=True) if not s.held_out]
    asked = None if parameters is None else _named(parameters)
    if asked is None and any(group.is_list for group in groups):
        beside = (*_OF_PROGRAMS, *(("memory_gbps",) if network == "contended" else ()))
        asked = [*used_parameters(learned), *(Parameter("", name) for name in beside)]
    found = fit(learned, model, asked, network)
    about = {
        "name": f"fitted-{product}",
        "sources": f"hccl-py fit of {len(learned)} measured times, {network}, from {model.name}",
        "uncertain": "; ".join(f"{k.parameter.name} was kept: {k.why}" for k in found.kept),
    }
    found = replace(found, cost=found.cost.model_copy(update=about))
    model_us = iter(found.model_us.tolist())
    weights = iter(found.weights.tolist())
    held_out = [call for call, s in zip(calls, samples, strict=True) if s.held_out]
    predicted = iter(simulated(held_out, found.cost, network).tolist())
    return FitReport(
        groups,
        model,
        network,
        found,
        tuple(next(predicted if s.held_out else model_us) for s in samples),
        tuple(1.0 if s.held_out else next(weights) for s in samples),
    )


def _named(text: str) -> list[Parameter]:
    """Return the parameters of a list of names; ParameterError where one stands twice."""
    found = [Parameter.parse(name) for name in text.split(",")]
    names = [name for parameter in found for name in parameter.name.split("=")]
    for name in names:
        if names.count(name) > 1:
            raise ParameterError(f"--parameters has {name} twice.", "Leave one out.")
    return found
