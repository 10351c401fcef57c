"""The phases of a rank in lines above its lanes: names where they begin, steps below.

╷reduce-scatter                  ╷all-gather
╷1/7 ╷2/7 ╷3/7 ╷4/7 ╷5/7 ╷6/7 ╷7/7╷1/7
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from rich.cells import cell_len, set_cell_size

from hccl_py.enums import TaskKind, moves_data
from hccl_py.printable import brief
from hccl_py.trace.gantt.window import Window
from hccl_py.trace.scene import Scene

MOST_LINES = 3

_NUMBERED = re.compile(r"^(.*\S) (\d+/\d+)$", re.DOTALL)


class PhaseSpan(NamedTuple):
    """The span of time in which a rank is in a phase, and the phase's name."""

    begin_us: float
    end_us: float
    name: str


def phase_spans(scene: Scene, rank: int) -> list[PhaseSpan]:
    """Return the phases of a rank over all its streams, by their beginning.

    A phase begins with the first task that is no wait: a stream that waits for it is not in it yet.
    Streams that are in the same one at the same time are in it together. Phases in which no data
    moves are named only where there are no others; kernels bear their own names.
    """
    phases, lanes = scene.phases, scene.lanes_of(rank)
    low, high = np.searchsorted(phases.lane, [lanes.start, lanes.stop])
    some = [_Beginning.of(scene, phase) for phase in range(int(low), int(high))]
    some = [run for run in some if run.moves] or [run for run in some if not run.computes]
    found: dict[tuple[int, int], list[PhaseSpan]] = {}
    for phase, begin_us, *_ in some:
        key = int(phases.round[phase]), int(phases.label[phase])
        span = PhaseSpan(begin_us, float(phases.end_us[phase]), _name(scene, *key))
        known = found.setdefault(key, [])
        near = [s for s in known if s.begin_us <= span.end_us and span.begin_us <= s.end_us]
        begin, end = min(s.begin_us for s in [span, *near]), max(s.end_us for s in [span, *near])
        found[key] = [*(s for s in known if s not in near), PhaseSpan(begin, end, span.name)]
    return sorted(span for spans in found.values() for span in spans)


class _Beginning(NamedTuple):
    """The begin of a phase on a lane, and the kinds of its tasks there."""

    phase: int
    begin_us: float
    moves: bool
    computes: bool

    @staticmethod
    def of(scene: Scene, phase: int) -> _Beginning:
        bars, phases = scene.bars, scene.phases
        part = slice(int(phases.first[phase]), int(phases.stop[phase]))
        kind = bars.kind[part]
        starts = bars.start_us[part][kind != TaskKind.NOTIFY_WAIT]
        begin = float(starts[0]) if len(starts) else float(phases.start_us[phase])
        computes = bool((kind == TaskKind.COMPUTE).any())
        return _Beginning(phase, begin, bool(moves_data(kind).any()), computes)


def _name(scene: Scene, number: int, label: int) -> str:
    name = brief(scene.labels[label]).removesuffix(" 1/1")
    return f"round {number + 1}: {name}" if number else name


Named = tuple[int, int, str]


def phase_lines(spans: Sequence[PhaseSpan], window: Window, tick: str) -> list[str]:
    """Return lines with the names of the phases in the window; as few lines as they need."""
    shown = [s for s in spans if s.end_us > window.begin_us and s.begin_us < window.end_us]
    first, stop = window.spans([s.begin_us for s in shown], [s.end_us for s in shown])
    columns = list(zip(first.tolist(), stop.tolist(), (s.name for s in shown), strict=True))
    is_cut = bool(shown) and shown[0].begin_us < window.begin_us
    fine = columns[1:] if is_cut and not _fit(columns[:1], int(stop[0])) else columns
    merged: list[Named] = []
    for coarser in (None, _stem, _call):
        merged = _merged(columns, coarser) if coarser else fine
        if merged and _fit(merged, window.columns):
            break
    lines = [_line(row, window.columns, tick) for row in _rows(merged)]
    if coarser is _stem and len(lines) == 1:
        numbers = [(f, s, m[2]) for f, s, name in columns if (m := _NUMBERED.match(name))]
        if numbers and _fit(numbers, window.columns):
            lines.append(_line(numbers, window.columns, tick))
    return lines


def _fit(spans: Sequence[Named], columns: int) -> bool:
    """Return True if every name has room until the next one begins at least."""
    begins = [*(first for first, *_ in spans[1:]), columns]
    return all(
        cell_len(name) < max(stop, begin) - first
        for (first, stop, name), begin in zip(spans, begins, strict=True)
    )


def _stem(name: str) -> str:
    """Return the common name of a phase's steps: `halving` for `halving 1/2`."""
    found = _NUMBERED.match(name)
    return found[1] if found else name


def _call(name: str) -> str:
    """Return the call that a phase of a job belongs to: `bucket 0` for `bucket 0: halving 1/2`."""
    return _stem(name).partition(": ")[0]


def _merged(spans: Sequence[Named], coarser: Callable[[str], str]) -> list[Named]:
    """Join spans that have one name and no other one in between."""
    found: list[Named] = []
    known: dict[str, tuple[int, int]] = {}  # by name: the place in `found`, the last span in it
    for number, (first, stop, full) in enumerate(spans):
        name = coarser(full)
        place, last = known.get(name, (-1, number))
        behind = found[place][1] if place >= 0 else 0
        if place >= 0 and not any(
            behind <= s[0] and s[1] <= first for s in spans[last + 1 : number]
        ):
            found[place] = (found[place][0], max(stop, behind), name)
        else:
            place = len(found)
            found.append((first, stop, name))
        known[name] = place, number
    return found


def _rows(spans: Sequence[Named]) -> list[list[Named]]:
    """Sort spans into lines in which none covers another; what has no room is left out."""
    rows: list[list[Named]] = []
    for span in spans:
        free = next((row for row in rows if row[-1][1] <= span[0] + 1), None)  # columns are rounded
        if free is not None:
            free.append(span)
        elif len(rows) < MOST_LINES:
            rows.append([span])
    return rows


def _line(spans: Sequence[Named], columns: int, tick: str) -> str:
    """Write names at their columns, each cut where the next one begins."""
    line = ""
    for k, (first, _, name) in enumerate(spans):
        until = spans[k + 1][0] if k + 1 < len(spans) else columns
        if first < cell_len(line):
            continue  # several begin in this column
        room = until - first - 1
        line = set_cell_size(line, first) + tick
        line += name if cell_len(name) <= room else set_cell_size(name, max(room, 0))
    return line.rstrip()
