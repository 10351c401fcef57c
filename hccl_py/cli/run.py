"""`hccl-py run`: execute an op on real data and check the result, in hccl_test's columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Protocol

import typer

from hccl_py.cli.call import (
    ProgramRequest,
    Request,
    check_memory,
    check_tasks,
    describe_op,
    describe_topology,
    document_of_call,
    request_of,
)
from hccl_py.cli.declared import SLOW, here
from hccl_py.cli.errors import WrongResultError, status_of
from hccl_py.cli.grouping import grouped
from hccl_py.cli.options import Output, ProgramOptions, Saving, Sizes
from hccl_py.cli.output import format_levels, print_json
from hccl_py.cli.progress import Bar
from hccl_py.cli.sizes import last_size, row_sizes, starting_at
from hccl_py.cli.sources import check_save, save_program
from hccl_py.cli.streams import results, say
from hccl_py.cli.trace_files import check_timeline, write_timeline
from hccl_py.cli.traces import refuse_trace
from hccl_py.documents.disk import format_path
from hccl_py.enums import Buffer
from hccl_py.errors import NotSupportedError, ParameterError, did_you_mean
from hccl_py.measurement import Measurement, SizeResult, bytes_needed
from hccl_py.platforms import Adversary, Schedule
from hccl_py.program.program import Program
from hccl_py.stragglers import Stragglers
from hccl_py.trace.scene import scene_of
from hccl_py.trace.units import format_size

__all__ = ["command"]

SHOW_FIRST_WRONG = 2
"""The value of -c that shows it."""

HEADER = "data_size(Bytes): | aveg_time(us): | alg_bandwidth(GB/s): | check_result:"
"""hccl_test's own words: logs of one can be read like logs of the other."""

WIDTHS = [len(column) for column in HEADER.split(" | ")]


@dataclass(frozen=True)
class _Measuring:
    """How often an op is run, and how its results are checked."""

    iters: Annotated[
        int, typer.Option("-n", "--iters", metavar="N", min=1, help="Timed iterations.")
    ] = 20
    warmup: Annotated[
        int, typer.Option("-w", "--warmup", metavar="N", min=0, help="Iterations before them.")
    ] = 5
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
    ] = 1
    timeline: Annotated[
        str | None,
        typer.Option(
            "--timeline",
            metavar="FILE",
            help="Write when every task ran, beside the model's times: .html, .pftrace or .json.",
        ),
    ] = None


@dataclass(frozen=True)
class _Interleaving:
    """In which order the asynchronous streams run."""

    seed: Annotated[
        int | None,
        typer.Option(
            "--seed", metavar="N", help="Run one interleaving of the asynchronous streams."
        ),
    ] = None
    schedule: Annotated[
        str | None,
        typer.Option(
            "--schedule",
            metavar="NAME",
            help="Its kind: random, late-wire, early-wire, starved-stream or slow-rank.",
        ),
    ] = None
    slow: Annotated[
        list[str] | None,
        here(
            SLOW, help="A straggler, rank=3:2x, or a slow link, link=0-1:10x, in the interleaving."
        ),
    ] = None

    def chosen(self) -> Schedule | None:
        """Return the interleaving that the user asks for, if any."""
        if self.seed is None and self.schedule is None and not self.slow:
            return None
        known = {adversary.value: adversary for adversary in Adversary}
        name = self.schedule or Adversary.RANDOM.value
        if name not in known:
            raise ParameterError(f"--schedule {name!r} is unknown.", did_you_mean(name, known))
        if self.seed is not None and not 0 <= self.seed < 1 << 64:
            raise ParameterError(f"--seed is {self.seed}.", "Give 0 to 2^64 - 1.")
        return Schedule(self.seed or 0, known[name], slow=Stragglers.parse(self.slow or []))


@grouped
def command(
    *,
    call: ProgramOptions,
    sizes: Sizes,
    measuring: _Measuring,
    interleaving: _Interleaving,
    saving: Saving,
    output: Output,
) -> int | None:
    """Run an op on real data and check every element of the result.

    One row per size from -b to -e, in hccl_test's columns. The times are wall time of the platform;
    on the emulated one they say how fast this machine emulates, not how fast NPUs are. There --slow
    gives a straggler fewer turns, which changes the order of tasks, and no time. In the place of an
    op, a program file is run on data made up for its op.
    """
    runs = _Runs.of(call, sizes, measuring, interleaving.chosen())
    if saving.save is not None:
        runs.check_save(saving.save)
    if measuring.timeline is not None:
        runs.check_timeline(measuring.timeline)
    with runs.request.comm as comm:
        save_program(runs.prepare(), saving.save)
        status = comm.launch(lambda: status_of(lambda: _report(runs, output), debug=output.debug))
        if status is None:
            _report(runs, output)
        return status


def _report(runs: _Runs, output: Output) -> None:
    """Run everything, and say what was measured: in one process, where there are several."""
    with runs.request.comm as comm:
        local = comm.local_ranks  # opens the session: the platform looks at the schedule
        if runs.measuring.timeline is not None:
            runs.write_timeline(runs.measuring.timeline)
        report: _Report = _JsonReport(runs) if output.json else _TextReport(runs)
        if local.start > 0:
            report = _NoReport()
        report.begin()
        for row in runs.rows():
            report.row(row)
        report.end()
        results().flush()


@dataclass(frozen=True)
class _Runs:
    """What is run: sizes, iterations, kind of check, interleaving."""

    request: Request
    sizes: Sequence[int]
    maxbytes: int
    measuring: _Measuring
    schedule: Schedule | None

    @staticmethod
    def of(
        call: ProgramOptions, sizes: Sizes, measuring: _Measuring, schedule: Schedule | None
    ) -> _Runs:
        """Check the options; raises where one makes no sense."""
        refuse_trace(call.op, "run")
        request = request_of(call, schedule)
        request.check_sizes(sizes)
        if not request.has_op:
            raise ParameterError(
                f"What {format_path(call.op)} computes is not known, so there is nothing to run.",
                "State it: --op, -d, -o, -r.",
            )
        if request.is_fixed:
            return _Runs(request, [request.minbytes], request.minbytes, measuring, schedule)
        start = starting_at(call.minbytes, request.minbytes)
        rows, last = row_sizes(start, sizes), last_size(start, sizes)
        return _Runs(request, rows, last, measuring, schedule)

    def check_save(self, path: str) -> None:
        """Refuse to save several programs, or over a file that is none."""
        if len(self.sizes) > 1:
            raise ParameterError(
                "--save keeps one program, -e asks for several.", "Leave one of them out."
            )
        check_save(path)

    def check_timeline(self, path: str) -> None:
        """Refuse timelines of several programs, and a file that cannot be written."""
        if len(self.sizes) > 1:
            raise ParameterError(
                "--timeline is of one program, -e asks for several.", "Leave one of them out."
            )
        check_timeline(path)

    def write_timeline(self, path: str) -> None:
        """Write the measured times of the first size and those of the model."""
        request, counts = self.request, self.measuring
        plan = request.plan(request.op(self.sizes[0]))
        measured = Measurement(request.comm, 1, counts.warmup, check=False).timeline(plan)
        title, facts = request.describe(plan.op), [("platform", request.platform)]
        scenes = {
            f"measured on {request.platform}": scene_of(
                plan.program,
                request.topology,
                timeline=measured,
                clock="measured",
                title=title,
                facts=facts,
            ),
            "model": scene_of(plan.program, request.topology, title=title),
        }
        write_timeline(path, scenes)

    def prepare(self) -> Program:
        """Return the program of the first size.

        Raises, before anything is printed, where a call is illegal or too large for this machine,
        and where its executor cannot record the first size.
        """
        for size in (self.sizes[0], self.sizes[-1]):
            op = self.request.op(size)
            self.request.select(op)
            check_memory(bytes_needed(self.request.comm, op), "The buffers of all ranks together")
        if isinstance(self.request, ProgramRequest):
            _check_buffers(self.request)
        return self.request.plan(self.request.op(self.sizes[0])).program

    def rows(self) -> Iterator[SizeResult]:
        """Measure size after size."""
        counts = self.measuring
        measurement = Measurement(
            self.request.comm, counts.iters, counts.warmup, check=counts.check > 0
        )
        for size in self.sizes:
            plan = self.request.plan(self.request.op(size))
            check_tasks(plan.program)
            title = format_size(self.request.data_size(plan.op))
            with Bar(title, counts.warmup + counts.iters) as bar:
                row = measurement.row(plan, bar.advance)
            yield row


def _check_buffers(request: ProgramRequest) -> None:
    """Refuse a program whose IN and OUT are not those of its op: data made up would not fit."""
    program = request.program
    needed = request.operator.user_bytes(program.op, program.ranks)
    for buffer, sizes in zip((Buffer.USER_IN, Buffer.USER_OUT), needed, strict=True):
        name = buffer.spelling
        if name not in program.buffers:
            if not sizes.any():
                continue
            raise NotSupportedError(
                f"{request.name} has no buffer {name}: there is nowhere to put data.",
                "Data comes from IN, and results are read from OUT.",
            )
        found = program.buffer_sizes[:, program.buffers.index(name)]
        wrong = (found != sizes).nonzero()[0]
        if len(wrong):
            rank = int(wrong[0])
            raise NotSupportedError(
                f"{request.name}: {name} of rank {rank} has {found[rank]} bytes, "
                f"{program.op.name} has {sizes[rank]} there.",
                "`hccl-py check --numeric` runs a program with buffers of any size.",
            )


class _Report(Protocol):
    """What is said of the rows, while they are measured and at the end."""

    def begin(self) -> None:
        """Say what is measured."""

    def row(self, row: SizeResult) -> None:
        """Take a row in."""

    def end(self) -> None:
        """Say what was found; WrongResultError where a row is wrong."""


class _NoReport:
    """What other processes say: rank 0 speaks for all of them."""

    def begin(self) -> None:
        """Say nothing."""

    def row(self, row: SizeResult) -> None:
        """Say nothing."""

    def end(self) -> None:
        """Say nothing: rank 0 knows of every rank's wrong elements."""


class _TextReport:
    """A title, one line per row as soon as it is measured, and what was shown by it."""

    def __init__(self, runs: _Runs) -> None:
        self._runs = runs
        self._executor = ""
        self._rows: list[SizeResult] = []

    def begin(self) -> None:
        """Print what is measured, and the head of the table."""
        runs = self._runs
        request, op = runs.request, runs.request.op(runs.sizes[0])
        say(f"{describe_op(op)} {op.dtype.value}, {op.mode.value}")
        say(describe_topology(request.topology))
        selection = request.select(op)
        self._executor = selection.executor
        say(request.describe_executor(selection))
        say(f"platform {request.platform}{_format_interleaving(runs)}: {_clock(runs)}")
        say(
            f"the minbytes is {request.minbytes}, maxbytes is {runs.maxbytes}, "
            f"iters is {runs.measuring.iters}, warmup_iters is {runs.measuring.warmup}"
        )
        say(HEADER, flush=True)

    def row(self, row: SizeResult) -> None:
        """Print a row, before it the executor where it changes."""
        if row.executor != self._executor:
            self._executor = row.executor
            levels = format_levels(row.algorithm)
            say(f"from here on {row.executor}, {levels}")
        self._rows.append(row)
        cells = (str(row.bytes), f"{row.time_us:.2f}", f"{row.algbw_gbps:.5g}", row.check)
        line = " | ".join(f"{cell:<{width}}" for cell, width in zip(cells, WIDTHS, strict=True))
        say(line.rstrip(), flush=True)
        if row.first_wrong and self._runs.measuring.check == SHOW_FIRST_WRONG:
            say(f"  {row.first_wrong}")

    def end(self) -> None:
        """Say what was shown, or raise."""
        _raise_if_wrong(self._runs, self._rows)
        if self._runs.measuring.check:
            say("checked: every element at every rank is right, to the last bit")


class _JsonReport:
    """One document at the end."""

    def __init__(self, runs: _Runs) -> None:
        self._runs = runs
        self._rows: list[SizeResult] = []

    def begin(self) -> None:
        """Print nothing yet."""

    def row(self, row: SizeResult) -> None:
        """Keep a row."""
        self._rows.append(row)

    def end(self) -> None:
        """Print the document; raise where a row is wrong."""
        runs = self._runs
        op = runs.request.op(runs.sizes[0])
        print_json(
            {
                "schema": "hccl-py.run/1",
                **document_of_call(runs.request, op),
                "platform": runs.request.platform,
                "schedule": _schedule_document(runs),
                "clock": runs.request.comm.clock,
                "iters": runs.measuring.iters,
                "warmup_iters": runs.measuring.warmup,
                "rows": [_document(row) for row in self._rows],
            }
        )
        _raise_if_wrong(runs, self._rows)


def _document(row: SizeResult) -> dict[str, Any]:
    document: dict[str, Any] = {
        "bytes": row.bytes,
        "count": row.count,
        "executor": row.executor,
        "algorithm": dict(row.algorithm),
        "time_us": row.time_us,
        "algbw_gbps": row.algbw_gbps,
        "busbw_gbps": row.busbw_gbps,
        "check": row.check,
    }
    if row.first_wrong:
        document["first_wrong"] = asdict(row.first_wrong)
    return document


def _raise_if_wrong(runs: _Runs, rows: list[SizeResult]) -> None:
    wrong = [row for row in rows if row.check == "failed"]
    if not wrong:
        return
    shown = runs.measuring.check == SHOW_FIRST_WRONG
    raise WrongResultError(
        f"The result is wrong for {len(wrong)} of {len(rows)} sizes.",
        "The first wrong element is shown above; `hccl-py trace` shows the tasks."
        if shown
        else "-c 2 shows the first wrong element.",
    )


def _clock(runs: _Runs) -> str:
    if runs.request.comm.clock != "wall":
        return "times are those of its model"
    if runs.request.platform == "emulated":
        return "times are wall time of the emulation on this machine, not of NPUs"
    return "times are wall time"


def _format_interleaving(runs: _Runs) -> str:
    schedule = runs.schedule
    if schedule is None:
        return ""
    slow = f" with {', '.join(schedule.slow.options())}" if schedule.slow else ""
    return f", {schedule.adversary.value} interleaving {schedule.seed}{slow}"


def _schedule_document(runs: _Runs) -> dict[str, Any] | None:
    schedule = runs.schedule
    if schedule is None:
        return None
    return {
        "seed": schedule.seed,
        "adversary": schedule.adversary.value,
        "slow": schedule.slow.options(),
    }
