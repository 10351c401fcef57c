"""`hccl-py simulate`: how long an op takes by the cost model, and why."""

from __future__ import annotations

from typing import Annotated

import typer

from hccl_py.cli.options import Call, Output, TimeModel, grouped
from hccl_py.cli.streams import say

__all__ = ["simulate"]


@grouped
def simulate(
    *,
    call: Call,
    model: TimeModel,
    report: Annotated[
        bool,
        typer.Option("--report", help="Say what the time goes into, however large the program."),
    ] = False,
    output: Output,
) -> None:
    """Compute how long an op takes, without running it.

    By the α-β-γ model of the product, or --cost. Small programs are timed task by task, and what
    the time goes into is shown; large ones by whole batches, unless --report asks for it.
    """
    from hccl_py.cli.simulation import Simulation

    found = Simulation.of(call, model, report)
    if output.json:
        from hccl_py.cli.output import print_json

        print_json(found.document(report))
    else:
        for line in found.lines():
            say(line)
