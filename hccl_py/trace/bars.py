"""One bar of model time per stream: when it copies, moves data, reduces or waits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.text import Text

from hccl_py.enums import RDMA_WRITES, TaskKind
from hccl_py.program.describe import format_stream
from hccl_py.trace.steps import Trace
from hccl_py.trace.units import format_time
from hccl_py.trace.words import MARKS, Words, mark_of

__all__ = ["draw_bars"]

NAME_WIDTH = 9
MOST_BARS = 16

Numbers = npt.NDArray[Any]


def draw_bars(trace: Trace, rank: int, words: Words, width: int) -> Iterator[Text]:
    """Yield a scale, a bar per stream, and a legend; nothing where no time passes."""
    columns, total = width - NAME_WIDTH - 1, trace.timeline.total_us
    if total <= 0 or columns < 10:
        return
    yield _scale(columns, total)
    names, marks = _marks(trace, rank, columns)
    for name, row in zip(names[:MOST_BARS], marks, strict=False):
        yield _bar(name, row.tolist(), words)
    if len(names) > MOST_BARS:
        yield Text(f"{'':{NAME_WIDTH}}and {len(names) - MOST_BARS} more", style="dim")
    yield _legend(sorted(set(marks.ravel().tolist()) - {0}), words)


def _marks(trace: Trace, rank: int, columns: int) -> tuple[list[str], Numbers]:
    """Return the names of the rank's bars, and for each a number in `MARKS` per column, 0 for none.

    RDMA writes take no time on their stream: they are on a bar of their own, the wire, from when
    they are posted until they arrive. Where a column holds several tasks, the last one of `MARKS`
    wins.
    """
    tasks, timeline = trace.program.tasks, trace.timeline
    mine = slice(int(tasks.first[rank]), int(tasks.first[rank + 1]))
    kind, end = tasks.kind[mine], timeline.end_us[mine]
    streams, row = np.unique(tasks.stream[mine], return_inverse=True)
    names = [format_stream(stream) for stream in streams.tolist()]
    on_connection = np.isin(kind, RDMA_WRITES)
    if on_connection.any():
        names.append("RDMA")
    row = np.where(on_connection, len(streams), row)
    start = np.where(on_connection, end, timeline.start_us[mine])
    end = np.where(on_connection, timeline.effect_us[mine], end)
    mark = np.array([MARKS.index(mark_of(kind)) for kind in TaskKind])[kind]
    return names, _painted(row, start, end, mark, (len(names), columns), timeline.total_us)


def _painted(
    row: Numbers,
    start: Numbers,
    end: Numbers,
    mark: Numbers,
    shape: tuple[int, int],
    total_us: float,
) -> Numbers:
    """Paint every task that takes time over at least one column."""
    columns = shape[1]
    scale = columns / total_us
    first = np.minimum((start * scale).astype(np.int64), columns - 1)
    last = np.clip(np.rint(end * scale).astype(np.int64), first + 1, columns)
    found = np.zeros(shape, np.int64)
    for number in range(1, len(MARKS)):
        takes_time = (mark == number) & (end > start)
        edges = np.zeros((shape[0], columns + 1), np.int64)
        np.add.at(edges, (row[takes_time], first[takes_time]), 1)
        np.add.at(edges, (row[takes_time], last[takes_time]), -1)
        found[np.cumsum(edges, axis=1)[:, :-1] > 0] = number
    return found


def _scale(columns: int, total_us: float) -> Text:
    """Return a line of round numbers of microseconds, and the end."""
    end = format_time(total_us)
    line = [" "] * columns
    step = _round_step(total_us * 10 / columns)
    for tick in range(columns):
        at, label = int(tick * step / total_us * columns), f"{tick * step:g}"
        if at + len(label) + 2 > columns - len(end):
            break
        line[at : at + len(label)] = label
    line[columns - len(end) :] = end
    return Text(f"{'us':>{NAME_WIDTH - 2}}  {''.join(line)}", style="dim")


def _round_step(least: float) -> float:
    """Return the smallest of 1, 2 or 5 times a power of ten that is not below `least`."""
    power = 10.0 ** np.floor(np.log10(least))
    return float(next(power * f for f in (1, 2, 5, 10) if power * f >= least))


def _bar(name: str, marks: list[int], words: Words) -> Text:
    text = Text(f"{name:>{NAME_WIDTH - 2}}  ")
    for mark in marks:
        text.append(*words.mark(MARKS[mark]))
    text.rstrip()
    return text


def _legend(marks: list[int], words: Words) -> Text:
    text = Text(" " * NAME_WIDTH, style="dim")
    for mark in reversed(marks):
        text.append(*words.mark(MARKS[mark])).append(f" {MARKS[mark]}   ")
    text.rstrip()
    return text
