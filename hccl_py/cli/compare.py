"""`hccl-py compare`: all executors of an op, at every size, by simulation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hccl_py.cli.call import CallRequest
from hccl_py.cli.grouping import grouped
from hccl_py.cli.options import CallOptions, Output, Sizes, TimeModel
from hccl_py.cli.output import Screen, print_json, table
from hccl_py.cli.progress import Bar
from hccl_py.cli.sizes import row_sizes
from hccl_py.cli.sources import refuse_source
from hccl_py.cli.streams import say
from hccl_py.cli.time_model import checked_model
from hccl_py.documents.disk import check_place, write_file
from hccl_py.errors import ParameterError
from hccl_py.trace.units import format_size, format_time
from hccl_py.tuning.chart import chart
from hccl_py.tuning.compare import EFFORT_S, Comparison, Row, compare
from hccl_py.tuning.pictures import PAGE, PNG, check_drawing, page, png, subtitle_of, title_of
from hccl_py.tuning.points import Point
from hccl_py.tuning.table import TABLE, TuningTable
from hccl_py.tuning.tune import save_winners

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["command"]

FACTOR = 4
"""From size to size, unless the user says otherwise."""


@dataclass(frozen=True)
class _Candidates:
    """Which executors are timed, and how much work that may be."""

    executors: Annotated[
        str | None,
        typer.Option(
            "--executors",
            metavar="A,B",
            help="Only these; else every executor that can run it.",
        ),
    ] = None
    effort: Annotated[
        float | None,
        typer.Option(
            "--effort",
            metavar="S",
            min=0,
            help="Seconds of a core for a candidate, else 1; 0: any.",
        ),
    ] = None
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", metavar="N", min=1, help="Processes, else one for each core."),
    ] = None

    @property
    def names(self) -> list[str]:
        """The executors that are named; empty where all take part."""
        return [] if self.executors is None else [n.strip() for n in self.executors.split(",")]


@dataclass(frozen=True)
class _Files:
    """The files that are made of a comparison, where they are asked for; `out` keeps its points."""

    png: Annotated[
        str | None, typer.Option("--png", metavar="FILE", help="Write the picture as PNG.")
    ] = None
    html: Annotated[
        str | None,
        typer.Option("--html", metavar="FILE", help="Write a page with picture and table."),
    ] = None
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="Time every point into a .csv or .parquet; goes on where it was killed.",
        ),
    ] = None
    save: Annotated[
        str | None,
        typer.Option("--save", metavar="FILE", help="Add the winners to a tuning table."),
    ] = None

    def check(self, options: TimeModel) -> None:
        """Refuse before the work what could not be written after it."""
        if self.png or self.html:
            check_drawing()
        for path, kind in ((self.png, PNG), (self.html, PAGE), (self.save, TABLE)):
            if path is not None:
                check_place(path, kind)
        if self.save and options.slow:
            raise ParameterError(
                "Tuning tables are for machines without defects.", "Leave --slow or --save out."
            )
        if self.save and Path(self.save).exists():
            TuningTable.read(self.save)

    def write(self, found: Comparison) -> None:
        """Write them."""
        if self.png is not None:
            write_file(self.png, png(found), PNG)
        if self.html is not None:
            write_file(self.html, page(found).encode(), PAGE)
        if self.save is not None:
            save_winners([r.point for r in found.rows], [r.outcome for r in found.rows], self.save)


@grouped
def command(
    *,
    call: CallOptions,
    sizes: Sizes,
    model: TimeModel,
    candidates: _Candidates,
    every: Annotated[
        bool, typer.Option("--all", help="Show every candidate, not only the fastest.")
    ] = False,
    files: _Files,
    output: Output,
) -> None:
    """Time every executor that suits, at sizes from -b to -e, and show the fastest.

    And what HCCL's rules choose, and how much longer that takes. --executor module:Class takes part
    beside the others. Times are those of the cost model. Sizes are multiplied by 4 unless -f or -i
    says otherwise.
    """
    refuse_source(
        call.op, "compare", "It times the executors of an op; `simulate` takes a program."
    )
    _check(call, {"--out": files.out, "--save": files.save})
    files.check(model)
    found = _compared(call, sizes, model, candidates, files.out)
    files.write(found)
    if output.json:
        print_json(_document(found))
    else:
        _show(found, every=every)


def _compared(
    call: CallOptions,
    sizes: Sizes,
    options: TimeModel,
    candidates: _Candidates,
    out: str | None,
) -> Comparison:
    """Compare what the options say; an effort of 0 is any."""
    if out is not None and candidates.effort:
        raise ParameterError("--out times every point: it takes no --effort.", "Leave one out.")
    request = CallRequest(call)
    request.check_sizes(sizes)
    model = checked_model(options, request.topology)
    if sizes.stepfactor is None and sizes.stepbytes is None:
        sizes = replace(sizes, stepfactor=FACTOR)
    wanted = [0] if request.is_fixed else row_sizes(call.minbytes, sizes)
    if wanted[0] == 0 and not request.is_fixed:
        raise ParameterError("There is nothing to compare at 0 bytes.", "Give -b 1 or more.")
    call_spec = replace(request.spec.sized(wanted[0]), config=request.comm.config)
    point = Point(call=call_spec, cost=model.cost, network=model.network, slow=model.stragglers)
    effort_s = EFFORT_S if candidates.effort is None else candidates.effort or None
    with Bar("candidates" if out is None else "points") as bar:
        return compare(
            point,
            wanted,
            executors=candidates.names,
            own=call.executor,
            effort_s=effort_s,
            out=out,
            jobs=candidates.jobs,
            progress=bar.advance_to,
        )


def _check(call: CallOptions, kept: Mapping[str, str | None]) -> None:
    """Refuse options that make no sense here, rather than ignore them; `kept` are files that name
    executors.
    """
    own = call.executor if ":" in (call.executor or "") else None
    for option, path in kept.items():
        if own and path:
            raise ParameterError(
                f"{option} keeps executors by name, and {own} is a class of this folder.",
                f"Install it as a package (`hccl-py new` writes one), or leave {option} out.",
            )
    refused = {
        "--executor": (
            call.executor and not own,
            "--executors names those to compare; --executor module:Class adds one of this folder.",
        ),
        "--counts": (call.counts, "Give -b and -e: amounts are the usual ones."),
        "--in-place": (call.in_place, "Times in place are the same."),
        "--strict-hccl": (call.strict_hccl, "HCCL's choice is shown beside the others."),
    }
    for option, (value, hint) in refused.items():
        if value:
            raise ParameterError(f"compare takes no {option}.", hint)


def _document(found: Comparison) -> dict[str, Any]:
    """Return the JSON document."""
    op = found.op
    return {
        "schema": "hccl-py.compare/1",
        "op": op.name,
        "ranks": found.topology.size,
        "topology": found.topology.description,
        "dtype": op.dtype.value,
        "reduce_op": None if op.reduce is None else op.reduce.spelling,
        "mode": op.mode.value,
        "cost": found.point.cost.name,
        "network": found.point.network,
        "slow": list(found.point.slow),
        "clock": "model",
        "rows": [_row(row) for row in found.rows],
        "left_out": [
            {
                "executor": one.candidate.executor,
                "levels": one.candidate.levels,
                "bytes": list(one.sizes),
                "reason": one.reason,
            }
            for one in found.left_out
        ],
        "notes": list(found.notes),
        "spent_s": found.spent_s,
    }


def _row(row: Row) -> dict[str, Any]:
    outcome = row.outcome
    return {
        "bytes": row.bytes,
        "executor": row.candidate.executor,
        "algorithm": row.candidate.algorithm,
        "levels": row.candidate.levels,
        "simulated_us": outcome.simulated_us,
        "busiest_us": outcome.busiest_us,
        "time_us": row.time_us,
        "algbw_gbps": outcome.algbw_gbps,
        "busbw_gbps": outcome.busbw_gbps,
        "lower_bound_us": outcome.lower_bound_us,
        "times_bound": row.times_bound,
        "is_winner": row.is_winner,
        "is_hccl": row.candidate.is_hccl,
        "fidelity": row.candidate.fidelity.kind,
        "tasks": outcome.tasks,
        "rounds": outcome.rounds,
    }


def _show(found: Comparison, *, every: bool) -> None:
    """Print the table, the chart, and what there is to say about them."""
    screen = Screen()
    say(title_of(found))
    say(subtitle_of(found))
    screen.show_whole(_candidates(found) if every else _winners(found))
    if len(found.by_size) > 1:
        say()
        for line in chart(found, screen.console.width, unicode=screen.unicode):
            say(line)
    for line in [""] * bool(found.remarks) + found.remarks:
        say(line)


def _winners(found: Comparison) -> Table:
    """Return a line for each size: the winner, and what HCCL's rules choose."""
    shown = _table("fastest")
    shown.add_column("HCCL's rules", overflow="fold", min_width=12)
    shown.add_column("us", justify="right", no_wrap=True)
    shown.add_column("ratio", justify="right", no_wrap=True)
    for size, best in found.winners.items():
        rules, ratio = found.hccl.get(size), found.cost_of_rules(size)
        chosen = ("not timed", "", "")
        if rules is not None:
            chosen = (_rules(rules), format_time(rules.time_us), f"{ratio:.2f}x" if ratio else "")
        shown.add_row(*_cells(best), *chosen)
    return shown


def _candidates(found: Comparison) -> Table:
    """Return a line for each size and candidate; the winners and HCCL's choices are marked."""
    shown = _table("candidate")
    shown.add_column("", overflow="fold")
    for row in found.rows:
        marks = [
            *(["fastest"] if row.is_winner else []),
            *(["HCCL's rules"] if row.candidate.is_hccl else []),
        ]
        shown.add_row(*_cells(row), ", ".join(marks))
    return shown


def _rules(row: Row) -> str:
    """Return whom HCCL's rules choose; the same only where it does what HCCL does."""
    if not row.candidate.fidelity.is_same:
        return f"{row.candidate.name} ({row.candidate.fidelity.kind})"
    return "the same" if row.is_winner else row.candidate.name


def _table(name: str) -> Table:
    shown = table("bytes", left=(name,))
    shown.add_column("HCCL", no_wrap=True)
    for number in ("us", "busbw", "vs bound"):
        shown.add_column(number, justify="right", no_wrap=True)
    return shown


def _cells(row: Row) -> tuple[str, str, str, str, str, str]:
    bound = row.times_bound
    return (
        format_size(row.bytes),
        row.candidate.name,
        row.candidate.fidelity.kind,
        format_time(row.time_us),
        f"{row.outcome.busbw_gbps:.2f}",
        "" if bound is None else f"{bound:.2f}",
    )
