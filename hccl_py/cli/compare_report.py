"""What `hccl-py compare` says: tables and a chart, or one JSON document."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hccl_py.cli.output import Screen, table
from hccl_py.cli.streams import say
from hccl_py.trace.units import format_size, format_time
from hccl_py.tuning.chart import chart
from hccl_py.tuning.compare import Comparison, Row
from hccl_py.tuning.pictures import subtitle_of, title_of

if TYPE_CHECKING:
    from rich.table import Table


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


def show(found: Comparison, *, every: bool) -> None:
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
