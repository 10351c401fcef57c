"""The rows of `hccl-py run`, measured one after another: a table in hccl_test's columns, or one
JSON document.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from hccl_py.call.op_param import OpParam
from hccl_py.cli.accuracy import TimeAccuracy
from hccl_py.cli.call import (
    check_memory,
    check_save,
    check_tasks,
    describe_topology,
    document_of_call,
)
from hccl_py.cli.errors import WrongResultError
from hccl_py.cli.options import TimeModel, one_of
from hccl_py.cli.output import Bar, format_levels, print_json
from hccl_py.cli.request import Request, checked_model, describe_op
from hccl_py.cli.sizes import last_size, refuse_several, row_sizes, starting_at
from hccl_py.cli.sources import refuse_without_addresses, request_of
from hccl_py.cli.streams import results, say
from hccl_py.clocks.stragglers import Stragglers
from hccl_py.communicator.measurement import Measurement, SizeResult, bytes_needed
from hccl_py.documents.disk import format_path
from hccl_py.enums import Buffer
from hccl_py.errors import DeadlockError, NotSupportedError, ParameterError
from hccl_py.importers import Source
from hccl_py.plugins.platforms import Adversary, Schedule
from hccl_py.program.program import Program
from hccl_py.trace.scene import scene_of
from hccl_py.trace.units import format_size
from hccl_py.tuning.choose import COST

if TYPE_CHECKING:
    from hccl_py.cli.options import Output, ProgramOptions, Sizes
    from hccl_py.cli.run import Interleaving, Measuring

SHOW_FIRST_WRONG = 2
"""The value of -c that shows it."""

HEADER = "data_size(Bytes): | aveg_time(us): | alg_bandwidth(GB/s): | check_result:"
"""hccl_test's own words: logs of one can be read like logs of the other."""

WIDTHS = [len(column) for column in HEADER.split(" | ")]


@dataclass(frozen=True)
class Runs:
    """The runs of a command: sizes, iterations, kind of check, interleaving."""

    request: Request
    sizes: Sequence[int]
    maxbytes: int
    measuring: Measuring
    schedule: Schedule | None
    by_cost: bool = False
    """True if executors are chosen by model times."""

    @staticmethod
    def of(
        call: ProgramOptions, sizes: Sizes, measuring: Measuring, interleaving: Interleaving
    ) -> Runs:
        """Check the options; raises where one makes no sense."""
        _check_iterations(measuring.warmup + measuring.iters)
        schedule = _schedule(interleaving)
        request = request_of(call, schedule)
        if request.source is not None:
            refuse_without_addresses(request.source, "run")
        request.check_sizes(sizes)
        if not request.has_op:
            raise ParameterError(
                f"What {format_path(call.op)} computes is not known, so there is nothing to run.",
                "State it: --op, -d, -o, -r.",
            )
        if request.is_fixed:
            return Runs(request, [request.minbytes], request.minbytes, measuring, schedule)
        by_cost = call.select == COST and call.executor is None and request.source is None
        start = starting_at(call.minbytes, request.minbytes)
        rows, last = row_sizes(start, sizes), last_size(start, sizes)
        return Runs(request, rows, last, measuring, schedule, by_cost)

    def accuracy(self, op: OpParam) -> TimeAccuracy:
        """Return the accuracy of the times by which the executor of a call was chosen."""
        model = checked_model(TimeModel(), self.request.topology)
        return TimeAccuracy.of(self.request, self.request.plan(op).program, op, model)

    def check_save(self, path: str) -> None:
        """Refuse to save several programs, or over a file that is none."""
        if len(self.sizes) > 1:
            refuse_several("--save")
        check_save(path)

    def check_timeline(self, path: str) -> None:
        """Refuse timelines of several programs, and a file that cannot be written."""
        from hccl_py.trace.timelines import check_timeline

        if len(self.sizes) > 1:
            refuse_several("--timeline")
        check_timeline(path)

    def write_timeline(self, path: str) -> None:
        """Write the measured times of the first size and those of the model."""
        from hccl_py.trace.timelines import write_timeline

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
        program = self.request.plan(self.request.op(self.sizes[0])).program
        if self.request.source is not None and not self.request.is_recorded:
            _check_buffers(self.request, self.request.source, program)
        return program

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
                try:
                    row = measurement.row(plan, bar.advance)
                except DeadlockError as error:
                    raise self.request.hang(plan.op, error) from None
            yield row


LEAST_S, MOST_S = 1e-5, 3600.0
"""Seconds that an iteration takes at least, and that all of them may take then."""


def _check_iterations(count: int) -> None:
    """Refuse iterations that take hours, however short each is."""
    seconds = count * LEAST_S
    if seconds > MOST_S:
        raise ParameterError(
            f"{count} iterations take {seconds / 3600:.3g} hours at least, at 10 us each.",
            f"Give -n and -w {int(MOST_S / LEAST_S)} together at most.",
        )


def report(runs: Runs, output: Output) -> None:
    """Measure all rows and report on them; WrongResultError where one is wrong.

    Where there are several processes, that of rank 0 reports: it knows all wrong elements.
    """
    with runs.request.comm as comm:
        local = comm.local_ranks  # opens the session: the platform looks at the schedule
        if runs.measuring.timeline is not None:
            runs.write_timeline(runs.measuring.timeline)
        if local.start > 0:
            for _ in runs.rows():
                pass
            return
        shown = _printed if output.json else _shown
        rows = shown(runs)
        _check_rows(runs, rows)
        if any(row.check == "success" for row in rows) and not output.json:
            say("checked: every element at every rank is right, to the last bit")
        results().flush()


def _shown(runs: Runs) -> list[SizeResult]:
    """Print the call, the platform, and a row as soon as it is measured, below the name of its
    executor where that changes.
    """
    request, op = runs.request, runs.request.op(runs.sizes[0])
    selection = request.select(op)
    executor = selection.executor
    say(f"{describe_op(op)} {op.dtype.value}, {op.mode.value}")
    say(describe_topology(request.topology))
    say(request.describe_executor(selection))
    for line in request.lines_of_levels(selection):
        say(line)
    if runs.by_cost:
        say(f"{selection.reasons[0]}; accuracy {runs.accuracy(op).line}")
    say(f"platform {request.platform}{_format_interleaving(runs)}: {_clock(runs)}")
    say(
        f"the minbytes is {request.minbytes}, maxbytes is {runs.maxbytes}, "
        f"iters is {runs.measuring.iters}, warmup_iters is {runs.measuring.warmup}"
    )
    say(HEADER, flush=True)
    rows = []
    for row in runs.rows():
        if row.executor != executor:
            executor = row.executor
            say(f"from here on {executor}, {format_levels(row.algorithm)}")
        cells = (str(row.bytes), f"{row.time_us:.2f}", f"{row.algbw_gbps:.5g}", row.check)
        line = " | ".join(f"{cell:<{width}}" for cell, width in zip(cells, WIDTHS, strict=True))
        say(line.rstrip(), flush=True)
        if row.first_wrong and runs.measuring.check == SHOW_FIRST_WRONG:
            say(f"  {row.first_wrong}")
        rows.append(row)
    return rows


def _printed(runs: Runs) -> list[SizeResult]:
    """Print one JSON document when all rows are measured."""
    rows = list(runs.rows())
    print_json(
        {
            "schema": "hccl-py.run/1",
            **document_of_call(runs.request, runs.request.op(runs.sizes[0])),
            "platform": runs.request.platform,
            "schedule": _schedule_document(runs),
            "clock": runs.request.comm.clock,
            "iters": runs.measuring.iters,
            "warmup_iters": runs.measuring.warmup,
            "overruled": list(runs.request.select(runs.request.op(runs.sizes[0])).overruled),
            **_document_of_choice(runs),
            "rows": [_document(row) for row in rows],
        }
    )
    return rows


def _document_of_choice(runs: Runs) -> dict[str, Any]:
    """Return the accuracy of the times by which the first executor was chosen, if by times."""
    if not runs.by_cost:
        return {}
    return {"accuracy": runs.accuracy(runs.request.op(runs.sizes[0])).document()}


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


def _check_rows(runs: Runs, rows: list[SizeResult]) -> None:
    """Raise WrongResultError where a row is wrong."""
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


def _clock(runs: Runs) -> str:
    if runs.request.comm.clock != "wall":
        return "times are those of its model"
    if runs.request.platform == "emulated":
        return "times are wall time of the emulation on this machine, not of NPUs"
    return "times are wall time"


def _format_interleaving(runs: Runs) -> str:
    schedule = runs.schedule
    if schedule is None:
        return ""
    slow = f" with {', '.join(schedule.slow.options())}" if schedule.slow else ""
    return f", {schedule.adversary.value} interleaving {schedule.seed}{slow}"


def _schedule_document(runs: Runs) -> dict[str, Any] | None:
    schedule = runs.schedule
    if schedule is None:
        return None
    return {
        "seed": schedule.seed,
        "adversary": schedule.adversary.value,
        "slow": schedule.slow.options(),
    }


def _schedule(asked: Interleaving) -> Schedule | None:
    """Return the interleaving that the user asks for, if any."""
    if asked.seed is None and asked.schedule is None and not asked.slow:
        return None
    name = Adversary.RANDOM.value if asked.schedule is None else asked.schedule
    adversary = one_of("--schedule", name, {one.value: one for one in Adversary})
    if asked.seed is not None and not 0 <= asked.seed < 1 << 64:
        raise ParameterError(f"--seed is {asked.seed}.", "Give 0 to 2^64 - 1.")
    return Schedule(asked.seed or 0, adversary, slow=Stragglers.parse(asked.slow or []))


def _check_buffers(request: Request, source: Source, program: Program) -> None:
    """Refuse a program whose IN and OUT do not have the sizes of its op: no data would fit."""
    needed = request.operator.user_bytes(program.op, program.ranks)
    for buffer, sizes in zip((Buffer.USER_IN, Buffer.USER_OUT), needed, strict=True):
        name = buffer.spelling
        if name not in program.buffers:
            if not sizes.any():
                continue
            raise NotSupportedError(
                f"{source.name} has no buffer {name}: there is nowhere to put data.",
                "Data comes from IN, and results are read from OUT.",
            )
        found = program.buffer_sizes[:, program.buffers.index(name)]
        wrong = (found != sizes).nonzero()[0]
        if len(wrong):
            rank = int(wrong[0])
            raise NotSupportedError(
                f"{source.name}: {name} of rank {rank} has {found[rank]} bytes, "
                f"{program.op.name} has {sizes[rank]} there.",
                "`hccl-py check --numeric` runs a program with buffers of any size.",
            )
