"""One lane as columns of characters: its tasks by kind, and in words where there is room.

░╌ RxAck ◂r3 ╌╌╌╌╌╌╌⣿ read 256K ◂r3 ⣿⣿⣿⣿⣿⣿⣿⣿⣿
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np
import numpy.typing as npt
from rich.cells import cell_len

from hccl_py.enums import TaskKind
from hccl_py.trace.gantt.window import Window
from hccl_py.trace.scene import CONNECTION, STUCK, Scene
from hccl_py.trace.steps import steps_of
from hccl_py.trace.words import MARKS, Words, mark_of
from hccl_py.values import Floats, IntArray

Run = tuple[str, str]
"""A text and its style, in rich's words."""

_NARROWEST = 7
"""Columns of a bar from which on it says what it is."""

_MARK_OF = np.array([MARKS.index(mark_of(kind)) for kind in TaskKind])
_CRITICAL = "bold not dim yellow"
_FINDING = "bold red"


def shown_bars(scene: Scene, lane: int, window: Window) -> IntArray:
    """Return the bars that take time on a lane within the window."""
    lanes, bars = scene.lanes, scene.bars
    if lanes.stream[lane] == CONNECTION:
        found = scene.on_connections.get(lane, np.zeros(0, np.int64))
        return found[window.shows(bars.end_us[found], bars.effect_us[found])]
    low, high = int(lanes.first[lane]), int(lanes.first[lane + 1])
    low += int(np.searchsorted(bars.end_us[low:high], window.begin_us, side="right"))
    high = low + int(np.searchsorted(bars.start_us[low:high], window.end_us))
    found = np.arange(low, high)
    return found[bars.end_us[low:high] > bars.start_us[low:high]]


def spans_of(scene: Scene, lane: int, bars: IntArray) -> tuple[Floats, Floats]:
    """Return the begin and end of bars on a lane: over RDMA, of a write from its end to its
    arrival.
    """
    columns = scene.bars
    if scene.lanes.stream[lane] == CONNECTION:
        return columns.end_us[bars], columns.effect_us[bars]
    return columns.start_us[bars], columns.end_us[bars]


class Lane:
    """The columns of a lane. `marks` are numbers in MARKS, 0 for an idle column."""

    def __init__(self, scene: Scene, lane: int, window: Window, words: Words) -> None:
        self._words, self._window = words, window
        self.bars = shown_bars(scene, lane, window)
        start, end = spans_of(scene, lane, self.bars)
        self.first, self.stop = window.spans(start, end)
        mark = _MARK_OF[scene.bars.kind[self.bars]]
        mark = np.where(scene.bars.state[self.bars] == STUCK, MARKS.index("stuck"), mark)
        self.marks = _painted(self.first, self.stop, mark, window.columns)
        self._chars = [words.mark(MARKS[k])[0] for k in self.marks.tolist()]
        self._styles = [words.mark(MARKS[k])[1] for k in self.marks.tolist()]
        self._scene, self._widths = scene, window.widths(start, end)
        self._flags: list[tuple[int, str]] = []
        self._is_labelled = False

    def _label(self) -> None:
        """Write in bars what they are, behind the marks of findings. How much of it follows from
        how long they last, not from the columns that they happen to cover: bars alike say alike.
        """
        self._is_labelled = True
        flags = [(column, column + len(text)) for column, text in self._flags]
        wide = np.flatnonzero(self._widths >= _NARROWEST)
        taken = 0
        for k, step in zip(wide.tolist(), steps_of(self._scene, self.bars[wide]), strict=True):
            first, stop = max(int(self.first[k]), taken), int(self.stop[k])
            first = max([first, *(end - 1 for at, end in flags if first <= at <= first + 1)])
            stop = min([stop, *(at + 1 for at, _ in flags if first < at < stop)])
            text = self._words.inside(step, min(int(self._widths[k]) - 4, stop - first - 3))
            if text:
                self._write(first + 1, f" {text} ", self._styles[first + 1])
                taken = stop
        for column, text in self._flags:
            self._write(column, text, _FINDING)

    def _write(self, column: int, text: str, style: str) -> None:
        """Put a text over columns; it must fit. A wide character leaves the next column empty."""
        for char in text:
            self._chars[column], self._styles[column] = char, style
            for more in range(1, cell_len(char)):
                self._chars[column + more] = ""
            column += max(cell_len(char), 1)

    def mark_critical(self, begin_us: Floats, end_us: Floats) -> None:
        """Mark the spans of the critical path on this lane."""
        for first, stop in zip(*self._window.spans(begin_us, end_us), strict=True):
            for column in range(first, stop):
                self._styles[column] = f"{self._styles[column]} {_CRITICAL}".strip()

    def mark_finding(self, at_us: float, number: int) -> None:
        """Mark a task that a finding is about."""
        text = f"!{number}"[: self._window.columns]
        column = min(self._window.column(at_us), self._window.columns - len(text))
        self._flags = [flag for flag in self._flags if flag[0] != column] + [(column, text)]

    def runs(self, *marked: tuple[int, int, str]) -> Iterator[Run]:
        """Yield the line's texts with their styles; `marked` are columns first .. stop - 1 with a
        style that is added.
        """
        if not self._is_labelled:
            self._label()
        styles = list(self._styles)
        for first, stop, style in marked:
            for column in range(max(first, 0), min(stop, len(styles))):
                styles[column] = f"{styles[column]} {style}".strip()
        return runs_of(self._chars, styles)


def runs_of(chars: Sequence[str], styles: Sequence[str]) -> Iterator[Run]:
    """Yield columns with one style together."""
    pairs = zip(chars, styles, strict=True)
    for style, group in groupby(pairs, key=lambda pair: pair[1]):
        yield "".join(char for char, _ in group), style


def _painted(
    first: IntArray, stop: IntArray, mark: IntArray, columns: int
) -> npt.NDArray[np.int64]:
    """Return a mark for every column; where a column holds several, the last one of MARKS wins."""
    found = np.zeros(columns, np.int64)
    for number in range(1, len(MARKS)):
        some = mark == number
        edges = np.bincount(first[some], minlength=columns + 1) - np.bincount(
            stop[some], minlength=columns + 1
        )
        found[np.cumsum(edges)[:-1] > 0] = number
    return found
