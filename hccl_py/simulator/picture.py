"""A timeline as a small static picture, for notebooks: work, waits and the critical path."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from hccl_py.enums import TaskKind
from hccl_py.program.describe import format_ranks, format_stream
from hccl_py.simulator.analysis.alike import first_alike
from hccl_py.values import Floats, IntArray

if TYPE_CHECKING:
    from hccl_py.simulator.timeline import Timeline

MOST_TASKS = 200_000
"""Tasks up to which there is a picture: it is to be there when the cell has run."""

_GROUPS, _STREAMS = 8, 6
_LEFT, _WIDTH, _LANE, _TOP = 150, 640, 12, 16
_WORK, _WAIT, _CRITICAL = "#47a", "#bbb", "#d33"


def timeline_svg(timeline: Timeline) -> str:
    """Return lanes of the first ranks, one for all that do the same at the same times: work as
    bars, waits as lines, below them what the critical path spends there. Empty for a program
    without tasks, with too many, or without an end.
    """
    tasks, total = timeline.program.tasks, timeline.total_us
    if not 0 < len(tasks) <= MOST_TASKS or not total > 0:
        return ""
    groups, twin = _groups(timeline)
    critical = _critical(timeline, twin)
    parts, y = [_axis(total)], _TOP
    for ranks in groups[:_GROUPS]:
        parts.append(_text(0, y + _LANE - 3, format_ranks(ranks)))
        streams = _streams(timeline, ranks[0])
        for stream, rows in streams[:_STREAMS]:
            name = format_stream(stream, timeline.program.stream_names)
            parts.append(_text(_LEFT - 50, y + _LANE - 3, name))
            parts += _lane(timeline, rows, critical.get((ranks[0], stream), []), y, total)
            y += _LANE
        left = len(streams) - _STREAMS
        if left > 0:
            parts.append(_text(_LEFT, y + _LANE - 3, f"and {left} more streams"))
            y += _LANE
        y += 4
    if len(groups) > _GROUPS:
        parts.append(_text(0, y + _LANE - 3, f"and {len(groups) - _GROUPS} more groups of ranks"))
        y += _LANE
    parts += _legend(y)
    y += _LANE
    return (
        f'<svg width="{_LEFT + _WIDTH + 10}" height="{y + 4}" role="img" font-size="10" '
        f'font-family="sans-serif" fill="currentColor">{"".join(parts)}</svg>'
    )


def _groups(timeline: Timeline) -> tuple[list[list[int]], IntArray]:
    """Return ranks that do the same at the same times, and for every rank the first of its."""
    tasks = timeline.program.tasks
    columns = (tasks.kind, tasks.stream, tasks.size, timeline.start_us, timeline.end_us)
    twin = first_alike(tasks.first, columns)
    groups: dict[int, list[int]] = {}
    for rank, other in enumerate(twin.tolist()):
        groups.setdefault(other, []).append(rank)
    return list(groups.values()), twin


def _streams(timeline: Timeline, rank: int) -> list[tuple[int, IntArray]]:
    """Return the streams of a rank with their task rows, in order."""
    tasks = timeline.program.tasks
    rows = np.arange(tasks.first[rank], tasks.first[rank + 1])
    stream = tasks.stream[rows]
    return [(int(s), rows[stream == s]) for s in np.unique(stream)]


def _critical(timeline: Timeline, twin: IntArray) -> dict[tuple[int, int], list[list[float]]]:
    """Return the spans of the critical path by stream of the first rank of a group."""
    path, tasks = timeline.critical_path(), timeline.program.tasks
    found: dict[tuple[int, int], list[list[float]]] = {}
    ranks, streams = twin[tasks.rank[path.rows]].tolist(), tasks.stream[path.rows].tolist()
    spans = zip(path.begin_us.tolist(), path.end_us.tolist(), strict=True)
    for rank, stream, (begin, end) in zip(ranks, streams, spans, strict=True):
        found.setdefault((rank, stream), []).append([begin, end])
    return found


def _lane(
    timeline: Timeline, rows: IntArray, critical: list[list[float]], y: int, total: float
) -> Iterator[str]:
    is_wait = timeline.program.tasks.kind[rows] == TaskKind.NOTIFY_WAIT
    spans = np.stack([timeline.start_us[rows], timeline.end_us[rows]], axis=1)
    yield from _bars(spans[is_wait], total, y + 4, 2, _WAIT)
    yield from _bars(spans[~is_wait], total, y + 1, _LANE - 4, _WORK)
    yield from _bars(np.array(critical).reshape(-1, 2), total, y + _LANE - 3, 2, _CRITICAL)


def _bars(spans: Floats, total: float, y: int, height: int, colour: str) -> Iterator[str]:
    """Yield a bar for every run of spans with less than half a pixel between them."""
    scaled = spans[spans[:, 1] > spans[:, 0]] * (_WIDTH / total)
    for begin, end in _joined(scaled[np.argsort(scaled[:, 0], kind="stable")].tolist()):
        width = max(end - begin, 0.5)
        yield (
            f'<rect x="{_LEFT + begin:.1f}" y="{y}" width="{width:.1f}" height="{height}" '
            f'fill="{colour}"/>'
        )


def _joined(spans: Iterable[list[float]]) -> Iterator[tuple[float, float]]:
    begin, end = 0.0, -1.0
    for start, stop in spans:
        if start > end + 0.5:
            if end >= begin:
                yield begin, end
            begin, end = start, stop
        else:
            end = max(end, stop)
    if end >= begin:
        yield begin, end


def _axis(total: float) -> str:
    ends = ((0.0, "start"), (total / 2, "middle"), (total, "end"))
    return "".join(
        f'<text x="{_LEFT + us * _WIDTH / total:.0f}" y="10" text-anchor="{anchor}">'
        f"{float(f'{us:.4g}'):g} µs</text>"
        for us, anchor in ends
    )


def _legend(y: int) -> Iterator[str]:
    for k, (colour, words) in enumerate(
        ((_WORK, "work"), (_WAIT, "wait"), (_CRITICAL, "critical path"))
    ):
        x = _LEFT + 60 * k
        yield f'<rect x="{x}" y="{y + 4}" width="8" height="6" fill="{colour}"/>'
        yield _text(x + 11, y + 10, words)


def _text(x: int, y: int, text: str) -> str:
    return f'<text x="{x}" y="{y}">{escape(text)}</text>'
