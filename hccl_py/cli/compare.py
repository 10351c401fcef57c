"""`hccl-py compare`: every way in which an op can run, at every size, by simulation."""

from __future__ import annotations

from typing import Annotated

import typer

from hccl_py.cli.options import Call, Output, Sizes, TimeModel, grouped

__all__ = ["compare"]


@grouped
def compare(
    *,
    call: Call,
    sizes: Sizes,
    model: TimeModel,
    executors: Annotated[
        str | None,
        typer.Option("--executors", metavar="A,B", help="Only these; else all that suit."),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Show every candidate, not only the fastest.")
    ] = False,
    effort: Annotated[
        float | None,
        typer.Option(
            "--effort",
            metavar="S",
            min=0,
            help="Seconds of a core for a candidate, else 1; 0: any.",
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", metavar="N", min=1, help="Processes, else one for each core."),
    ] = None,
    png: Annotated[
        str | None, typer.Option("--png", metavar="FILE", help="Write the picture as PNG.")
    ] = None,
    html: Annotated[
        str | None,
        typer.Option("--html", metavar="FILE", help="Write a page with picture and table."),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="Time every point into a .csv or .parquet; goes on where it was killed.",
        ),
    ] = None,
    save: Annotated[
        str | None,
        typer.Option("--save", metavar="FILE", help="Add the winners to a tuning table."),
    ] = None,
    output: Output,
) -> None:
    """Time every executor that suits, at sizes from -b to -e, and show the fastest.

    And what HCCL's rules choose, and what that costs. Times are those of the cost model. Sizes are
    multiplied by 4 unless -f or -i says otherwise.
    """
    from hccl_py.cli.comparison import Files, compared, document, show
    from hccl_py.cli.output import print_json

    files = Files(png, html, save)
    files.check(model)
    found = compared(call, sizes, model, executors, effort, jobs, out)
    files.write(found)
    if output.json:
        print_json(document(found))
    else:
        show(found, every=every)
