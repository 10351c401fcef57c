"""Every task in a line, stream by stream: times, memory, the other end of a notify, source line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from rich.text import Text

from hccl_py.language import translated
from hccl_py.language.wrapping import columns, padded
from hccl_py.trace.scene import UNREACHED
from hccl_py.trace.steps import TraceStep
from hccl_py.trace.units import format_time
from hccl_py.trace.words import Words, style_of

INDEX, TIME = 5, 8
LEFT = INDEX + 1 + TIME + 1 + TIME + 2
"""Columns left of what a task does."""


def list_tasks(steps: Sequence[TraceStep], words: Words, width: int) -> Iterator[Text]:
    """Yield a line per task under headings of stream and phase; two lines where one is too long.

    Source lines lose their folder where it does not fit.
    """
    said = {step.place: words.line(step) for step in steps}
    longest = max((columns(" ".join(parts).rstrip()) for parts in said.values()), default=0)
    source_width = max((len(step.source) for step in steps), default=0)
    full = LEFT + longest + 2 + source_width <= width
    if not full:
        source_width = max((len(_short(step.source)) for step in steps), default=0)
    room = min(longest, max(width - LEFT - 2 - source_width, 16))
    times = (padded(translated(name), -TIME) for name in ("start", "end us"))
    yield Text(" ".join([" " * INDEX, *times]), style="bold")
    ordered = sorted(steps, key=lambda step: step.place)
    for heading, group in groupby(ordered, key=lambda step: _heading(step, words)):
        yield Text(heading, style="bold")
        for step in group:
            source = step.source if full else _short(step.source)
            yield from _lines(step, said[step.place], source, room)


def _lines(step: TraceStep, said: tuple[str, str], source: str, room: int) -> Iterator[Text]:
    first, rest = said
    if rest and columns(first) + 1 + columns(rest) <= room:
        first, rest = f"{first} {rest}", ""
    start = "" if step.state == UNREACHED else format_time(step.start_us)
    end = translated("never") if step.state else format_time(step.end_us)
    text = Text(f"{f'#{step.place.number}':>{INDEX}} {start:>{TIME}} {padded(end, -TIME)}  ")
    text.append(padded(first, room), style=style_of(step)).append(f"  {source}", style="dim")
    text.rstrip()
    yield text
    if rest:
        yield Text(f"{'':{LEFT}}  {rest}", style=style_of(step))


def _heading(step: TraceStep, words: Words) -> str:
    """Return a heading's text: stream, round, phase."""
    parts = [words.stream(step.place.stream)]
    if step.round:
        parts.append(translated(f"round {step.round + 1}"))
    return ", ".join([*parts, step.label] if step.label else parts)


def _short(source: str) -> str:
    return source.rpartition("/")[2]
