"""The comparison of `hccl-py compare`: checks, tables and a chart, one JSON document, and files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hccl_py.cli.accuracy import TimeAccuracy, line_of_calls
from hccl_py.cli.output import Bar, Screen, counted, table
from hccl_py.cli.request import CallRequest, checked_model
from hccl_py.cli.sizes import row_sizes
from hccl_py.cli.streams import say
from hccl_py.documents.disk import check_place, write_file
from hccl_py.documents.kind import PAGE
from hccl_py.errors import ParameterError
from hccl_py.language import translated
from hccl_py.trace.units import format_size
from hccl_py.tuning.chart import chart
from hccl_py.tuning.compare import EFFORT_S, Comparison, Row, compare
from hccl_py.tuning.pictures import PNG, check_drawing, page, png, subtitle_of, title_of
from hccl_py.tuning.points import Point
from hccl_py.tuning.table import TABLE, TuningTable
from hccl_py.tuning.tune import save_winners

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from hccl_py.cli.compare import Candidates, Files
    from hccl_py.cli.options import CallOptions, Sizes, TimeModel

FACTOR = 4
"""From size to size, unless the user says otherwise."""


def compared(
    call: CallOptions,
    sizes: Sizes,
    options: TimeModel,
    candidates: Candidates,
    out: str | None,
    *,
    every: bool,
) -> Comparison:
    """Compare the executors of a call; an effort of 0 is any."""
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
    with Bar("compare: candidates" if out is None else "compare: points", notices=True) as bar:
        return compare(
            point,
            wanted,
            executors=candidates.names,
            own=call.executor,
            effort_s=effort_s,
            every=every,
            out=out,
            jobs=candidates.jobs,
            progress=bar.advance_to,
        )


def check_call(call: CallOptions, kept: Mapping[str, str | None]) -> None:
    """Refuse options that a comparison would ignore; `kept` are files that name executors."""
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


def check_files(files: Files, options: TimeModel) -> None:
    """Refuse, before the work, files that could not be written after it."""
    if files.png or files.html:
        check_drawing()
    for path, kind in ((files.png, PNG), (files.html, PAGE), (files.table, TABLE)):
        if path is not None:
            check_place(path, kind)
    if files.table and options.slow:
        raise ParameterError(
            "Tuning tables are for machines without defects.", "Leave --slow or --table out."
        )
    if files.table and Path(files.table).exists():
        TuningTable.read(files.table)


def write_files(files: Files, found: Comparison) -> None:
    """Write the files that are asked for of a comparison."""
    if files.png is not None:
        write_file(files.png, png(found), PNG)
    if files.html is not None:
        write_file(files.html, page(found).encode(), PAGE)
    if files.table is not None:
        save_winners([r.point for r in found.rows], [r.outcome for r in found.rows], files.table)


def document_of(found: Comparison) -> dict[str, Any]:
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
        "accuracy": [
            {"bytes": size, **_accuracy(found, size).document()} for size in found.by_size
        ],
        "rows": [_row(found, row) for row in found.rows],
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


def _accuracy(found: Comparison, size: int) -> TimeAccuracy:
    return TimeAccuracy(found.point.cost, found.accuracy(size))


def _row(found: Comparison, row: Row) -> dict[str, Any]:
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
        "is_tied": found.ties(row),
        "is_at_floor": found.is_at_floor(row),
        "is_hccl": row.candidate.is_hccl,
        "fidelity": row.candidate.fidelity.kind,
        "tasks": outcome.tasks,
        "rounds": outcome.rounds,
    }


def show(found: Comparison, *, every: bool) -> None:
    """Print the table, the chart, and remarks on them."""
    screen = Screen()
    say(title_of(found))
    say(subtitle_of(found))
    screen.show_whole(_candidates(found) if every else _winners(found))
    if len(found.by_size) > 1:
        say()
        for line in chart(found, screen.console.width, unicode=screen.unicode):
            say(line)
    say()
    say(f"accuracy: {line_of_calls([_accuracy(found, size) for size in found.by_size])}")
    for line in found.remarks:
        say(line)


def _winners(found: Comparison) -> Table:
    """Return a line for each size: the winner, and the choice of HCCL's rules."""
    shown = _table("fastest")
    shown.add_column("HCCL's rules", overflow="fold", min_width=12)
    shown.add_column("us", justify="right", no_wrap=True)
    shown.add_column("ratio", justify="right", no_wrap=True)
    for size, best in found.winners.items():
        rules, ratio = found.hccl.get(size), found.cost_of_rules(size)
        chosen = ("not timed", "", "")
        if rules is not None:
            shorter = _accuracy(found, size)
            times = f"{shorter.number(ratio, 2)}x" if ratio else ""
            slower = "tie" if found.ties(rules) else times
            chosen = (_rules(rules), shorter.microseconds(rules.time_us), slower)
        size_text, name, fidelity, *numbers = _cells(found, best)
        if found.is_at_floor(best):
            level = sum(map(found.is_at_floor, found.by_size[size]))
            name, fidelity = f"at the call's floor: {counted(level, 'candidate')}", ""
        shown.add_row(size_text, name, fidelity, *numbers, *chosen)
    return shown


def _candidates(found: Comparison) -> Table:
    """Return a line for each size and candidate; the winners and HCCL's choices are marked."""
    shown = _table("candidate")
    shown.add_column("", overflow="fold")
    for row in found.rows:
        marks = {
            "fastest": row.is_winner,
            "tie": found.ties(row),
            "HCCL's rules": row.candidate.is_hccl,
        }
        said = [translated(mark) for mark, is_set in marks.items() if is_set]
        shown.add_row(*_cells(found, row), ", ".join(said))
    return shown


def _rules(row: Row) -> str:
    """Return the choice of HCCL's rules; "the same" only where the winner does what HCCL does."""
    if not row.candidate.fidelity.is_same:
        return f"{row.candidate.name} ({row.candidate.fidelity.kind})"
    return "the same" if row.is_winner else row.candidate.name


def _table(name: str) -> Table:
    shown = table("bytes", left=(name,))
    shown.add_column("HCCL", no_wrap=True)
    for number in ("us", "busbw", "vs bound"):
        shown.add_column(number, justify="right", no_wrap=True)
    return shown


def _cells(found: Comparison, row: Row) -> tuple[str, str, str | Text, str, str, str]:
    """Return the cells about a candidate; its fidelity is the same word in all languages."""
    from rich.text import Text

    bound, shorter = row.times_bound, _accuracy(found, row.bytes)
    return (
        format_size(row.bytes),
        row.candidate.name,
        Text(row.candidate.fidelity.kind),
        shorter.microseconds(row.time_us),
        shorter.number(row.outcome.busbw_gbps or 0.0, 2),
        "" if bound is None else shorter.number(bound, 2),
    )
