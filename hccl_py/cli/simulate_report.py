"""The reports of `hccl-py simulate` on one call, and on a row of sizes."""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from hccl_py.cli.accuracy import TimeAccuracy, line_of_calls
from hccl_py.cli.call import describe_topology, document_of_call, document_of_plan
from hccl_py.cli.errors import say_error
from hccl_py.cli.output import Screen, counted, facts, print_json, table
from hccl_py.cli.request import Request, describe_op
from hccl_py.cli.simulations import FailedSize, Simulated
from hccl_py.jobs import JobProgram, draw_overlap, overlap
from hccl_py.language import translated
from hccl_py.simulator.summary import MOST, Summary
from hccl_py.trace.units import format_share, format_size

if TYPE_CHECKING:
    from rich.console import RenderableType

    from hccl_py.cli.options import Output
    from hccl_py.cli.request import Model
    from hccl_py.program.program import Program
    from hccl_py.simulator.timeline import Timeline


def show(
    found: Simulated, notifies: str, output: Output, *, with_report: bool, is_brief: bool
) -> None:
    """Show the times of one call; without the report on its tasks where that is brief."""
    if output.json:
        print_json(_document_of(found, with_report, notifies))
        return
    screen = Screen()
    for part in _drawing(found, is_brief=is_brief):
        screen.show(part)


def _document_of(found: Simulated, report: bool, notifies: str) -> dict[str, Any]:
    """Return the JSON document on one size."""
    document = {
        "schema": "hccl-py.simulate/1",
        **_of_plan(found),
        "why_levels": dict(found.plan.selection.why_levels),
        "overruled": list(found.plan.selection.overruled),
        **found.model.document(),
        "notifies": _kind_of_notifies([found], notifies),
        **_measures(found),
        "peak_rss_mb": _peak_rss_mb(),
    }
    if report and found.times.timeline is not None:
        document["report"] = Summary(found.times.timeline).document()
    return document | _document_of_job(found.plan.program, found.times.timeline)


def _of_plan(found: Simulated) -> dict[str, Any]:
    """Return the keys of the call and its program, with the passes that were not written out."""
    document, repeated = document_of_plan(found.request, found.plan), found.times.repeated
    if repeated is None:
        return document
    return document | {"rounds": repeated.passes, "tasks": repeated.tasks}


def _measures(found: Simulated) -> dict[str, Any]:
    return {
        "walk": found.times.walk,
        "simulated_us": found.times.total_us,
        "is_at_floor": found.times.is_at_floor,
        "accuracy": found.accuracy.document(),
        "overruns": found.times.overruns or 0,
        "algbw_gbps": found.bandwidths[0],
        "busbw_gbps": found.bandwidths[1],
        "lower_bound_us": found.lower_bound_us,
        "record_s": found.record_s,
        "link_s": found.times.link_s,
        "simulate_s": found.times.simulate_s,
    }


_NAMES = 14
"""Columns of the names on the left, the same in both parts of the text."""

_OF_A_ROW = ("bytes", "count", "executor", "algorithm", "rounds", "tasks")


def show_rows(
    request: Request,
    model: Model,
    rows: Sequence[Simulated | FailedSize],
    notifies: str,
    output: Output,
) -> bool:
    """Show a row for each size, then the errors of sizes that have no time; return True if there
    are none. Raises the first error where no size has a time.
    """
    simulated = [row for row in rows if isinstance(row, Simulated)]
    failed = [row for row in rows if isinstance(row, FailedSize)]
    if not simulated:
        raise failed[0].error
    _show_rows(request, model, simulated, failed, notifies, output)
    for one in failed:
        say_error(f"-b {format_size(one.bytes)}: {one.error.message}", one.error.hint)
    return not failed


def _show_rows(
    request: Request,
    model: Model,
    simulated: Sequence[Simulated],
    failed: Sequence[FailedSize],
    notifies: str,
    output: Output,
) -> None:
    op = simulated[0].plan.op
    if output.json:
        head = {"schema": "hccl-py.simulate/1", **document_of_call(request, op)}
        kind = {"notifies": _kind_of_notifies(simulated, notifies)}
        errors = {"failed": [_failed_row(one) for one in failed]} if failed else {}
        print_json(head | model.document() | kind, rows=map(_row, simulated), **errors)
        return
    screen = Screen()
    name = describe_op(op) if request.has_op else request.describe(op)
    screen.show(f"{name}, {op.dtype.value}, {op.mode.value}")
    screen.show(describe_topology(request.topology))
    screen.show(f"cost model {model.cost.name}, {model.conditions}")
    if early := [row.times.overruns for row in simulated if row.times.overruns is not None]:
        screen.show(_of_overruns(sum(early)))
    screen.show()
    screen.show_whole(_table(simulated))
    screen.show()
    screen.show(f"accuracy: {line_of_calls([row.accuracy for row in simulated])}")
    floors = [format_size(_row(row)["bytes"]) for row in simulated if row.times.is_at_floor]
    if floors:
        screen.show(f"at the call's floor, where programs do not differ: {', '.join(floors)}")
    if any(row.times.is_of_links for row in simulated):
        screen.show()
        screen.show(f"where its flows alone take less, a time is {_OF_LINKS}")


_OF_LINKS = "what the busiest link needs; --network contended lets flows share links"


def _row(found: Simulated) -> dict[str, Any]:
    head = _of_plan(found)
    return {name: head[name] for name in _OF_A_ROW} | _measures(found)


def _failed_row(failed: FailedSize) -> dict[str, Any]:
    return {"bytes": failed.bytes, "error": failed.error.message, "hint": failed.error.hint}


def _table(simulated: Sequence[Simulated]) -> RenderableType:
    shown = table("bytes", "us", "GB/s", "bus GB/s", "vs bound", left=("executor",))
    for found in simulated:
        row, shorter, times = _row(found), found.accuracy, found.times_bound
        shown.add_row(
            format_size(row["bytes"]),
            shorter.microseconds(found.times.total_us),
            *(shorter.number(gbps, 2) for gbps in found.bandwidths),
            "" if times is None else shorter.number(times, 2),
            " ".join([row["executor"], *row["algorithm"].values()]),
        )
    return shown


def _drawing(found: Simulated, *, is_brief: bool) -> Iterator[RenderableType]:
    """Yield the parts of the text for people; without the report where it is brief."""
    program, times = found.plan.program, found.times
    yield found.request.describe(found.plan.op)
    yield describe_topology(found.request.topology)
    yield found.request.describe_executor(found.plan.selection)
    yield from found.request.lines_of_levels(found.plan.selection)
    yield f"cost model {found.model.cost.name}, {found.model.conditions}"
    of_plan = _of_plan(found)
    tasks, rounds = counted(of_plan["tasks"], "task"), counted(of_plan["rounds"], "round")
    recorded = f"recorded in {found.record_s:.3f} s, " if found.request.is_recorded else ""
    yield (
        f"{tasks} in {rounds}: {recorded}"
        f"simulated in {times.link_s + times.simulate_s:.3f} s by {times.walk}"
    )
    if times.repeated is not None:
        within = f", within {format_share(times.repeated.spread)}" * bool(times.repeated.spread)
        yield (
            f"{times.repeated.written} of the rounds were timed: the others take what these take"
            f"{within}"
        )
        if times.repeated.slice_bytes is not None:
            yield (
                f"slices of {times.repeated.slice_bytes} bytes were timed: those of the cost model "
                "make too many tasks"
            )
    if times.overruns is not None:
        yield _of_overruns(times.overruns)
    elif program.counts_posts:
        yield "notifies count posts"
    yield ""
    if isinstance(program, JobProgram) or not program.has_op:
        lines = [("time", [_time(found)]), ("accuracy", [found.accuracy.line])]
        yield facts(lines, least=_NAMES)
        yield from _drawing_of_job(program, times.timeline)
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
        yield facts(_report(Summary(times.timeline), found.accuracy), least=_NAMES)


def _time(found: Simulated) -> str:
    """Return the time in words."""
    times, shorter = found.times, found.accuracy
    text = f"{shorter.time(times.total_us)} of model time"
    if times.is_at_floor:
        text += f", at the call's floor: its tasks take {shorter.time(times.makespan_us)}"
    elif times.is_of_links:
        text += f", {_OF_LINKS}; flows alone take {shorter.time(times.makespan_us)}"
    return text


def _speed(found: Simulated) -> RenderableType:
    """Return the time of a call, its accuracy, its bandwidths, and how far it is from the lower
    bound.
    """
    bound, shorter = found.times_bound, found.accuracy
    ratio = "" if bound is None else shorter.number(bound, 4, fixed=False)
    longer = "" if bound is None else f": the program takes {ratio} times as long"
    rates = [shorter.number(gbps, 5, fixed=False) for gbps in found.bandwidths]
    return facts(
        [
            ("time", [_time(found)]),
            ("accuracy", [shorter.line]),
            ("bandwidth", [f"{rates[0]} GB/s, on the bus {rates[1]} GB/s"]),
            ("lower bound", [f"{shorter.time(found.lower_bound_us)}{longer}"]),
        ],
        least=_NAMES,
    )


def _kind_of_notifies(simulated: Sequence[Simulated], asked: str) -> str:
    """Return the kind of notifies: as asked for, unless programs say that they count."""
    counts = any(found.plan.program.counts_posts for found in simulated)
    return "counting" if counts else asked


def _of_overruns(early: int) -> str:
    """Return a sentence on the posts that came too early where notifies count."""
    if not early:
        return "notifies count posts: no post came too early"
    return (
        f"notifies count posts: {counted(early, 'post')} came while a notify was still set, where "
        "hardware may lose one; `hccl-py check` says where"
    )


_PARTS = {
    "launch_us": "launch",
    "floor_us": "beyond the tasks: the least time of a call",
    "shared_us": "beyond the tasks: bytes of flows that share the busiest link",
    "alpha_us": "α",
    "notify_us": "notifies",
    "handling_us": "posts and waits on their streams",
    "link_us": "bytes over links",
    "reduce_us": "reductions",
    "copy_us": "local copies",
    "compute_us": "compute",
}


def _report(summary: Summary, shorter: TimeAccuracy) -> Iterator[tuple[str, list[str]]]:
    """Yield the parts of the time: ranks, waits, links, the critical path."""
    for use in summary.ranks():
        use_of_time = f"busy {use.busy:.1%}, waiting {use.waiting:.1%}, idle {use.idle:.1%}"
        yield _RANKS[use.which], [f"{use.rank}: {use_of_time}"]
    waits = [f"rank {w.rank} {shorter.time(w.us)} for rank {w.on}" for w in summary.waits(MOST)]
    yield "longest waits", waits
    links = summary.links(MOST)
    yield "busiest links", [f"{a} to {b}: {share:.1%}, {size} bytes" for a, b, size, share in links]
    path, total = summary.timeline.critical_path(), summary.timeline.total_us
    parts = path.parts()._asdict().items()
    shares = [f"{shorter.time(us)} ({us / total:.1%}) {_PARTS[name]}" for name, us in parts if us]
    yield "critical path", [counted(len(path.rows), "task"), *shares]
    phases = [(name, us) for name, us in summary.phases().items() if us]
    lines = [f"{shorter.time(us)} {name or translated('no phase')}" for name, us in phases[:MOST]]
    if len(phases) > MOST:
        rest = sum(us for _, us in phases[MOST:])
        lines.append(f"{shorter.time(rest)} {len(phases) - MOST} others")
    yield "by phase", lines
    first = summary.first_tasks(MOST)
    yield "its first tasks", [f"{b:.2f}-{e:.2f}  {translated(task)}" for b, e, task in first]


_RANKS = {"busiest": "busiest rank", "median": "median rank", "idlest": "least busy"}


def _drawing_of_job(program: Program, timeline: Timeline | None) -> Iterator[RenderableType]:
    """Yield the communication of a job that computation hides, where its tasks were timed."""
    if timeline is not None and isinstance(program, JobProgram):
        report = overlap(timeline)
        yield ""
        yield draw_overlap(report)
        yield f"{report.hidden:.0%} of the communication is hidden behind computation"


def _document_of_job(program: Program, timeline: Timeline | None) -> dict[str, Any]:
    """Return the same for a JSON document; nothing for other programs."""
    if timeline is None or not isinstance(program, JobProgram):
        return {}
    report = overlap(timeline)
    worst = {
        name: float(getattr(report, name)[report.worst])
        for name in ("total_us", "compute_us", "communication_us", "overlapped_us", "exposed_us")
    }
    return {"overlap": {"hidden": report.hidden, "worst_rank": report.worst, **worst}}


def _peak_rss_mb() -> float:
    """Return the most memory that this process had, in 2^20 bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / ((1 << 20) if sys.platform == "darwin" else 1 << 10)
