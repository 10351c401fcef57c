"""`hccl-py simulate`: how long an op takes by the cost model, and why."""

from __future__ import annotations

from typing import Annotated

import typer

from hccl_py.cli.grouping import grouped
from hccl_py.cli.options import Output, ProgramOptions, Saving, Sizes, TimeModel

__all__ = ["command"]


@grouped
def command(
    *,
    call: ProgramOptions,
    sizes: Sizes,
    model: TimeModel,
    report: Annotated[
        bool,
        typer.Option("--report", help="Say what the time goes into, however large the program."),
    ] = False,
    notifies: Annotated[
        str,
        typer.Option(
            "--notifies",
            metavar="KIND",
            help="one-bit, as they are; counting: time programs that post too early, and say so.",
        ),
    ] = "one-bit",
    saving: Saving,
    chakra: Annotated[
        str | None,
        typer.Option(
            "--chakra", metavar="DIR", help="Of a Chakra trace: write it again, with these times."
        ),
    ] = None,
    output: Output,
) -> None:
    """Compute how long an op takes, without running it.

    By the α-β-γ model of the product, or --cost. Small programs are timed task by task, and what
    the time goes into is shown; large ones by whole batches, unless --report asks for it. With -e,
    a row for each size. In the place of an op, a program file is timed as it is, and so is the job
    of a Chakra trace, with what of its communication is hidden behind computation.
    """
    from hccl_py.cli.call import request_of
    from hccl_py.cli.output import Screen, print_json
    from hccl_py.cli.simulate_report import document_of, drawing, show_rows
    from hccl_py.cli.simulations import counts_posts, simulated
    from hccl_py.cli.sizes import row_sizes, starting_at
    from hccl_py.cli.sources import check_save, save_program
    from hccl_py.cli.time_model import model_of
    from hccl_py.cli.traces import check_chakra, write_chakra

    request = request_of(call)
    request.check_sizes(sizes)
    start = starting_at(call.minbytes, request.minbytes)
    wanted = [request.minbytes] if request.is_fixed else row_sizes(start, sizes)
    if sizes.maxbytes is not None:
        _refuse_one_size_s(report, saving)
    if saving.save is not None:
        check_save(saving.save)
    if chakra is not None:
        check_chakra(chakra, request)
    used = model_of(model, request)
    counts = counts_posts(notifies)
    with request.comm:
        whole = report or saving.save is not None or chakra is not None
        rows = (simulated(request, used, size, whole, counts) for size in wanted)
        if sizes.maxbytes is not None:
            show_rows(request, used, rows, notifies, output)
            return
        found = next(rows)
    save_program(found.plan.program, saving.save)
    if chakra is not None:
        write_chakra(chakra, request, found.times.timeline)
    if output.json:
        print_json(document_of(found, report, notifies))
        return
    screen = Screen()
    for part in drawing(found, is_brief=whole and not report and found.is_large):
        screen.show(part)


def _refuse_one_size_s(report: bool, saving: Saving) -> None:
    from hccl_py.errors import ParameterError

    for option, value in (("--report", report), ("--save", saving.save)):
        if value:
            raise ParameterError(
                f"{option} is about one program, -e asks for several.", "Leave one of them out."
            )
