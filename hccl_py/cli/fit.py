"""`hccl-py fit`: a cost model from what was measured: logs of tests, and times of programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import typer

from hccl_py.cli.declared import COST, IMPLEMENTED_OP, NETWORK, here
from hccl_py.cli.fit_groups import TimesGroup, read_groups
from hccl_py.cli.fit_report import FitReport
from hccl_py.cli.grouping import grouped
from hccl_py.cli.options import CallOptions, Output
from hccl_py.cli.output import Screen, print_json
from hccl_py.cli.time_model import network_named
from hccl_py.cost import CostModel
from hccl_py.errors import ParameterError
from hccl_py.simulator.cost_files import find_cost, write_cost
from hccl_py.simulator.entry import Network
from hccl_py.simulator.fit import Parameter, TimedCall, fit, used_parameters
from hccl_py.simulator.fit_simulated import simulated

__all__ = ["command"]

_OF_PROGRAMS = ("copy_gbps", "task_us")
"""What a list of programs tells beside α, β and γ, unless the user says what to fit."""


@dataclass(frozen=True)
class LoggedCall(CallOptions):
    """A call whose op the log may say."""

    op: Annotated[str, here(IMPLEMENTED_OP, help="The op, where the log has no command line.")] = ""


@grouped
def command(
    *,
    measured: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE",
            show_default=False,
            help="Logs of hccl_test, nccl-tests or rccl-tests, and lists of programs with their "
            "times (.csv, .json).",
        ),
    ],
    call: LoggedCall,
    base: Annotated[
        str | None,
        here(
            COST,
            metavar="MODEL",
            help="The model of what the times say nothing about; the product's by default.",
        ),
    ] = None,
    network: Annotated[str, NETWORK] = "uncontended",
    parameters: Annotated[
        str | None,
        typer.Option(
            "--parameters",
            metavar="NAMES",
            help="What is fitted, with commas between: hccs.gbps,task_us. Names with = between "
            "them have one value.",
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option("--out", metavar="FILE", help="Write the cost model, as .json or .yaml."),
    ] = None,
    output: Output,
) -> None:
    """Fit a cost model to measured times.

    Reads the tables that hccl_test or nccl-tests printed, and lists of programs with their times,
    and finds the cost model whose simulated times come nearest. What a log's command line says (op,
    -d, -o, -r, -p and mpirun's -n) needs no option.
    """
    chosen = network_named(network)
    report = _report(read_groups(measured, call), base, chosen, parameters)
    if out is not None:
        write_cost(out, report.fit.cost)
    if output.json:
        print_json(report.document())
        return
    screen = Screen()
    for part in report.drawing():
        screen.show_whole(part)


def _report(
    groups: Sequence[TimesGroup], base: str | None, network: Network, parameters: str | None
) -> FitReport:
    """Fit what is not held out, and predict what is."""
    product = groups[0].product
    model = CostModel.of(product) if base is None else find_cost(base, product)
    samples = [sample for group in groups for sample in group.samples]
    calls = [TimedCall(s.plan.program, s.topology, s.time_us) for s in samples]
    fitted = [call for call, s in zip(calls, samples, strict=True) if not s.held_out]
    asked = None if parameters is None else _named(parameters)
    if asked is None and any(group.is_list for group in groups):
        beside = (*_OF_PROGRAMS, *(("memory_gbps",) if network == "contended" else ()))
        asked = [*used_parameters(fitted), *(Parameter("", name) for name in beside)]
    found = fit(fitted, model, asked, network)
    about = {
        "name": f"fitted-{product}",
        "sources": f"hccl-py fit of {len(fitted)} measured times, {network}, from {model.name}",
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
