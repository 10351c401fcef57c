"""`hccl-py simulate`: how long an op takes by the cost model, and why."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hccl_py.cli.call import (
    ProgramRequest,
    Request,
    check_tasks,
    describe_op,
    describe_topology,
    document_of_call,
    document_of_plan,
    request_of,
)
from hccl_py.cli.grouping import grouped
from hccl_py.cli.options import Output, ProgramOptions, Saving, Sizes, TimeModel
from hccl_py.cli.output import Screen, counted, facts, print_json, table
from hccl_py.cli.sizes import row_sizes, starting_at
from hccl_py.cli.sources import check_save, save_program
from hccl_py.cli.time_model import Model, model_of
from hccl_py.cli.traces import (
    check_chakra,
    document_of_job,
    drawing_of_job,
    is_job,
    write_chakra,
)
from hccl_py.errors import ParameterError, did_you_mean
from hccl_py.op_param import OpParam
from hccl_py.planning import Plan
from hccl_py.program.program import Program
from hccl_py.simulator.batches import simulate_batches
from hccl_py.simulator.bounds import lower_bound
from hccl_py.simulator.contended import Contention
from hccl_py.simulator.entry import NOTIFIES, simulate
from hccl_py.simulator.summary import MOST, Summary
from hccl_py.simulator.timeline import Timeline
from hccl_py.topology import Topology
from hccl_py.trace.units import format_size, format_time

if TYPE_CHECKING:
    from rich.console import RenderableType

    from hccl_py.msccl.repetition import RepeatedTimes, Repetition

__all__ = ["command"]

FEW_TASKS = 300_000
"""Programs up to here are simulated task by task, which takes well under a second."""


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
    counts = _counts_posts(notifies)
    with request.comm:
        whole = report or saving.save is not None or chakra is not None
        rows = (_simulated(request, used, size, whole, counts) for size in wanted)
        if sizes.maxbytes is not None:
            _show_rows(request, used, rows, notifies, output)
            return
        found = next(rows)
    save_program(found.plan.program, saving.save)
    if chakra is not None:
        write_chakra(chakra, request, found.times.timeline)
    if output.json:
        print_json(_document(found, report, notifies))
        return
    screen = Screen()
    is_brief = whole and not report and found.plan.program.task_count > FEW_TASKS
    for part in _drawing(found, is_brief=is_brief):
        screen.show(part)


def _counts_posts(notifies: str) -> bool:
    """Whether notifies count posts; ParameterError where they are of no known kind."""
    if notifies not in NOTIFIES:
        hint = did_you_mean(notifies, NOTIFIES)
        raise ParameterError(f"--notifies {notifies!r} is unknown.", hint)
    return notifies == "counting"


def _refuse_one_size_s(report: bool, saving: Saving) -> None:
    for option, value in (("--report", report), ("--save", saving.save)):
        if value:
            raise ParameterError(
                f"{option} is about one program, -e asks for several.", "Leave one of them out."
            )


@dataclass(frozen=True)
class _Times:
    """How long a program takes, and how that was computed: by `batches`, by `tasks`, which have a
    timeline, or by the `passes` that it takes to a steady state.

    `link_s` is what expanding the tasks and matching posts and waits took. `overruns` is how many
    posts came too early, where notifies of one bit count them; otherwise there can be none.
    """

    walk: str
    total_us: float
    link_s: float
    simulate_s: float
    timeline: Timeline | None = None
    overruns: int | None = None
    repeated: RepeatedTimes | None = None


@dataclass(frozen=True)
class _Simulated:
    """A call at one size with its times."""

    request: Request
    model: Model
    plan: Plan
    times: _Times
    record_s: float
    lower_bound_us: float

    @property
    def algbw_gbps(self) -> float:
        """10^9 bytes of data size per second."""
        size, total = self.request.data_size(self.plan.op), self.times.total_us
        return size / total * 1e-3 if total else 0.0

    @property
    def busbw_gbps(self) -> float:
        """The same, times what each link carries per byte of data size."""
        return self.algbw_gbps * self.request.operator.bus_factor(self.plan.program.ranks)

    @property
    def times_bound(self) -> float | None:
        """How many times the lower bound it takes; None where that is 0."""
        return self.times.total_us / self.lower_bound_us if self.lower_bound_us else None


def _simulated(request: Request, model: Model, size: int, whole: bool, counts: bool) -> _Simulated:
    """Record a call and time it; `whole` asks for the tasks of large programs, too."""
    start = time.perf_counter()
    op = request.op(size)
    repetition = None if whole or counts else request.repetition(op)
    if repetition is not None:
        return _repeated(request, model, op, repetition)
    plan = request.plan(op)
    record_s = time.perf_counter() - start
    times = _timed(plan.program, model, request.topology, whole, counts)
    bound = lower_bound(plan.op, request.topology, model.cost)
    return _Simulated(request, model, plan, times, record_s, bound.time_us)


def _repeated(request: Request, model: Model, op: OpParam, repetition: Repetition) -> _Simulated:
    """Time a call of very many passes by those that it takes to a steady state."""
    start = time.perf_counter()

    def simulated(program: Program) -> Timeline:
        return simulate(
            program, request.topology, model.cost, network=model.network, slow=model.slow
        )

    shares = model.network == "contended"
    found = repetition.timed(simulated, shares_links=shares)
    spent = time.perf_counter() - start
    times = _Times("passes", found.total_us, 0.0, spent, repeated=found)
    bound = lower_bound(op, request.topology, model.cost)
    plan = Plan(op, request.select(op), found.program)
    return _Simulated(request, model, plan, times, 0.0, bound.time_us)


def _timed(
    program: Program, model: Model, topology: Topology, report: bool, counts: bool
) -> _Times:
    """Time a program: task by task where it is small, where tasks may share links, where notifies
    count posts, or for a report. `counts` lets those of one bit count, too.
    """
    counts &= not program.counts_posts
    if counts:
        program = replace(program, counts_posts=True)
    start = time.perf_counter()
    needs_tasks = program.task_count <= FEW_TASKS or report or program.counts_posts
    contention = None
    if not needs_tasks and model.network == "contended":
        contention = Contention(program, topology, model.cost, model.slow)
        needs_tasks = contention.shares_links
    if not needs_tasks:
        clocks = simulate_batches(program, topology, model.cost, model.slow)
        return _Times("batches", clocks.total_us, 0.0, time.perf_counter() - start)
    check_tasks(program)
    program.linked.check(program, once=True)
    linked = time.perf_counter()
    if contention is not None:
        timeline = contention.timeline()
    else:
        timeline = simulate(program, topology, model.cost, network=model.network, slow=model.slow)
    done = time.perf_counter()
    early = len(timeline.overruns()) if counts else None
    return _Times("tasks", timeline.total_us, linked - start, done - linked, timeline, early)


def _document(found: _Simulated, report: bool, notifies: str) -> dict[str, Any]:
    document = {
        "schema": "hccl-py.simulate/1",
        **_of_plan(found),
        **found.model.document(),
        "notifies": _kind_of_notifies([found], notifies),
        **_measures(found),
        "peak_rss_mb": _peak_rss_mb(),
    }
    if report and found.times.timeline is not None:
        document["report"] = Summary(found.times.timeline).document()
    return document | document_of_job(found.plan.program, found.times.timeline)


def _of_plan(found: _Simulated) -> dict[str, Any]:
    """Return what was called and what runs for it, passes that were not written out included."""
    document, repeated = document_of_plan(found.request, found.plan), found.times.repeated
    if repeated is None:
        return document
    return document | {"rounds": repeated.passes, "tasks": repeated.tasks}


def _measures(found: _Simulated) -> dict[str, Any]:
    return {
        "walk": found.times.walk,
        "simulated_us": found.times.total_us,
        "overruns": found.times.overruns or 0,
        "algbw_gbps": found.algbw_gbps,
        "busbw_gbps": found.busbw_gbps,
        "lower_bound_us": found.lower_bound_us,
        "record_s": found.record_s,
        "link_s": found.times.link_s,
        "simulate_s": found.times.simulate_s,
    }


_NAMES = 14
"""Columns of the names on the left, the same in both parts of what people read."""

_OF_A_ROW = ("bytes", "count", "executor", "algorithm", "rounds", "tasks")


def _show_rows(
    request: Request, model: Model, rows: Iterator[_Simulated], notifies: str, output: Output
) -> None:
    """Show a row for each size."""
    simulated = list(rows)
    found = [_row(row) for row in simulated]
    op = request.op(request.minbytes)
    if output.json:
        head = {"schema": "hccl-py.simulate/1", **document_of_call(request, op)}
        kind = {"notifies": _kind_of_notifies(simulated, notifies)}
        print_json(head | model.document() | kind, rows=found)
        return
    screen = Screen()
    screen.show(f"{describe_op(op)}, {op.dtype.value}, {op.mode.value}")
    screen.show(describe_topology(request.topology))
    screen.show(f"cost model {model.cost.name}, {model.conditions}")
    if early := [row.times.overruns for row in simulated if row.times.overruns is not None]:
        screen.show(_of_overruns(sum(early)))
    screen.show()
    screen.show_whole(_table(found))


def _row(found: _Simulated) -> dict[str, Any]:
    head = _of_plan(found)
    return {name: head[name] for name in _OF_A_ROW} | _measures(found)


def _table(rows: Sequence[dict[str, Any]]) -> RenderableType:
    shown = table("bytes", "us", "GB/s", "bus GB/s", "vs bound", left=("executor",))
    for row in rows:
        bound, us = row["lower_bound_us"], row["simulated_us"]
        shown.add_row(
            format_size(row["bytes"]),
            format_time(us),
            f"{row['algbw_gbps']:.2f}",
            f"{row['busbw_gbps']:.2f}",
            f"{us / bound:.2f}" if bound else "",
            " ".join([row["executor"], *row["algorithm"].values()]),
        )
    return shown


def _drawing(found: _Simulated, *, is_brief: bool) -> Iterator[RenderableType]:
    """Yield what people read, part by part; without the report where it is brief."""
    program, times = found.plan.program, found.times
    yield found.request.describe(found.plan.op)
    yield describe_topology(found.request.topology)
    yield found.request.describe_executor(found.plan.selection)
    yield f"cost model {found.model.cost.name}, {found.model.conditions}"
    of_plan = _of_plan(found)
    tasks, rounds = counted(of_plan["tasks"], "task"), counted(of_plan["rounds"], "round")
    is_read = isinstance(found.request, ProgramRequest)
    recorded = "" if is_read else f"recorded in {found.record_s:.3f} s, "
    yield (
        f"{tasks} in {rounds}: {recorded}"
        f"simulated in {times.link_s + times.simulate_s:.3f} s by {times.walk}"
    )
    if times.repeated is not None:
        yield f"{times.repeated.written} of the rounds were timed: the others take what these take"
    if times.overruns is not None:
        yield _of_overruns(times.overruns)
    elif program.counts_posts:
        yield "notifies count posts"
    yield ""
    if is_job(program) or not program.has_op:
        yield facts([("time", [f"{times.total_us:.2f} us of model time"])], least=_NAMES)
        yield from drawing_of_job(program, times.timeline)
    else:
        yield _speed(found)
    yield ""
    if times.repeated is not None:
        yield "A smaller -b says what the time goes into."
    elif times.timeline is None or is_brief:
        yield "--report says what the time goes into."
    elif not times.total_us:
        yield "Nothing takes any time."
    else:
        yield facts(_report(Summary(times.timeline)), least=_NAMES)


def _speed(found: _Simulated) -> RenderableType:
    """Return the time of a call, its bandwidths, and how far it is from the lower bound."""
    times, bound = found.times, found.times_bound
    longer = "" if bound is None else f": the program takes {bound:.4g} times as long"
    return facts(
        [
            ("time", [f"{times.total_us:.2f} us of model time"]),
            ("bandwidth", [f"{found.algbw_gbps:.5g} GB/s, on the bus {found.busbw_gbps:.5g} GB/s"]),
            ("lower bound", [f"{found.lower_bound_us:.2f} us{longer}"]),
        ],
        least=_NAMES,
    )


def _kind_of_notifies(simulated: Sequence[_Simulated], asked: str) -> str:
    """Return what notifies are: as asked for, unless programs say that they count."""
    counts = any(found.plan.program.counts_posts for found in simulated)
    return "counting" if counts else asked


def _of_overruns(early: int) -> str:
    """Say that notifies count posts, and what that hides."""
    if not early:
        return "notifies count posts: no post came too early"
    return (
        f"notifies count posts: {counted(early, 'post')} came while a notify was still set, where "
        "hardware may lose one; `hccl-py check` says where"
    )


_PARTS = {
    "launch_us": "launch",
    "alpha_us": "α",
    "notify_us": "notifies",
    "handling_us": "posts and waits on their streams",
    "link_us": "bytes over links",
    "reduce_us": "reductions",
    "copy_us": "local copies",
    "compute_us": "compute",
}


def _report(summary: Summary) -> Iterator[tuple[str, list[str]]]:
    """Yield what the time goes into: ranks, waits, links, the critical path."""
    for use in summary.ranks():
        use_of_time = f"busy {use.busy:.1%}, waiting {use.waiting:.1%}, idle {use.idle:.1%}"
        yield _RANKS[use.which], [f"{use.rank}: {use_of_time}"]
    waits = [f"rank {w.rank} {w.us:.2f} us for rank {w.on}" for w in summary.waits(MOST)]
    yield "longest waits", waits
    links = summary.links(MOST)
    yield "busiest links", [f"{a} to {b}: {share:.1%}, {size} bytes" for a, b, size, share in links]
    path, total = summary.timeline.critical_path(), summary.timeline.total_us
    parts = path.parts()._asdict().items()
    shares = [f"{us:.2f} us ({us / total:.1%}) {_PARTS[name]}" for name, us in parts if us]
    yield "critical path", [counted(len(path.rows), "task"), *shares]
    phases = [(name, us) for name, us in summary.phases().items() if us]
    lines = [f"{us:.2f} us {name or 'no phase'}" for name, us in phases[:MOST]]
    if len(phases) > MOST:
        lines.append(f"{sum(us for _, us in phases[MOST:]):.2f} us {len(phases) - MOST} others")
    yield "by phase", lines
    first = summary.first_tasks(MOST)
    yield "its first tasks", [f"{b:.2f}-{e:.2f}  {task}" for b, e, task in first]


_RANKS = {"busiest": "busiest rank", "median": "median rank", "idlest": "least busy"}


def _peak_rss_mb() -> float:
    """Return the most memory that this process had, in 2^20 bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / ((1 << 20) if sys.platform == "darwin" else 1 << 10)
