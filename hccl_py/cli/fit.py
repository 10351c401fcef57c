"""`hccl-py fit`: a cost model from what was measured: logs of tests, and times of programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hccl_py.cli.grouping import changed, grouped
from hccl_py.cli.options import (
    COST,
    IMPLEMENTED_OP,
    NETWORK,
    CallOptions,
    Output,
    here,
    one_of,
    option,
)

if TYPE_CHECKING:
    from hccl_py.clocks.measured import Kind

_KINDS: dict[str, Kind] = {
    "hardware": "hardware",
    "vendor simulation": "vendor simulation",
    "vendor-simulation": "vendor simulation",
    "document": "document",
}


PARAMETERS = option(
    "--parameters",
    "NAMES",
    "What is fitted, with commas between: hccs.gbps,task_us. Names with = between them have one "
    "value.",
)
LEAVE_OUT = option(
    "--leave-out",
    "COLUMN",
    "Fit again without each group of rows that are alike in a column, such as group or op, and "
    "show how well the others predict it.",
)
SOURCE = option("--source", "TEXT", "Where the times come from, for people.")
TIMES_ARE = option(
    "--times-are",
    "KIND",
    "What took the times: hardware, or a vendor simulation; a document that states them.",
)
OUT = option("--out", "FILE", "Write the cost model, as .json or .yaml.")


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
    call: Annotated[
        CallOptions,
        changed(op=here(IMPLEMENTED_OP, help="The op, where the log has no command line.")),
    ],
    base: Annotated[
        str | None,
        here(
            COST,
            metavar="MODEL",
            help="The model of what the times say nothing about; the product's by default.",
        ),
    ] = None,
    network: Annotated[str, NETWORK] = "uncontended",
    parameters: Annotated[str | None, PARAMETERS] = None,
    leave_out: Annotated[str | None, LEAVE_OUT] = None,
    source: Annotated[str, SOURCE] = "",
    times_are: Annotated[str, TIMES_ARE] = "hardware",
    out: Annotated[str | None, OUT] = None,
    output: Output,
) -> None:
    """Fit a cost model to measured times.

    Reads the tables that hccl_test or nccl-tests printed, and lists of programs with their times,
    and finds the cost model whose simulated times come nearest. What a log's command line says (op,
    -d, -o, -r, -p and mpirun's -n) needs no option.
    """
    from hccl_py.cli.fit_report import FitReport
    from hccl_py.cli.measured_calls import read_groups
    from hccl_py.cli.output import Screen, print_json
    from hccl_py.cli.request import network_named
    from hccl_py.clocks.cost_files import write_cost

    view, kind = network_named(network), one_of("--times-are", times_are, _KINDS)
    groups = read_groups(measured, call)
    report = FitReport.of(groups, base, view, parameters, leave_out).judged(kind, source, leave_out)
    if out is not None:
        write_cost(out, report.fit.cost)
    if output.json:
        print_json(report.document())
        return
    screen = Screen()
    for part in report.drawing():
        screen.show_whole(part)
