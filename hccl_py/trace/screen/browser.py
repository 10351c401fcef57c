"""The visible part of a scene and the selected task, and how both move; no screen, no keys.

The rows are a heading for each group of ranks that do the same, and below it the lanes of one of
them, unless the group is folded. A task of another rank of the group is shown on that rank's lanes.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from hccl_py.trace.gantt.findings import FindingGroup, finding_groups
from hccl_py.trace.gantt.lanes import shown_bars, spans_of
from hccl_py.trace.gantt.window import Window
from hccl_py.trace.scene import CONNECTION, Scene
from hccl_py.trace.screen.search import find_bars
from hccl_py.values import IntArray

_MOST_FOLDED = 64
"""Ranks up to which all lanes are open in the beginning."""

_LEAST_SHARE = 1e-9
"""The least share of the total that a column stands for."""


class LaneRow(NamedTuple):
    """A line of the picture: a lane, or the heading of a group of ranks where `lane` is -1."""

    group: int
    lane: int


class Browser:
    """A scene, the window of time, which groups are folded, and the task that is selected."""

    def __init__(self, scene: Scene, columns: int = 80) -> None:
        self.scene = scene
        self.window = Window(0.0, scene.total_us or 1.0, columns)
        self.together = True
        self.bar, self.row = -1, 0
        self.hits: IntArray = np.zeros(0, np.int64)
        self._past: list[int] = []
        self._regroup()

    # ---- rows ----

    def _regroup(self) -> None:
        scene = self.scene
        self.groups = scene.groups if self.together else [(r,) for r in scene.ranks.tolist()]
        self.drawn = [group[0] for group in self.groups]
        self._group_of = {rank: k for k, group in enumerate(self.groups) for rank in group}
        few = len(self.groups) <= _MOST_FOLDED
        self.folded = set() if few else set(range(1, len(self.groups)))
        self._lay_out()

    def _lay_out(self) -> None:
        self.rows = []
        for group, rank in enumerate(self.drawn):
            self.rows.append(LaneRow(group, -1))
            if group not in self.folded:
                self.rows += [LaneRow(group, lane) for lane in self.scene.lanes_of(rank)]
        self.row = min(self.row, len(self.rows) - 1)

    def part(self) -> None:
        """Show ranks that do the same together, or each by itself."""
        self.together = not self.together
        bar = self.bar
        self._regroup()
        if bar >= 0:
            self.select(bar, remember=False)

    def fold(self, group: int) -> None:
        """Fold a group of ranks, or open it."""
        self.folded ^= {group}
        self._lay_out()
        self.row = self.rows.index(LaneRow(group, -1))

    def fold_all(self) -> None:
        """Fold all groups, or open them where all are folded."""
        every = set(range(len(self.groups)))
        group = self.rows[self.row].group
        self.folded = set() if self.folded == every else every
        self._lay_out()
        self.row = self.rows.index(LaneRow(group, -1))

    def bars_on(self, lane: int) -> IntArray:
        """Return the bars of a lane, as they are on it."""
        lanes = self.scene.lanes
        if lanes.stream[lane] == CONNECTION:
            return self.scene.on_connections.get(lane, np.zeros(0, np.int64))
        return np.arange(lanes.first[lane], lanes.first[lane + 1])

    # ---- time ----

    def resize(self, columns: int) -> None:
        """Take over the number of columns."""
        self.window = self.window._replace(columns=max(columns, 1))

    def zoom(self, factor: float, at_us: float | None = None) -> None:
        """Show `factor` times as much time, around a moment or what is selected."""
        begin, end, _ = self.window
        at = self._focus() if at_us is None else at_us
        least = self._total * _LEAST_SHARE * self.window.columns
        size = min(max((end - begin) * factor, least), self._total)
        self._show(at - (at - begin) / (end - begin) * size, size)

    def pan(self, share: float) -> None:
        """Move by a share of what is shown."""
        begin, end, _ = self.window
        self._show(begin + (end - begin) * share, end - begin)

    def show_all(self) -> None:
        """Show all of the time."""
        self._show(0.0, self._total)

    def show_selected(self) -> None:
        """Show the selected task over half of the columns."""
        begin, end = self.span()
        size = max(2 * (end - begin), self.window.us_per_column, self._total * 1e-6)
        self._show((begin + end - size) / 2, min(size, self._total))

    def _show(self, begin: float, size: float) -> None:
        begin = min(max(begin, 0.0), self._total - size)
        self.window = Window(begin, begin + size, self.window.columns)

    @property
    def _total(self) -> float:
        return self.scene.total_us or 1.0

    def _focus(self) -> float:
        """Return the moment that zooming keeps in place: the selected task's if it shows, else the
        middle.
        """
        window = self.window
        if self.bar >= 0:
            middle = sum(self.span()) / 2
            if window.begin_us <= middle <= window.end_us:
                return middle
        return (window.begin_us + window.end_us) / 2

    # ---- the selected task ----

    def span(self) -> tuple[float, float]:
        """Return the begin and end of the selected task on the lane of its row."""
        if self.bar < 0:
            return self.window.begin_us, self.window.end_us
        lane = self.rows[self.row].lane
        on = lane if lane >= 0 else int(self.scene.bars.lane[self.bar])
        begin, end = spans_of(self.scene, on, np.array([self.bar]))
        return float(begin[0]), float(end[0])

    def select(self, bar: int, lane: int = -1, *, remember: bool = True) -> None:
        """Select a task and see to it that it shows: its group open, its rank drawn, its time in
        the window.
        """
        if remember and self.bar >= 0:
            self._past.append(self.bar)
        lane = lane if lane >= 0 else int(self.scene.bars.lane[bar])
        rank = int(self.scene.lanes.rank[lane])
        group = self._group_of[rank]
        if self.drawn[group] != rank or group in self.folded:
            self.drawn[group] = rank
            self.folded.discard(group)
            self._lay_out()
        self.bar, self.row = bar, self.rows.index(LaneRow(group, lane))
        begin, end = self.span()
        size = self.window.end_us - self.window.begin_us
        if end < self.window.begin_us or begin > self.window.end_us:
            self._show((begin + end - size) / 2, size)

    def back(self) -> bool:
        """Select what was selected before."""
        if not self._past:
            return False
        self.select(self._past.pop(), remember=False)
        return True

    def pick(self, row: int, column: int) -> None:
        """Select what is at a column of a row: the task that lasts there, or the nearest one."""
        self.row = min(max(row, 0), len(self.rows) - 1)
        lane = self.rows[self.row].lane
        if lane < 0:
            return
        window = self.window
        at = window.begin_us + (column + 0.5) * window.us_per_column
        if (bar := self._nearest(lane, at)) >= 0:
            self.select(bar, lane)

    def _nearest(self, lane: int, at_us: float) -> int:
        shown = shown_bars(self.scene, lane, self.window)
        bars = shown if len(shown) else self.bars_on(lane)
        if not len(bars):
            return -1
        begin, end = spans_of(self.scene, lane, bars)
        return int(bars[np.argmin(np.maximum(begin - at_us, at_us - end))])

    def along(self, steps: int) -> None:
        """Go to the next task on the lane, or the one before."""
        lane = self.rows[self.row].lane
        if lane < 0:
            self.down(1)
            return
        bars = self.bars_on(lane)
        place = np.flatnonzero(bars == self.bar)
        if not len(place):
            self.pick(self.row, self.window.columns // 2)
            return
        self.select(int(bars[min(max(int(place[0]) + steps, 0), len(bars) - 1)]), lane)

    def down(self, rows: int) -> None:
        """Go to another row, to the task there at the same time."""
        at = sum(self.span()) / 2
        self.row = min(max(self.row + rows, 0), len(self.rows) - 1)
        lane = self.rows[self.row].lane
        if lane >= 0 and (bar := self._nearest(lane, at)) >= 0:
            self.select(bar, lane)

    def cause(self) -> int:
        """Return the task that the selected one comes after: a wait's post, or else the one before
        on its stream; -1 for none.
        """
        before, bars = self.bar - 1, self.scene.bars
        waited = self.scene.waits_for(self.bar)
        if waited >= 0:
            return waited
        return before if before >= 0 and bars.lane[before] == bars.lane[self.bar] else -1

    def consequence(self) -> int:
        """Return the task that comes after the selected one: the wait for a post, or else the one
        behind it on its stream; -1 for none.
        """
        behind, bars = self.bar + 1, self.scene.bars
        if self.scene.waits_for(self.bar) < 0 and bars.partner[self.bar] >= 0:
            return int(bars.partner[self.bar])
        return behind if behind < len(bars) and bars.lane[behind] == bars.lane[self.bar] else -1

    # ---- lists to go along ----

    def on_path(self, steps: int) -> bool:
        """Go to the next task on the critical path, or the one before; False where none is."""
        path = self._path
        if not len(path):
            return False
        at = np.flatnonzero(path == self.bar)
        if len(at):
            place = min(max(int(at[0 if steps < 0 else -1]) + steps, 0), len(path) - 1)
        else:
            begin = self.scene.bars.start_us[path]
            place = min(int(np.searchsorted(begin, self.span()[0])), len(path) - 1)
        self.select(int(path[place]))
        return True

    @cached_property
    def _path(self) -> IntArray:
        bars = self.scene.critical.bar
        return bars[np.flatnonzero(np.diff(bars, prepend=-1))]

    @cached_property
    def findings(self) -> list[FindingGroup]:
        """Errors and warnings, worst first."""
        return finding_groups(self.scene)

    def show_finding(self, number: int) -> bool:
        """Select the culprit of a finding, by its place in `findings`."""
        bars = [bar for member in self.findings[number].members for bar in member.bars]
        if not bars:
            return False
        self.select(bars[0])
        return True

    def search(self, query: str) -> int:
        """Look for tasks and select the first one from here on; return how many there are."""
        self.hits = find_bars(self.scene, query) if query.strip() else np.zeros(0, np.int64)
        if len(self.hits):
            begins = self.scene.bars.start_us[self.hits]
            here = self.span()[0] if self.bar >= 0 else 0.0
            place = int(np.searchsorted(begins, here))
            self.select(int(self.hits[place % len(self.hits)]))
        return len(self.hits)

    def next_hit(self, steps: int) -> int:
        """Go to the next task that was found, or the one before; return its place, -1 for none."""
        if not len(self.hits):
            return -1
        at = np.flatnonzero(self.hits == self.bar)
        place = (int(at[0]) + steps if len(at) else 0) % len(self.hits)
        self.select(int(self.hits[place]))
        return place
