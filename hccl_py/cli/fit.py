"""`hccl-py fit`: a cost model from what was measured: logs of tests, and times of programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from hccl_py.cli.declared import COST, IMPLEMENTED_OP, NETWORK, here
from hccl_py.cli.grouping import grouped
from hccl_py.cli.options import CallOptions, Output


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
    from hccl_py.cli.fit_groups import read_groups
    from hccl_py.cli.fitting import fitted
    from hccl_py.cli.output import Screen, print_json
    from hccl_py.cli.time_model import network_named
    from hccl_py.clocks.cost_files import write_cost

    chosen = network_named(network)
    report = fitted(read_groups(measured, call), base, chosen, parameters)
    if out is not None:
        write_cost(out, report.fit.cost)
    if output.json:
        print_json(report.document())
        return
    screen = Screen()
    for part in report.drawing():
        screen.show_whole(part)
