"""`hccl-py fit`: α, β and γ of a cost model from what hccl_test measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from hccl_py.cli.options import Call, Output, grouped

if TYPE_CHECKING:
    from hccl_py.cli.fitting import Fitting

__all__ = ["fit"]


@dataclass(frozen=True)
class LoggedCall(Call):
    """A call whose op the log may say."""

    op: Annotated[
        str,
        typer.Option("--op", metavar="OP", help="The op, where the log has no command line."),
    ] = ""


@grouped
def fit(
    *,
    logs: Annotated[
        list[str],
        typer.Argument(metavar="LOG", show_default=False, help="Files with hccl_test's tables."),
    ],
    call: LoggedCall,
    base: Annotated[
        str | None,
        typer.Option(
            "--cost",
            metavar="MODEL",
            help="The model that keeps its values where the log tells none; else the product's.",
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option("--out", metavar="FILE", help="Write the cost model, as .json or .yaml."),
    ] = None,
    output: Output,
) -> None:
    """Fit α, β and γ to measured times.

    Reads the tables that hccl_test printed and finds the cost model whose simulated times come
    nearest. What a log's command line says (op, -d, -o, -r, -p and mpirun's -n) needs no option.
    """
    from hccl_py.cli.fitting import Fitting
    from hccl_py.cli.output import print_json

    fitting = Fitting.of(logs, call, base)
    if out is not None:
        from hccl_py.simulator.cost_files import write_cost

        write_cost(out, fitting.fit.cost)
    if output.json:
        print_json(fitting.document())
    else:
        _print(fitting)


def _print(fitting: Fitting) -> None:
    from hccl_py.cli.output import Screen

    screen = Screen()
    for part in fitting.drawing():
        screen.show(part)
