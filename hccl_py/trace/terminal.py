"""A trace drawn for people: resources, a rank's streams side by side, every task in a line."""

from __future__ import annotations

from collections import Counter

import numpy as np
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from hccl_py.enums import TaskKind
from hccl_py.language import translated
from hccl_py.program.program import Program
from hccl_py.trace.document import resources
from hccl_py.trace.gantt.chart import format_runs
from hccl_py.trace.scene import Scene
from hccl_py.trace.side_by_side import draw_columns
from hccl_py.trace.steps import bars_in_time, steps_of
from hccl_py.trace.task_list import list_tasks
from hccl_py.trace.units import format_size
from hccl_py.trace.words import Words, kind_of
from hccl_py.values import IntArray

MOST_STREAMS = 16
"""Streams that a drawing with a limit shows."""


def draw_resources(program: Program) -> RenderableType:
    """Return the resources of ranks, one line per group of ranks with the same."""
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
        table.add_row(format_each(ranks), *map(str, cells))
    return table


def draw_rank(scene: Scene, rank: int, words: Words, width: int, limit: int) -> RenderableType:
    """Return the tasks of one rank, side by side and one by one: all, or the first `limit`."""
    every = bars_in_time(scene, rank)
    bars, streams = _shown(scene, every, limit)
    steps = steps_of(scene, bars)
    parts: list[RenderableType] = [_headline(scene, rank, every), Text()]
    drawn = {step.place.stream for step in steps}
    if len(drawn) > 1:
        parts += [*draw_columns(steps, words, width), Text()]
    parts += list_tasks(steps, words, width)
    if len(steps) < len(every):
        note = translated(_cut_note(len(steps), len(drawn), streams))
        parts.append(Text(note, style="yellow"))
    return Group(*parts)


def _shown(scene: Scene, bars: IntArray, limit: int) -> tuple[IntArray, int]:
    """Return the bars to draw, and how many streams there are."""
    stream = scene.lanes.stream[scene.bars.lane[bars]]
    streams = len(np.unique(stream))
    if limit:
        bars = bars[stream < MOST_STREAMS][:limit]
    return bars, streams


def _cut_note(tasks: int, drawn: int, streams: int) -> str:
    of = f" of {drawn} of {streams} streams" if drawn < streams else ""
    shown = "this was the first task" if tasks == 1 else f"these were the first {tasks} tasks"
    return f"... {shown}{of}; --limit 0 draws all."


def format_each(ranks: list[int]) -> str:
    """Return `ranks 0-3, 8, each` for sorted ranks, or `rank 0`."""
    return f"{format_runs(ranks)}, each" if len(ranks) > 1 else format_runs(ranks)


def _headline(scene: Scene, rank: int, bars: IntArray) -> Text:
    """Return the number of the rank's tasks by kind."""
    kinds = Counter(scene.bars.kind[bars].tolist())
    counts = ", ".join(f"{n} {kind_of(TaskKind(kind))}" for kind, n in kinds.most_common())
    count = f": {len(bars)} task{'s' * (len(bars) != 1)}"
    said = translated(f"{count}: {counts}" if counts else count)
    return Text.assemble((f"rank {rank}", "bold"), said)
