"""`hccl-py run`: execute an op on real data and check the result, in hccl_test's columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from hccl_py.cli.grouping import grouped, without
from hccl_py.cli.options import (
    SAVE,
    SLOW,
    SOURCES_OF_JOBS,
    Output,
    ProgramOptions,
    Sizes,
    here,
    option,
)


@dataclass(frozen=True)
class Measuring:
    """The number of runs of an op, and the check of its results."""

    iters: Annotated[int, option("-n --iters", "N", "Timed iterations.", min=1)] = 20
    warmup: Annotated[int, option("-w --warmup", "N", "Iterations before them.", min=0)] = 5
    check: Annotated[
        int,
        option(
            "-c --check",
            "0|1|2",
            "0: no check, 1: check, 2: and show the first wrong element.",
            min=0,
            max=2,
        ),
    ] = 1
    timeline: Annotated[
        str | None,
        option(
            "--timeline",
            "FILE",
            "Write when every task ran, beside the model's times: .html, .pftrace or .json.",
        ),
    ] = None


@dataclass(frozen=True)
class Interleaving:
    """The order in which the asynchronous streams run."""

    seed: Annotated[
        int | None, option("--seed", "N", "Run one interleaving of the asynchronous streams.")
    ] = None
    schedule: Annotated[
        str | None,
        option(
            "--schedule",
            "NAME",
            "Its kind: random, late-wire, early-wire, starved-stream or slow-rank.",
        ),
    ] = None
    slow: Annotated[
        list[str] | None,
        here(
            SLOW, help="A straggler, rank=3:2x, or a slow link, link=0-1:10x, in the interleaving."
        ),
    ] = None


@grouped
def command(
    *,
    call: Annotated[ProgramOptions, without(*SOURCES_OF_JOBS)],
    sizes: Sizes,
    measuring: Measuring,
    interleaving: Interleaving,
    save: Annotated[str | None, SAVE] = None,
    output: Output,
) -> int | None:
    """Run an op on real data and check every element of the result.

    One row per size from -b to -e, in hccl_test's columns. The times are wall time of the platform;
    on the emulated one they say how fast this machine emulates, not how fast NPUs are. There --slow
    gives a straggler fewer turns, which changes the order of tasks, and no time. In the place of an
    op, a program file is run on data made up for its op.
    """
    from hccl_py.cli.errors import status_of
    from hccl_py.cli.run_report import Runs, report

    runs = Runs.of(call, sizes, measuring, interleaving)
    if save is not None:
        runs.check_save(save)
    if measuring.timeline is not None:
        runs.check_timeline(measuring.timeline)
    with runs.request.comm as comm:
        program = runs.prepare()
        if save is not None:
            program.save(save)
        status = comm.launch(lambda: status_of(lambda: report(runs, output), debug=output.debug))
        if status is None:
            report(runs, output)
        return status
