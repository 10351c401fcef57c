"""`hccl-py simulate`: how long an op takes by the cost model, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from hccl_py.cli.errors import USAGE
from hccl_py.cli.grouping import grouped, without
from hccl_py.cli.options import (
    PLATFORM,
    SAVE,
    Output,
    ProgramOptions,
    Sizes,
    TimeModel,
    flag,
    option,
)

if TYPE_CHECKING:
    from hccl_py.cli.request import Request
    from hccl_py.importers import Importer

NOTIFIES = option(
    "--notifies",
    "KIND",
    "one-bit, as they are; counting: time programs that post too early, and say so.",
)


@grouped
def command(
    *,
    call: Annotated[ProgramOptions, without(*PLATFORM)],
    sizes: Sizes,
    model: TimeModel,
    report: Annotated[
        bool, flag("--report", "Say what the time goes into, however large the program.")
    ] = False,
    notifies: Annotated[str, NOTIFIES] = "one-bit",
    save: Annotated[str | None, SAVE] = None,
    chakra: Annotated[
        str | None,
        option("--chakra", "DIR", "Of a Chakra trace: write it again, with these times."),
    ] = None,
    output: Output,
) -> int | None:
    """Compute how long an op takes, without running it.

    By the α-β-γ model of the product, or --cost. Small programs are timed task by task, and what
    the time goes into is shown; large ones by whole batches, unless --report asks for it. With -e,
    a row for each size. In the place of an op, a program file is timed as it is, and so is the job
    of a Chakra trace, with what of its communication is hidden behind computation.
    """
    from hccl_py.cli.call import check_save
    from hccl_py.cli.request import model_of
    from hccl_py.cli.simulate_report import show, show_rows
    from hccl_py.cli.simulations import counts_posts, simulated, simulated_sizes
    from hccl_py.cli.sizes import refuse_several, row_sizes, starting_at
    from hccl_py.cli.sources import request_of
    from hccl_py.importers import WriterOptions

    request = request_of(call)
    request.check_sizes(sizes)
    start = starting_at(call.minbytes, request.minbytes)
    wanted = [request.minbytes] if request.is_fixed else row_sizes(start, sizes)
    if sizes.maxbytes is not None and (report or save):
        refuse_several("--report" if report else "--save")
    if save is not None:
        check_save(save)
    if chakra is not None:
        _check_chakra(chakra, request)
    used = model_of(model, request)
    counts = counts_posts(notifies)
    with request.comm:
        whole = report or save is not None or chakra is not None
        if sizes.maxbytes is not None:
            rows = list(simulated_sizes(request, used, wanted, counts))
            return None if show_rows(request, used, rows, notifies, output) else USAGE
        found = simulated(request, used, wanted[0], whole, counts)
    if save is not None:
        found.plan.program.save(save)
    if chakra is not None:
        times = WriterOptions(timeline=found.times.timeline)
        _chakra_writer(chakra).write(found.plan.program, chakra, times)
    is_brief = whole and not report and found.is_large
    show(found, notifies, output, with_report=report, is_brief=is_brief)
    return None


def _check_chakra(path: str, request: Request) -> None:
    """Refuse, before the work, a program that is no job, and a folder that cannot be written."""
    from hccl_py.errors import ParameterError

    if request.is_verified:
        raise ParameterError(
            "--chakra writes a Chakra trace with its times, and this is none.",
            "Leave it out, or name a folder of .et files first.",
        )
    _chakra_writer(path).check_target(path)


def _chakra_writer(path: str) -> Importer:
    from hccl_py.importers.installed import writer_of

    return writer_of(path, is_job=True, option="--chakra")
