"""The film strip on the terminal: a line for each step, with what every rank holds after it.

    reduce-scatter, steps 1-7 of 14, 10.35 to 86.02 us, 32K a rank
    Every rank sends to the next; the receiver reads it and adds it to its own.
      1 ▂▁▁▁▁▁▁▁ ▁▂▁▁▁▁▁▁ ...

A rank has a block for each chunk, in its colour, as high as the part of its shares that have come;
of more than 16 ranks, a server has one block for all of its data. Alike steps of one phase have one
head, and are left out as in the picture.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

from rich.text import Text

from hccl_py.language import translated
from hccl_py.trace.pictures.algorithm_steps import AlgorithmStep, AlgorithmSteps
from hccl_py.trace.pictures.film import frames_of
from hccl_py.trace.pictures.svg import INKS
from hccl_py.trace.units import format_run, format_size, format_time

WIDEST = 80
"""Columns of the strip at most."""

_NUMBER = 4
_BLOCKS, _ASCII = " ▁▂▃▄▅▆▇█", " .:-=+*%#"


def draw_strip(steps: AlgorithmSteps, width: int, *, unicode: bool) -> Iterator[Text]:
    """Yield the lines of the strip; none for a program that moves nothing."""
    if not steps.steps:
        return
    room, blocks = min(width, WIDEST), _BLOCKS if unicode else _ASCII
    shown = frames_of(steps)
    for _, run in groupby(enumerate(steps.steps, 1), lambda pair: _head_of(pair[1])):
        numbers = [number for number, _ in run]
        yield from _heads(steps, numbers, room)
        left = [n for n in shown if isinstance(n, int) and numbers[0] <= n <= numbers[-1]]
        before = numbers[0] - 1
        for number in left:
            if number > before + 1:
                yield _left_out(number - before - 1)
            yield _frame(steps, number, room, blocks)
            before = number
        if left and before < numbers[-1]:
            yield _left_out(numbers[-1] - before)


def _left_out(steps: int) -> Text:
    return Text(translated(f"{'':{_NUMBER}}... {steps} more"), style="dim")


def _head_of(step: AlgorithmStep) -> tuple[str, str, int]:
    return step.phase, step.said, step.each


def _heads(steps: AlgorithmSteps, numbers: Sequence[int], room: int) -> Iterator[Text]:
    """Yield a line with the phase, its steps and its time, and the sentence of the steps."""
    first, last = steps.steps[numbers[0] - 1], steps.steps[numbers[-1] - 1]
    run, several = format_run(numbers[0], numbers[-1]), numbers[0] < numbers[-1]
    parts = [first.phase] if first.phase else []
    parts.append(f"step{'s' if several else ''} {run} of {len(steps.steps)}")
    if steps.timed:
        parts.append(f"{format_time(first.begin_us)} to {format_time(last.end_us)} us")
    parts.append(f"{format_size(first.each)} a rank")
    head = Text(translated(", ".join(parts)), style="bold")
    head.truncate(room, overflow="ellipsis")
    yield head
    said = Text(translated(first.said))
    said.truncate(room, overflow="ellipsis")
    yield said


def _frame(steps: AlgorithmSteps, number: int, room: int, blocks: str) -> Text:
    """Return the line of a step: its number, and the contents of every node after it."""
    text = Text(f"{number:>{_NUMBER - 1}} ", style="dim", end="")
    nodes, cells = len(steps.nodes.names), steps.cells
    each = 1 if cells is None else min(cells.columns, (room - _NUMBER + 1) // nodes - 1)
    if cells is None or each < 1:
        shares = _folded(steps.share[number - 1].tolist(), min(nodes, room - _NUMBER))
        text.append("".join(_block(share, blocks) for share in shares), style=INKS[2])
        return text
    for node in range(nodes):
        held = cells.holds[number][node]
        columns = [
            (held & cells.column(column)).bit_count() / cells.rows
            for column in range(cells.columns)
        ]
        if node:
            text.append(" ")
        for place, share in enumerate(_folded(columns, each)):
            ink = INKS[place * cells.columns // each % len(INKS)]
            text.append(_block(share, blocks), style=ink)
    return text


def _folded(shares: Sequence[float], count: int) -> list[float]:
    """Return the means of `count` runs of neighbours."""
    edges = [k * len(shares) // count for k in range(count + 1)]
    return [sum(shares[first:stop]) / (stop - first) for first, stop in pairwise(edges)]


def _block(share: float, blocks: str) -> str:
    """Return the block of a share: none for nothing, the highest for all alone."""
    highest = len(blocks) - 1
    if share <= 0:
        return "·" if blocks is _BLOCKS else "_"
    return blocks[highest if share >= 1 else max(1, min(highest - 1, int(share * highest)))]
