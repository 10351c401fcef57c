"""`hccl-py simulate`: how long an op takes by the cost model, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hccl_py.cli.grouping import grouped
from hccl_py.cli.options import Output, ProgramOptions, Saving, Sizes, TimeModel

if TYPE_CHECKING:
    from hccl_py.cli.request import Request


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
    from hccl_py.cli.call import check_save, save_program
    from hccl_py.cli.output import Screen, print_json
    from hccl_py.cli.request import request_of
    from hccl_py.cli.simulate_report import document_of, drawing, show_rows
    from hccl_py.cli.simulations import counts_posts, simulated
    from hccl_py.cli.sizes import row_sizes, starting_at
    from hccl_py.cli.time_model import model_of
    from hccl_py.importers.installed import writer_of

    request = request_of(call)
    request.check_sizes(sizes)
    start = starting_at(call.minbytes, request.minbytes)
    wanted = [request.minbytes] if request.is_fixed else row_sizes(start, sizes)
    if sizes.maxbytes is not None:
        _refuse_one_size_s(report, saving)
    if saving.save is not None:
        check_save(saving.save)
    if chakra is not None:
        _check_chakra(chakra, request)
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
        writer = writer_of(chakra, is_job=True, option="--chakra")
        writer.write(found.plan.program, chakra, timeline=found.times.timeline)
    if output.json:
        print_json(document_of(found, report, notifies))
        return
    screen = Screen()
    for part in drawing(found, is_brief=whole and not report and found.is_large):
        screen.show(part)


def _check_chakra(path: str, request: Request) -> None:
    """Refuse, before the work, a program that is no job, and a folder that cannot be written."""
    from hccl_py.errors import ParameterError
    from hccl_py.importers.installed import writer_of

    if request.is_verified:
        raise ParameterError(
            "--chakra writes a Chakra trace with its times, and this is none.",
            "Leave it out, or name a folder of .et files first.",
        )
    writer_of(path, is_job=True, option="--chakra").check_target(path)


def _refuse_one_size_s(report: bool, saving: Saving) -> None:
    from hccl_py.errors import ParameterError

    for option, value in (("--report", report), ("--save", saving.save)):
        if value:
            raise ParameterError(
                f"{option} is about one program, -e asks for several.", "Leave one of them out."
            )
