"""`hccl-py run`: execute an op on real data and check the result, in hccl_test's columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hccl_py.cli.options import Call, Output, Sizes, grouped

if TYPE_CHECKING:
    from hccl_py.platforms import Schedule

__all__ = ["run"]


@grouped
def run(
    *,
    call: Call,
    sizes: Sizes,
    iters: Annotated[
        int, typer.Option("-n", "--iters", metavar="N", min=1, help="Timed iterations.")
    ] = 20,
    warmup: Annotated[
        int, typer.Option("-w", "--warmup", metavar="N", min=0, help="Iterations before them.")
    ] = 5,
    check: Annotated[
        int,
        typer.Option(
            "-c",
            "--check",
            metavar="0|1|2",
            min=0,
            max=2,
            help="0: no check, 1: check, 2: and show the first wrong element.",
        ),
    ] = 1,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed", metavar="N", help="Run one interleaving of the asynchronous streams."
        ),
    ] = None,
    schedule: Annotated[
        str | None,
        typer.Option(
            "--schedule",
            metavar="NAME",
            help="Its kind: random, late-wire, early-wire, starved-stream or slow-rank.",
        ),
    ] = None,
    slow: Annotated[
        list[str] | None,
        typer.Option(
            "--slow",
            metavar="WHAT",
            help="A straggler, rank=3:2x, or a slow link, link=0-1:10x, in the interleaving.",
        ),
    ] = None,
    output: Output,
) -> None:
    """Run an op on real data and check every element of the result.

    One row per size from -b to -e, in hccl_test's columns. The times are wall time of the platform;
    on the emulated one they say how fast this machine emulates, not how fast NPUs are. There --slow
    gives a straggler fewer turns, which changes the order of tasks, and no time.
    """
    from hccl_py.cli.measure import Measurement
    from hccl_py.cli.report import JsonReport, TextReport

    measurement = Measurement(call, sizes, iters, warmup, check, _schedule(seed, schedule, slow))
    report = JsonReport(measurement) if output.json else TextReport(measurement)
    with measurement.request.comm:
        report.begin()
        for row in measurement.rows():
            report.row(row)
        report.end()


def _schedule(seed: int | None, name: str | None, slow: list[str] | None) -> Schedule | None:
    """Return the interleaving that the user asks for, if any."""
    if seed is None and name is None and not slow:
        return None
    from hccl_py.errors import ParameterError, did_you_mean
    from hccl_py.platforms import Adversary, Schedule
    from hccl_py.stragglers import Slow

    known = {adversary.value: adversary for adversary in Adversary}
    name = name or Adversary.RANDOM.value
    if name not in known:
        raise ParameterError(f"--schedule {name!r} is unknown.", did_you_mean(name, known))
    if seed is not None and not 0 <= seed < 1 << 64:
        raise ParameterError(f"--seed is {seed}.", "Give 0 to 2^64 - 1.")
    return Schedule(seed or 0, known[name], slow=Slow.parse(slow or []))
