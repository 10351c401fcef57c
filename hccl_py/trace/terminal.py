"""A trace drawn for people: resources, streams side by side, bars of time, every task in a line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hccl_py.enums import TaskKind
from hccl_py.program.program import Program
from hccl_py.trace.bars import draw_bars
from hccl_py.trace.columns import draw_columns
from hccl_py.trace.document import resources
from hccl_py.trace.steps import Trace
from hccl_py.trace.table import list_tasks
from hccl_py.trace.units import format_size
from hccl_py.trace.words import Words

MOST_STREAMS = 16
"""Streams that a drawing with a limit shows."""

__all__ = ["draw_rank", "draw_resources", "format_runs"]


def draw_resources(program: Program) -> RenderableType:
    """Return what ranks need, one line per group of ranks that need the same."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for row in resources(program):
        rank, *needs = row.values()
        groups.setdefault(tuple(needs), []).append(rank)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("resources of")
    for name in ("sub streams", "notifies", "transports", "scratch"):
        table.add_column(name, justify="right")
    for (subs, notifies, transports, scratch), ranks in groups.items():
        cells = (subs, notifies, transports, format_size(scratch))
        table.add_row(format_runs(ranks), *map(str, cells))
    return table


def draw_rank(trace: Trace, rank: int, words: Words, width: int, limit: int) -> RenderableType:
    """Return the drawing of one rank: all streams and tasks, or the first ones with a `limit`."""
    rows, streams = _shown(trace, rank, limit)
    steps = trace.steps(rows.tolist())
    parts: list[RenderableType] = [_headline(trace, rank), Text()]
    drawn = {step.place.stream for step in steps}
    if len(drawn) > 1:
        parts += [*draw_columns(steps, words, width), Text()]
    bars = list(draw_bars(trace, rank, words, width))
    parts += [*bars, Text()] if bars else []
    parts += list_tasks(steps, words, width)
    if len(steps) < _task_count(trace, rank):
        parts.append(Text(_cut_note(len(steps), len(drawn), streams), style="yellow"))
    return Group(*parts)


def _shown(trace: Trace, rank: int, limit: int) -> tuple[npt.NDArray[np.int64], int]:
    """Return the rows to draw, and how many streams there are."""
    tasks, rows = trace.program.tasks, trace.rows(rank)
    stream = tasks.table.stream[tasks.instruction[rows]]
    streams = len(np.unique(stream))
    if limit:
        rows = rows[stream < MOST_STREAMS][:limit]
    return rows, streams


def _cut_note(tasks: int, drawn: int, streams: int) -> str:
    of = f" of {drawn} of {streams} streams" if drawn < streams else ""
    return f"... these were the first {tasks} tasks{of}; --limit 0 draws all."


def _task_count(trace: Trace, rank: int) -> int:
    first = trace.program.tasks.first
    return int(first[rank + 1] - first[rank])


def format_runs(ranks: Sequence[int]) -> str:
    """Return `ranks 0-3, 8, each` for sorted ranks, or `rank 0`."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    runs: list[list[int]] = []
    for rank in ranks:
        if runs and rank == runs[-1][-1] + 1:
            runs[-1] = [runs[-1][0], rank]
        else:
            runs.append([rank])
    texts = ["-".join(map(str, run)) for run in runs]
    more = ", ..." if len(texts) > 6 else ""
    return f"ranks {', '.join(texts[:6])}{more}, each"


def _headline(trace: Trace, rank: int) -> Text:
    """Return how many tasks of which kind the rank has."""
    tasks = trace.program.tasks
    kinds = Counter(tasks.kind[tasks.first[rank] : tasks.first[rank + 1]].tolist())
    counts = ", ".join(f"{n} {TaskKind(kind).spelling}" for kind, n in kinds.most_common())
    text = Text.assemble((f"rank {rank}", "bold"), f": {_task_count(trace, rank)} tasks")
    return text.append(f": {counts}") if counts else text
