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
        float,
        typer.Option(
            "--effort", metavar="S", min=0, help="Seconds of a core for a candidate; 0: any."
        ),
    ] = 2.0,
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
    from hccl_py.cli.comparison import compared, document, show, write_pictures
    from hccl_py.cli.output import print_json

    found = compared(call, sizes, model, executors, effort or None, jobs)
    write_pictures(found, png, html)
    if save is not None:
        from hccl_py.tuning.tune import save_winners

        save_winners([r.point for r in found.rows], [r.outcome for r in found.rows], save)
    if output.json:
        print_json(document(found))
    else:
        show(found, every=every)
