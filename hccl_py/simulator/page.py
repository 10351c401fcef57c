"""A timeline for notebooks: a picture, and a table of each rank's time."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from hccl_py.simulator.picture import timeline_svg

if TYPE_CHECKING:
    from hccl_py.simulator.timeline import Timeline

SHOWN = 32
"""Rows of the table; the other ranks are counted."""

WIDTH, HEIGHT = 300, 10
"""Pixels of the bar of a rank that is busy all the time."""


def timeline_html(timeline: Timeline) -> str:
    """Return a timeline as HTML: the total, a picture, and per rank the µs that its streams are
    busy, wait and are idle on average, with a bar of the first. Its steps come first.
    """
    from hccl_py.trace.notebook import timeline_film

    program, total = timeline.program, timeline.total_us
    times = timeline.usage().of_ranks()[:SHOWN].tolist()
    rows = "".join(_row(rank, three, total) for rank, three in enumerate(times))
    rest = program.ranks - SHOWN
    more = f"<p>and {rest} more ranks</p>" if rest > 0 else ""
    title = escape(f"{program.op.name}: {total:.2f} µs of model time")
    names = ("rank", "busy µs", "waiting µs", "idle µs", "busy")
    heads = "".join(f"<th>{name}</th>" for name in names)
    picture = timeline_film(timeline) + timeline_svg(timeline)
    table = f"<table><tr>{heads}</tr>{rows}</table>"
    return f"<div><p><b>{title}</b></p>{picture}{table}{more}</div>"


def _row(rank: int, times: Sequence[float], total_us: float) -> str:
    share = times[0] / total_us if total_us else 0.0
    bar = (
        f'<svg width="{WIDTH}" height="{HEIGHT}">'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ddd"/>'
        f'<rect width="{WIDTH * share:.1f}" height="{HEIGHT}" fill="#47a"/></svg> {share:.0%}'
    )
    cells = [str(rank), *(f"{us:.2f}" for us in times), bar]
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
