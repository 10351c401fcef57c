"""A film strip: all steps of an algorithm beside each other, as one SVG picture.

In each frame nodes stand as they are joined, arrows say who sends to whom, and cells what every
rank holds then. The picture brings its own colours, in light and dark. It is text, and the same
for the same program: fit to be kept, and compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby
from math import ceil

from hccl_py.language import translated
from hccl_py.language.wrapping import columns
from hccl_py.trace.pictures.algorithm_steps import REDUCE, AlgorithmSteps
from hccl_py.trace.pictures.film_frame import FilmFrame
from hccl_py.trace.pictures.svg import STYLE, text
from hccl_py.trace.units import format_size, format_time

HEAD, GAP, MARGIN = 40, 10, 8
"""Pixels above a frame for its texts, between frames, and around the strip."""

FEW = 16
"""Steps that are all shown; of more, runs of a phase show their first two and their last."""

MOST_BYTES = 200_000
"""Bytes of a strip in a page; of a longer one, frames are left out."""

FrameNumber = int | str
"""The step of a frame, or the number of frames that are left out there, as a text."""


WIDEST = 810
"""Pixels of the rows of a picture at most."""


def draw_film(steps: AlgorithmSteps, title: str) -> str:
    """Return the strip as a picture of its own."""
    frames = frames_of(steps)
    frame = 190 if steps.seats.kind != "rows" else 236
    across = max(1, min(len(frames), (WIDEST - 2 * MARGIN + GAP) // (frame + GAP)))
    strip = _Strip(steps, frame)
    wide = max(across * (frame + GAP) - GAP, round(columns(title) * 8.4)) + 2 * MARGIN
    rows = ceil(len(frames) / across)
    high = 30 + rows * (HEAD + strip.frame.height + GAP) + MARGIN + 14
    said = " ".join(
        translated(f"Step {k}, {step.label or 'transfers'}: {step.said}")
        for k, step in enumerate(steps.steps, 1)
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}" '
            f'viewBox="0 0 {wide} {high}" role="img">',
            f"<title>{escape(title)}</title>",
            f"<desc>{escape(said)}</desc>",
            f"<style>{STYLE}</style>",
            f'<rect width="{wide}" height="{high}" rx="6" class="paper"/>',
            text(MARGIN, 20, title, "ink big"),
            f'<g class="film" transform="translate({MARGIN},30)">',
            *strip.frames(frames, across),
            "</g>",
            text(MARGIN, high - 8, translated(_legend(steps)), "faint"),
            "</svg>\n",
        ]
    )


def film_markup(steps: AlgorithmSteps) -> str:
    """Return the strip for a page, in one row, whose style sheet has the colours."""
    frames = frames_of(steps)
    size = 84 if len(frames) > 12 else 128 if len(frames) > 8 else 150
    strip = _Strip(steps, round(size * (1.6 if steps.seats.kind == "rows" else 1)))
    lines = list(strip.frames(frames, len(frames)))
    while sum(map(len, lines)) > MOST_BYTES and len(frames) > 3:
        frames = _every_other(frames)
        lines = list(strip.frames(frames, len(frames)))
    wide = len(frames) * (strip.frame.width + GAP)
    high = HEAD + strip.frame.height + 2
    return (
        f'<svg width="{wide}" height="{high}" viewBox="-1 0 {wide} {high}" class="film" '
        f'role="group">{"".join(lines)}</svg>'
    )


def frames_of(steps: AlgorithmSteps) -> list[FrameNumber]:
    """Return the steps that are shown, 0 being the beginning."""
    frames: list[FrameNumber] = [0]
    numbered = enumerate(steps.steps, 1)
    for _, run in groupby(numbered, lambda pair: pair[1].phase):
        numbers = [number for number, _ in run]
        if len(steps.steps) <= FEW or len(numbers) <= 4:
            frames += numbers
        else:
            frames += [*numbers[:2], str(len(numbers) - 3), numbers[-1]]
    if len(frames) > 4 * FEW:
        return [0, 1, 2, str(len(steps.steps) - 3), len(steps.steps)]
    return frames


def _every_other(frames: Sequence[FrameNumber]) -> list[FrameNumber]:
    """Leave out every second step, and say how many are gone."""
    shown = [frame for frame in frames if isinstance(frame, int)]
    kept = [*shown[:-1:2], shown[-1]]
    found: list[FrameNumber] = []
    for before, after in zip([kept[0], *kept], kept, strict=False):
        if after - before > 1:
            found.append(str(after - before - 1))
        found.append(after)
    return found


def _legend(steps: AlgorithmSteps) -> str:
    """Return one line on how to read the strip."""
    cells = steps.cells
    if cells is None:
        return f"boxes: {steps.nodes.noun}s, filled as their data comes; arrows: what travels"
    if cells.owners:
        parts = ["a colour is whose data it is"]
    elif cells.reduces and cells.rows > 1:
        parts = ["a colour is a chunk, a row in it one rank's share of the sum"]
    elif cells.rows > 1:
        parts = ["columns: chunks; rows: whose data"]
    else:
        parts = ["a colour is a chunk of the data"]
    parts.append("pale: held before")
    if any(kind & REDUCE for kind in steps.moves.kind.tolist()):
        parts.append("+ is added")
    if any(kind & 4 for kind in steps.moves.kind.tolist()):
        parts.append("dashed: RDMA")
    return "; ".join(parts)


class _Strip:
    """Frames with their heads."""

    def __init__(self, steps: AlgorithmSteps, width: int) -> None:
        self.steps = steps
        self.frame = FilmFrame(steps, width)

    def frames(self, numbers: Sequence[FrameNumber], across: int) -> Iterator[str]:
        """Draw frames in rows."""
        for place, number in enumerate(numbers):
            x = place % across * (self.frame.width + GAP)
            y = place // across * (HEAD + self.frame.height + GAP)
            move = f'transform="translate({x},{y})"'
            if isinstance(number, str):
                yield f'<g class="more" {move}>{self._gap(number)}</g>'
                continue
            begins = place % across == 0 or not number or self._begins_phase(number)
            said = translated(self.steps.steps[number - 1].said if number else "to begin with")
            yield (
                f'<g class="frame" data-step="{number}" {move}><title>{escape(said)}</title>'
                f"{''.join(self._head(number, is_first=begins))}"
                f'<g transform="translate(0,{HEAD})">{"".join(self.frame.draw(number))}</g></g>'
            )

    def _gap(self, number: str) -> str:
        middle = self.frame.width // 2
        y = HEAD + self.frame.height // 2
        return text(middle, y, "⋯", "faint big", "middle") + text(
            middle, y + 18, translated(f"{number} more"), "faint", "middle"
        )

    def _begins_phase(self, number: int) -> bool:
        steps = self.steps.steps
        return number < 2 or steps[number - 2].phase != steps[number - 1].phase

    def _head(self, number: int, *, is_first: bool) -> Iterator[str]:
        width = self.frame.width
        if not number:
            yield text(0, 34, translated("to begin with"), "faint")
            return
        step = self.steps.steps[number - 1]
        kind = "adds" if "adds" in step.ending else "moves"
        left = 0 if is_first else -GAP
        yield f'<rect x="{left}" y="17" width="{width - left}" height="3" class="{kind}"/>'
        if is_first:
            label = step.label if width > 140 else step.phase
            room = int(width * (1 if width > 140 else 2) / 6.4)
            label = label if len(label) <= room else f"{label[: room - 1]}…"
            yield text(0, 12, label, "ink bold")
        parts = [translated(f"{format_size(step.each)} each")] if width > 120 else []
        if self.steps.timed:
            parts.insert(0, f"{format_time(step.end_us - step.begin_us)} µs")
        yield text(0, 34, str(number), "ink bold")
        yield text(8 + 7 * len(str(number)), 34, " · ".join(parts), "faint")
