"""A rank's streams side by side, as in the hello-world article: a column each, time downwards.

Every line has one point in time, and a wait stands below the post that it consumes:

      us  main              sub 0             sub 1
    0.35  post a ▸sub 0     ┊                 ┊
          post b ▸sub 1     wait a ◂main      ┊
          copy 256K         TxAck ▸r3         wait b ◂main
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from math import isinf

from rich.text import Text

from hccl_py.enums import TaskKind
from hccl_py.language import translated
from hccl_py.language.wrapping import padded
from hccl_py.trace.steps import TaskPlace, TraceStep
from hccl_py.trace.units import format_time
from hccl_py.trace.words import Words, style_of

TIME_WIDTH = 9
COLUMN_WIDTH = 17
WIDEST_COLUMN = 40


@dataclass
class Line:
    """One line: a point in time, the phase that begins here, and at most one task per stream."""

    at_us: float
    phase: str = ""
    steps: dict[int, TraceStep] = field(default_factory=dict)


def lay_out(steps: Sequence[TraceStep]) -> list[Line]:
    """Give every task a line; `steps` are in the order in which they happen.

    A task comes below its predecessor on its stream and below the post that it waits for, and no
    line mixes two points in time.
    """
    lines: list[Line] = []
    line_of: dict[TaskPlace, int] = {}
    below: dict[int, int] = {}  # the first free line of every stream
    base = 0  # the first line of the current point in time
    seen: set[tuple[int, str]] = set()
    for step in steps:
        phase = _phase(step, seen)
        if lines and (lines[-1].at_us != step.at_us or phase):
            base = len(lines)
        number = max(base, below.get(step.place.stream, 0))
        if step.kind is TaskKind.NOTIFY_WAIT and step.partner in line_of:
            number = max(number, line_of[step.partner] + 1)
        while len(lines) <= number:
            lines.append(Line(step.at_us))
        lines[number].phase = lines[number].phase or phase
        lines[number].steps[step.place.stream] = step
        line_of[step.place] = number
        below[step.place.stream] = number + 1
    return lines


def pair_names(lines: Sequence[Line]) -> dict[TaskPlace, str]:
    """Name every post and its wait on the same rank, as they are read: a, b, ... z, a1, b1, ..."""
    names: dict[TaskPlace, str] = {}
    fresh = _letters()
    for step in (line.steps[stream] for line in lines for stream in sorted(line.steps)):
        if step.partner is not None and step.peer is None and step.place not in names:
            names[step.place] = names[step.partner] = next(fresh)
    return names


def draw_columns(steps: Sequence[TraceStep], words: Words, width: int) -> Iterator[Text]:
    """Yield the lines of the drawing; columns that do not fit side by side follow below."""
    streams = sorted({step.place.stream for step in steps})
    lines = lay_out(steps)
    names = pair_names(lines)
    fit = max(1, (width - TIME_WIDTH) // COLUMN_WIDTH)
    for start in range(0, len(streams), fit):
        shown = streams[start : start + fit]
        column_width = min(WIDEST_COLUMN, (width - TIME_WIDTH) // len(shown))
        if start:
            yield Text()
        yield from _draw_block(lines, shown, names, words, column_width)


def _draw_block(
    lines: Sequence[Line],
    streams: Sequence[int],
    names: dict[TaskPlace, str],
    words: Words,
    column_width: int,
) -> Iterator[Text]:
    """Yield the columns of some streams; lines on which they do nothing are left out."""
    heads = "".join(f"{words.stream(stream):<{column_width}}" for stream in streams)
    yield Text(f"{'us':>{TIME_WIDTH - 2}}  {heads}".rstrip(), style="bold")
    last = {stream: number for number, line in enumerate(lines) for stream in line.steps}
    running: dict[int, TraceStep] = {}
    shown_at = None
    for number, line in enumerate(lines):
        if line.phase:
            yield Text(f"{'':>{TIME_WIDTH}}{line.phase}", style="dim italic")
        if not line.steps.keys() & set(streams):
            continue
        at = translated("never") if isinf(line.at_us) else format_time(line.at_us)
        at = at if line.at_us != shown_at else ""
        shown_at = line.at_us
        text = Text.assemble((f"{padded(at, 2 - TIME_WIDTH)}  ", "dim"))
        for stream in streams:
            ended = number >= last[stream]
            text.append(
                *_cell(line, stream, running, names, words, column_width - 1, ended)
            ).append(" ")
        text.rstrip()
        yield text


def _cell(
    line: Line,
    stream: int,
    running: dict[int, TraceStep],
    names: dict[TaskPlace, str],
    words: Words,
    width: int,
    ended: bool,
) -> tuple[str, str]:
    """Return a column's text and style: a task, a data task still running, a gap, or nothing."""
    if stream in line.steps:
        step = running[stream] = line.steps[stream]
        said = words.column(step, names.get(step.place, ""), width)
        return padded(said, width), style_of(step)
    before = running.get(stream)
    runs = before is not None and before.end_us > line.at_us
    mark = words.runs if runs else "" if ended else words.waits
    return f"{mark:<{width}}", ""


def _phase(step: TraceStep, seen: set[tuple[int, str]]) -> str:
    """Return a phase's name at its first task."""
    key = (step.round, step.label)
    if key in seen:
        return ""
    seen.add(key)
    where = translated(f"round {step.round + 1}") if step.round or not step.label else ""
    return ": ".join(part for part in (where, step.label) if part) if key != (0, "") else ""


def _letters() -> Iterator[str]:
    for turn in count():
        for letter in "abcdefghijklmnopqrstuvwxyz":
            yield f"{letter}{turn}" if turn else letter
