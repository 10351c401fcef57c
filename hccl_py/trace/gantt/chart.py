"""Ranks below each other, a line per stream, time from left to right.

              us  0         5         10        15        24.67
    ranks 0-3, as rank 0  busy 10.92 us 44 %, waits ...
                  ╷all-gather
      main        ░╌ wait ◂sub 0 ╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌
      sub 0     ▸ ╌ RxAck ◂r3 ╌╌╌╌╌⣿ read 256K ◂r3 ⣿⣿⣿

Ranks that do the same at the same times are drawn once, as the first of them; what is marked at
another of them is marked there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from rich.cells import cell_len, set_cell_size
from rich.text import Text

from hccl_py.enums import TaskKind
from hccl_py.language import translated
from hccl_py.printable import brief
from hccl_py.trace.gantt.findings import finding_groups
from hccl_py.trace.gantt.lanes import Lane
from hccl_py.trace.gantt.phases import phase_lines, phase_spans
from hccl_py.trace.gantt.window import Window
from hccl_py.trace.scene import CONNECTION, STUCK, UNREACHED, Scene
from hccl_py.trace.units import format_run, format_time, runs_of_numbers
from hccl_py.trace.words import MARKS, Words, mark_of
from hccl_py.values import IntArray

MOST_LANES = 16
"""Streams of a rank that are drawn unless more are asked for."""

_WIDEST_NAME = 16
_NARROWEST = 10
_GAP = 3
"""Columns between the name of a lane and its bars, the mark of the critical path in them."""

Group = Sequence[int]


def draw_gantt(
    scene: Scene,
    words: Words,
    width: int,
    groups: Sequence[Group],
    span: tuple[float, float] | None = None,
    most_lanes: int = MOST_LANES,
) -> Iterator[Text]:
    """Yield the lines of groups of ranks, each drawn as its first, with at most so many lanes of
    each; all of the time, or a span of it. Nothing where no time passes, or there is no room.
    """
    drawn = [lane for group in groups for lane in _shown_lanes(scene, group[0], most_lanes)]
    names = [_cut(scene.lanes.names[lane]) for lane in drawn]
    name_width = max(map(cell_len, names), default=0)
    begin, end = span or (0.0, scene.total_us)
    columns = width - name_width - _GAP - 2
    if end <= begin or columns < _NARROWEST:
        return
    chart = _Chart(scene, words, Window(begin, end, columns), name_width)
    yield chart.named("us", chart.window.scale(), "dim")
    for group in groups:
        yield from chart.group(group, most_lanes)
    yield from chart.path()
    yield from chart.legend()


def chosen_groups(scene: Scene, most: int) -> list[tuple[int, ...]]:
    """Return at most so many groups of ranks that do the same: those with findings, those on the
    critical path, and the first ones.
    """
    groups = scene.groups
    found = scene.lanes.rank[scene.bars.lane[[b for f in scene.findings for b in f.bars]]]
    path = scene.lanes.rank[scene.bars.lane[scene.critical.bar]]
    stuck = scene.lanes.rank[scene.bars.lane[scene.bars.state == STUCK]]
    first = {int(rank): place for place, rank in reversed(list(enumerate(found.tolist())))}
    first_stuck, on_path = set(stuck.tolist()), set(path.tolist())

    def importance(group: Group) -> tuple[int, int]:
        if not first.keys().isdisjoint(group):
            return 0, min(first[rank] for rank in group if rank in first)
        if not first_stuck.isdisjoint(group):
            return 1, group[0]
        return (2 if not on_path.isdisjoint(group) else 3), group[0]

    return sorted(sorted(groups, key=importance)[:most])


def used_by_path(scene: Scene) -> list[tuple[str, float]]:
    """Return the microseconds of the critical path by kind of work, most first."""
    critical, found = scene.critical, dict[str, float]()
    kinds = scene.bars.kind[critical.bar]
    for kind in np.unique(kinds).tolist():
        name = mark_of(TaskKind(kind)) or "notify"
        part = kinds == kind
        spent = float((critical.end_us[part] - critical.begin_us[part]).sum())
        found[name] = found.get(name, 0.0) + spent
    return sorted(((n, us) for n, us in found.items() if us > 0), key=lambda pair: -pair[1])


def format_runs(ranks: Sequence[int], most: int = 6) -> str:
    """Return `ranks 0-3, 8` for sorted ranks, or `rank 0`."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    texts = [format_run(*run) for run in runs_of_numbers(ranks)]
    more = ", ..." if len(texts) > most else ""
    return f"ranks {', '.join(texts[:most])}{more}"


def _shown_lanes(scene: Scene, rank: int, most: int) -> list[int]:
    """Return the lanes of a rank that are drawn: the first streams, and the connection."""
    lanes = scene.lanes_of(rank)
    shown = list(lanes[:most])
    if len(lanes) > most and scene.lanes.stream[lanes[-1]] == CONNECTION:
        shown[-1] = lanes[-1]
    return shown


def _cut(name: str) -> str:
    """Return a name that fits: its last part where it has several, as those of the CCU's lanes."""
    name = brief(name)
    if cell_len(name) > _WIDEST_NAME:
        name = name.rpartition(", ")[2]
    return name if cell_len(name) <= _WIDEST_NAME else set_cell_size(name, _WIDEST_NAME)


class PathSpan(NamedTuple):
    """A stretch of the critical path: on which lane, and when."""

    lane: int
    begin_us: float
    end_us: float


class _Chart:
    """The state that all lines of a drawing share."""

    def __init__(self, scene: Scene, words: Words, window: Window, name_width: int) -> None:
        self.scene, self.words, self.window = scene, words, window
        self._name_width = name_width
        self._used = np.zeros(len(MARKS), bool)
        self._has_findings = False
        self._before: list[str] = []
        self._path = path_spans(scene)
        self._findings = finding_groups(scene)

    def named(self, name: str, line: str, style: str = "", mark: str = "") -> Text:
        """Return a line with its name in front."""
        text = Text(self._front(name, mark), style=style)
        text.append(line)
        text.rstrip()
        return text

    def _front(self, name: str, mark: str = "") -> str:
        return f"  {set_cell_size(name, self._name_width)} {mark:1} "

    def group(self, group: Group, most_lanes: int) -> Iterator[Text]:
        """Yield the lines of ranks that do the same: a heading, phases, lanes."""
        scene, rank = self.scene, group[0]
        yield self._heading(group)
        phases = phase_lines(phase_spans(scene, rank), self.window, self.words.tick)
        if phases != self._before:
            for line in phases:
                yield self.named("", line, "italic")
        self._before = phases
        shown, lanes = _shown_lanes(scene, rank, most_lanes), scene.lanes_of(rank)
        for lane in shown:
            yield self._lane(lane, group)
        if len(shown) < len(lanes):
            rest = len(lanes) - len(shown)
            more = f"{rest} more stream{'s' if rest > 1 else ''}"
            yield Text(translated(f"  and {more}; --limit 0 draws all"), style="dim")

    def _heading(self, group: Group) -> Text:
        scene, width = self.scene, self._name_width + _GAP + 2 + self.window.columns
        times = scene.usage[int(np.searchsorted(scene.ranks, group[0]))].tolist()
        total = sum(times) or 1.0
        named = list(zip(("busy", "waits", "idle"), times, (" us", "", ""), strict=True))
        named = [(translated(name), us, unit) for name, us, unit in named]
        long = ", ".join(f"{n} {format_time(us)}{unit} ({us / total:.0%})" for n, us, unit in named)
        short = ", ".join(f"{n} {us / total:.0%}" for n, us, _ in named)
        alike = translated(f", as rank {group[0]}") if len(group) > 1 else ""
        for most, totals in ((6, long), (2, long), (6, short), (2, short), (6, "")):
            who = translated(format_runs(group, most))
            gap = width - cell_len(who) - cell_len(alike) - cell_len(totals)
            if gap >= 2:
                break
        text = Text(who, style="bold")
        text.append(alike, style="not bold dim")
        text.append(" " * gap + totals, style="not bold")
        text.truncate(width)
        text.rstrip()
        return text

    def _lane(self, lane: int, group: Group) -> Text:
        scene = self.scene
        drawn = Lane(scene, lane, self.window, self.words)
        self._used[np.unique(drawn.marks)] = True
        alike = self._alike(lane, group)
        path = [span for span in self._path if span.lane in alike]
        if path:
            begin, end = np.array([span[1:] for span in path]).T
            inside = self.window.shows(begin, end)
            drawn.mark_critical(begin[inside], end[inside])
        for number, at_us in self._findings_on(alike):
            self._has_findings = True
            drawn.mark_finding(at_us, number)
        name = _cut(scene.lanes.names[lane])
        text = Text(self._front(name, self.words.to if path else ""))
        for chars, style in drawn.runs():
            text.append(chars, style=style)
        text.rstrip()
        return text

    def _alike(self, lane: int, group: Group) -> set[int]:
        """Return the lanes that are drawn as one."""
        scene, first = self.scene, self.scene.lanes_of(group[0]).start
        return {scene.lanes_of(rank).start + lane - first for rank in group}

    def _findings_on(self, lanes: set[int]) -> Iterator[tuple[int, float]]:
        """Yield numbers of findings about tasks on lanes, with the tasks' times in the window."""
        bars = self.scene.bars
        for group in reversed(self._findings):
            at = {
                float(bars.end_us[bar] if bars.state[bar] else bars.start_us[bar])
                for found in group.members
                for bar in found.bars
                if int(bars.lane[bar]) in lanes and bars.state[bar] != UNREACHED
            }
            yield from (
                (group.number, us)
                for us in sorted(at)
                if self.window.begin_us <= us <= self.window.end_us
            )

    def path(self) -> Iterator[Text]:
        """Yield a line with the lane of the critical path at each time."""
        window, scene = self.window, self.scene
        spans = [s for s in _joined(self._path) if window.begin_us < s.end_us]
        spans = [s for s in spans if s.begin_us < window.end_us]
        if not spans:
            return
        path = translated("path")
        first, _ = window.spans([s.begin_us for s in spans], [s.end_us for s in spans])
        if len(spans) > window.columns / 3:
            lanes = len({span.lane for span in spans})
            said = translated(f"changes {len(spans) - 1} times between {lanes} streams")
            yield self.named(path, set_cell_size(said, window.columns), "dim", self.words.to)
            return
        until = [*first[1:].tolist(), window.columns]
        line = ""
        for span, begin, end in zip(spans, first.tolist(), until, strict=True):
            if begin == end:
                continue  # the next one begins in the same column
            rank, name = int(scene.lanes.rank[span.lane]), brief(scene.lanes.names[span.lane])
            forms = (f"rank {rank} {name}", f"r{rank} {name}", f"r{rank}", "")
            said = next(f for f in forms if cell_len(f) < end - begin or not f)
            line = set_cell_size(line, begin) + self.words.tick + said
        yield self.named(path, line, "bold", self.words.to)

    def legend(self) -> Iterator[Text]:
        """Yield the legend of the characters that were drawn."""
        used = [MARKS[k] for k in reversed(np.flatnonzero(self._used).tolist()) if k]
        entries = [(*self.words.mark(name), name) for name in used]
        entries += [(self.words.to, "bold", "critical path")] if self._path else []
        entries += [("!", "bold red", "finding")] if self._has_findings else []
        entries = [(char, style, translated(name)) for char, style, name in entries]
        indent = len(self._front(""))
        text = Text(" " * indent)
        for char, style, name in entries:
            if text.cell_len + 2 + cell_len(name) > indent + self.window.columns:
                text.rstrip()
                yield text
                text = Text(" " * indent)
            text.append(char, style=style).append(f" {name}   ", style="dim")
        text.rstrip()
        yield text


def path_spans(scene: Scene) -> list[PathSpan]:
    """Return the critical path by lanes: what is under way over RDMA is on the connection."""
    critical, bars = scene.critical, scene.bars
    connection = bars.connection[critical.bar]
    travels = (connection >= 0) & (critical.begin_us >= bars.end_us[critical.bar])
    lane: IntArray = np.where(travels, connection, bars.lane[critical.bar])
    columns = (lane.tolist(), critical.begin_us.tolist(), critical.end_us.tolist())
    return [PathSpan(*span) for span in zip(*columns, strict=True) if span[2] > span[1]]


def _joined(spans: Iterable[PathSpan]) -> list[PathSpan]:
    """Join what follows each other on one lane."""
    found: list[PathSpan] = []
    for span in spans:
        if found and found[-1].lane == span.lane:
            found[-1] = found[-1]._replace(end_us=span.end_us)
        else:
            found.append(span)
    return found
