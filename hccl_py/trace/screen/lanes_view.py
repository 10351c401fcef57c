"""The lanes of a scene as a widget: drawn line by line when they are looked at, keys and mouse."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import ClassVar

import numpy as np
from rich.cells import set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from hccl_py.language import translated
from hccl_py.printable import brief
from hccl_py.trace.gantt.chart import format_runs, path_spans
from hccl_py.trace.gantt.lanes import Lane, Run
from hccl_py.trace.gantt.phases import PhaseSpan, phase_lines, phase_spans
from hccl_py.trace.scene import Scene
from hccl_py.trace.screen.browser import Browser
from hccl_py.trace.words import Words
from hccl_py.values import Floats

_NAMES = 20
"""Columns of the names at the left."""

_SELECTED, _RELATED = "reverse bold", "reverse dim"


@lru_cache(maxsize=512)
def _style(text: str) -> Style:
    return Style.parse(text)


def _strip(runs: list[Run], width: int) -> Strip:
    return Strip([Segment(text, _style(style)) for text, style in runs]).adjust_cell_length(width)


class LanesView(ScrollView, can_focus=True):
    """The lanes of a scene: the first line is the scale, the others scroll."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "browse('along', -1)", show=False),
        Binding("right", "browse('along', 1)", show=False),
        Binding("up", "browse('down', -1)", show=False),
        Binding("down", "browse('down', 1)", show=False),
        Binding("pageup", "browse('down', -10)", show=False),
        Binding("pagedown", "browse('down', 10)", show=False),
        Binding("home", "browse('down', -1000000000)", show=False),
        Binding("end", "browse('down', 1000000000)", show=False),
        Binding("w", "cause", "waits for"),
        Binding("d", "consequence", "wakes"),
        Binding("b,backspace", "browse('back')", show=False),
        Binding("plus,equals_sign", "browse('zoom', 0.5)", "zoom", key_display="+ -"),
        Binding("minus", "browse('zoom', 2)", show=False),
        Binding("less_than_sign,comma", "browse('pan', -0.5)", show=False),
        Binding("greater_than_sign,full_stop", "browse('pan', 0.5)", show=False),
        Binding("0", "browse('show_all')", show=False),
        Binding("z", "browse('show_selected')", show=False),
        Binding("enter,space", "fold", show=False),
        Binding("f", "browse('fold_all')", show=False),
        Binding("a", "browse('part')", show=False),
        Binding("c", "on_path(1)", "path"),
        Binding("C", "on_path(-1)", show=False),
        Binding("n", "next_hit(1)", show=False),
        Binding("N", "next_hit(-1)", show=False),
    ]

    def __init__(self, browser: Browser, words: Words) -> None:
        super().__init__()
        self.browser, self.words = browser, words
        self._lanes: dict[int, Lane] = {}
        self._phases: dict[int, list[PhaseSpan]] = {}
        self._headings: dict[int, str] = {}
        self._shown = browser.window
        self._path: dict[int, tuple[Floats, Floats]] = _by_lane(browser.scene)

    def on_resize(self, event: events.Resize) -> None:
        """Take over how wide the picture is."""
        self.browser.resize(self._width - _NAMES)
        self.renew()

    @property
    def _width(self) -> int:
        return int(self.scrollable_content_region.width)

    def renew(self) -> None:
        """Draw again, and see to it that the selected row shows."""
        if self.browser.window != self._shown:
            self._shown = self.browser.window
            self._lanes.clear()
            self._headings.clear()
        self.virtual_size = Size(self._width, len(self.browser.rows) + 1)
        top, height = int(self.scroll_offset.y), max(self.size.height - 1, 1)
        row = self.browser.row
        if not top <= row < top + height:
            self.scroll_to(y=max(row - height // 2, 0), animate=False)
        self.refresh()
        self.post_message(self.Moved())

    class Moved(Message):
        """Something else is selected or shown."""

    # ---- drawing ----

    def render_line(self, y: int) -> Strip:
        """Return a line: the scale, a heading, or a lane."""
        browser, width = self.browser, self._width
        if y == 0:
            runs: list[Run] = [(f"{'us':<{_NAMES}}", "dim"), (browser.window.scale(), "dim")]
            return _strip(runs, width)
        row = y - 1 + int(self.scroll_offset.y)
        if row >= len(browser.rows):
            return Strip.blank(width)
        at = browser.rows[row]
        runs = self._heading(at.group) if at.lane < 0 else self._lane(row, at.lane)
        if row == browser.row:
            runs = [(runs[0][0], f"{runs[0][1]} reverse".strip()), *runs[1:]]
        return _strip(runs, width)

    def _heading(self, group: int) -> list[Run]:
        browser = self.browser
        ranks, drawn = browser.groups[group], browser.drawn[group]
        name = translated(format_runs(ranks, 2))
        name += translated(f" as {drawn}") if len(ranks) > 1 else ""
        folded = "+" if group in browser.folded else "-"
        return [(_fitted(f"{folded} {name}"), "bold"), (self._phase_line(drawn), "italic")]

    def _phase_line(self, rank: int) -> str:
        """Return the phases of a rank, made once for what is shown."""
        if rank not in self._headings:
            if rank not in self._phases:
                self._phases[rank] = phase_spans(self.browser.scene, rank)
            lines = phase_lines(self._phases[rank], self.browser.window, self.words.tick)
            self._headings[rank] = lines[0] if lines else ""
        return self._headings[rank]

    def _lane(self, row: int, lane: int) -> list[Run]:
        browser, scene = self.browser, self.browser.scene
        drawn = self._lanes.get(lane)
        if drawn is None:
            drawn = self._lanes[lane] = self._drawn(lane)
        marked = []
        if browser.bar >= 0:
            if row == browser.row:
                marked.append((*self._columns(*browser.span()), _SELECTED))
            partner = int(scene.bars.partner[browser.bar])
            if partner >= 0 and scene.bars.lane[partner] == lane:
                begin, end = scene.bars.start_us[partner], scene.bars.end_us[partner]
                marked.append((*self._columns(float(begin), float(end)), _RELATED))
        mark = self.words.to if lane in self._path else " "
        name = _fitted(f"   {brief(scene.lanes.names[lane])}", _NAMES - 2)
        return [(f"{name}{mark} ", ""), *drawn.runs(*marked)]

    def _drawn(self, lane: int) -> Lane:
        browser, window = self.browser, self.browser.window
        drawn = Lane(browser.scene, lane, window, self.words)
        if lane in self._path:
            begin, end = self._path[lane]
            shown = window.shows(begin, end)
            drawn.mark_critical(begin[shown], end[shown])
        bars = browser.scene.bars
        for group in reversed(browser.findings):
            on = {b for member in group.members for b in member.bars if bars.lane[b] == lane}
            for bar in on:
                at = float(bars.end_us[bar] if bars.state[bar] else bars.start_us[bar])
                if window.begin_us <= at <= window.end_us:
                    drawn.mark_finding(at, group.number)
        return drawn

    def _columns(self, begin_us: float, end_us: float) -> tuple[int, int]:
        """Return the columns of a span; none where it does not show."""
        window = self.browser.window
        if end_us < window.begin_us or begin_us > window.end_us:
            return 0, 0
        first, stop = window.spans([begin_us], [end_us])
        return int(first[0]), int(stop[0])

    # ---- keys and mouse ----

    def on_click(self, event: events.Click) -> None:
        """Select the task under the mouse; on a heading, fold or open."""
        row = event.y - 1 + int(self.scroll_offset.y)
        if event.y < 1 or row >= len(self.browser.rows):
            return
        at = self.browser.rows[row]
        if at.lane < 0:
            self.browser.fold(at.group)
        else:
            self.browser.pick(row, event.x - _NAMES)
        self.renew()

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Zoom in with ctrl; scroll without."""
        self._wheel(event, 0.5)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Zoom out with ctrl; scroll without."""
        self._wheel(event, 2.0)

    def _wheel(self, event: events.MouseEvent, factor: float) -> None:
        if event.ctrl or event.shift:
            event.stop()
            event.prevent_default()
            window = self.browser.window
            at = window.begin_us + max(event.x - _NAMES, 0) * window.us_per_column
            self._do(lambda: self.browser.zoom(factor, at))

    def _do(self, change: Callable[[], object]) -> None:
        change()
        self.renew()

    def action_browse(self, method: str, *args: float) -> None:
        """Call a method of the browser, and draw again."""
        self._do(lambda: getattr(self.browser, method)(*args))

    def action_cause(self) -> None:
        """Go to what the task waits for."""
        self._jump(self.browser.cause, "Nothing comes before this task.")

    def action_consequence(self) -> None:
        """Go to what waits for the task."""
        self._jump(self.browser.consequence, "Nothing comes after this task.")

    def _jump(self, where: Callable[[], int], otherwise: str) -> None:
        bar = where() if self.browser.bar >= 0 else -1
        if bar < 0:
            self.notify(otherwise if self.browser.bar >= 0 else "Select a task first.")
            return
        self._do(lambda: self.browser.select(bar))

    def action_fold(self) -> None:
        """Fold or open the group of ranks."""
        self._do(lambda: self.browser.fold(self.browser.rows[self.browser.row].group))

    def action_on_path(self, steps: int) -> None:
        """Go along the critical path."""
        if not self.browser.on_path(steps):
            self.notify("There is no critical path.")
        self.renew()

    def action_next_hit(self, steps: int) -> None:
        """Go to the next task that was found."""
        place = self.browser.next_hit(steps)
        said = f"{place + 1} of {len(self.browser.hits)}" if place >= 0 else "Search first: /"
        self.notify(said, timeout=2)
        self.renew()


def _by_lane(scene: Scene) -> dict[int, tuple[Floats, Floats]]:
    found: dict[int, list[tuple[float, float]]] = {}
    for lane, begin, end in path_spans(scene):
        found.setdefault(lane, []).append((begin, end))
    columns = {lane: np.array(spans).T for lane, spans in found.items()}
    return {lane: (begin, end) for lane, (begin, end) in columns.items()}


def _fitted(text: str, width: int = _NAMES) -> str:
    return set_cell_size(set_cell_size(text, width - 1), width)
