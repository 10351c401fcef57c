"""The screen: lanes above, the selected task below, the search. Nothing is kept per task."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from rich.text import Text
from textual import events
from textual.app import App, ComposeResult
from textual.binding import ActiveBinding, Binding, BindingType
from textual.screen import Screen
from textual.widgets import Footer, Input, Static

from hccl_py.enums import TaskKind
from hccl_py.errors import ParameterError
from hccl_py.language import translated
from hccl_py.language.wrapping import padded
from hccl_py.printable import brief
from hccl_py.trace.scene import STUCK, UNREACHED, Scene
from hccl_py.trace.screen.browser import Browser
from hccl_py.trace.screen.dialogs import HELP, FindingList, Note
from hccl_py.trace.screen.lanes_view import LanesView
from hccl_py.trace.steps import TraceStep, steps_of
from hccl_py.trace.units import format_time
from hccl_py.trace.words import Words, style_of


class _SpokenScreen(Screen[None]):
    @property
    def active_bindings(self) -> dict[str, ActiveBinding]:
        return {
            key: active._replace(binding=replace(active.binding, description=translated(said)))
            for key, active in super().active_bindings.items()
            for said in [active.binding.description]
        }


class Viewer(App[None]):
    """A scene on the whole screen."""

    CSS = """
    #title { height: 1; background: $panel; }
    LanesView { height: 1fr; overflow-x: hidden; overflow-y: scroll; scrollbar-size-vertical: 1; }
    #details { height: 9; border-top: ascii $accent; padding: 0 1; }
    #search { display: none; height: 3; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "search", "search", key_display="/"),
        Binding("e", "findings", "findings"),
        Binding("question_mark", "help", "help", key_display="?"),
        Binding("q", "quit", "quit"),
    ]
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, scene: Scene, *, unicode: bool = True) -> None:
        super().__init__()
        self.browser = Browser(scene)
        self.words = Words.of(scene, unicode=unicode)

    def compose(self) -> ComposeResult:
        """Put title, lanes, details and search below each other."""
        scene = self.browser.scene
        title = f"{translated(brief(scene.title))}   {scene.total_us:.2f} us"
        errors = len(self.browser.findings)
        if errors:
            title += translated(f"   {errors} finding{'s' if errors > 1 else ''}: e lists")
        yield Static(Text(title, "bold", no_wrap=True, overflow="ellipsis"), id="title")
        yield LanesView(self.browser, self.words)
        yield Static(id="details")
        yield Input(placeholder="read  kind:wait  rank:3  at:CCL_Out[256K]", id="search")
        yield Footer()

    def get_default_screen(self) -> Screen[None]:
        """Return the screen with the names of keys in the language that is spoken."""
        return _SpokenScreen(id="_default")

    def notify(self, message: str, **options: Any) -> None:
        """Say something for a while."""
        super().notify(translated(message), **options)

    def on_mount(self) -> None:
        """Begin at the lanes."""
        lanes = self.query_one(LanesView)
        lanes.focus()
        if self.browser.scene.left_out:
            self.notify(brief(self.browser.scene.left_out), timeout=10)

    def on_lanes_view_moved(self) -> None:
        """Show the details of the selected task."""
        details = self.query_one("#details", Static)
        details.update(describe_bar(self.browser, self.words))

    def action_help(self) -> None:
        """Show the keys."""
        self.push_screen(Note(translated(HELP)))

    def action_findings(self) -> None:
        """List the findings."""
        if not self.browser.findings:
            self.notify("The verifier has found no errors and no warnings.")
            return
        self.push_screen(FindingList(self.browser), self._go_to_finding)

    def _go_to_finding(self, number: int | None) -> None:
        if number is None:
            return
        if not self.browser.show_finding(number):
            self.notify("This finding is about no task.")
        self.query_one(LanesView).renew()

    def action_search(self) -> None:
        """Ask what to look for."""
        box = self.query_one("#search", Input)
        box.display = True
        box.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Look for it."""
        try:
            count = self.browser.search(event.value)
        except ParameterError as error:
            self.notify(brief(f"{error.message} {error.hint}"), severity="error")
            return
        self.notify("Nothing matches." if not count else f"{count} tasks; n and N go on")
        self._close_search()

    def on_key(self, event: events.Key) -> None:
        """Leave the search with escape."""
        if event.key == "escape" and self.query_one("#search", Input).display:
            self._close_search()

    def _close_search(self) -> None:
        self.query_one("#search", Input).display = False
        lanes = self.query_one(LanesView)
        lanes.focus()
        lanes.renew()


_STATES = {STUCK: "   begins and never ends", UNREACHED: "   never begins"}


def describe_bar(browser: Browser, words: Words) -> Text:
    """Return the lines about the selected task, or how to select one."""
    scene, bar = browser.scene, browser.bar
    if bar < 0:
        facts = "\n".join(f"{name}: {brief(value)}" for name, value in scene.facts)
        hint = "right selects a task, ? lists all keys"
        return Text("\n\n".join(map(translated, (facts, hint))), "dim")
    (step,) = steps_of(scene, [bar])
    text = Text().append(f"{_place(step, words)}: ", "bold")
    text.append(" ".join(words.line(step)).rstrip(), style_of(step))
    state = int(scene.bars.state[bar])
    text.append("\n" + translated(f"{_times(step, state)}{_STATES.get(state, '')}"))
    about = [translated(f"round {step.round + 1}"), step.label, step.source]
    text.append("\n" + "   ".join(filter(None, about)), "dim")
    cause, consequence = browser.cause(), browser.consequence()
    is_post = consequence >= 0 and scene.waits_for(consequence) == bar
    heads = "waits for" if scene.waits_for(bar) >= 0 else "after", "wakes" if is_post else "before"
    for head, other in zip(heads, (cause, consequence), strict=True):
        if other >= 0:
            (found,) = steps_of(scene, [other])
            said = " ".join(words.line(found)).rstrip()
            text.append("\n" + padded(translated(head), 11), "bold")
            text.append(f"{_place(found, words)}: {said}")
    if on_path := _on_path(browser):
        text.append("\n" + translated(on_path))
    for group in browser.findings:
        if any(bar in member.bars for member in group.members):
            first = brief(translated(group.first.finding.message.split("\n")[0]))
            text.append(f"\n!{group.number} {group.first.finding.name}: {first}", "bold red")
    return text


def _place(step: TraceStep, words: Words) -> str:
    return f"rank {step.place.rank} {words.stream(step.place.stream)} #{step.place.number}"


def _times(step: TraceStep, state: int) -> str:
    start, end = format_time(step.start_us), format_time(step.end_us)
    if state == STUCK:
        return f"from {start} us on"
    if state == UNREACHED:
        return ""
    late = ""
    if step.effect_us > step.end_us:
        what = "set" if step.kind is TaskKind.NOTIFY_POST else "arrived"
        late = f", {what} at {format_time(step.effect_us)}"
    return f"{start} to {end} us ({format_time(step.end_us - step.start_us)} us{late})"


def _on_path(browser: Browser) -> str:
    critical = browser.scene.critical
    mine = np.flatnonzero(critical.bar == browser.bar)
    if not len(mine):
        return ""
    spent = float((critical.end_us[mine] - critical.begin_us[mine]).sum())
    return f"on the critical path for {format_time(spent)} us"
