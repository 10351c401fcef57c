"""The selected task in words: its work, times, source line, and the tasks before and after it."""

from __future__ import annotations

import numpy as np
from rich.text import Text

from hccl_py.enums import TaskKind
from hccl_py.language import translated
from hccl_py.language.wrapping import padded
from hccl_py.printable import brief
from hccl_py.trace.scene import STUCK, UNREACHED
from hccl_py.trace.screen.browser import Browser
from hccl_py.trace.steps import TraceStep, steps_of
from hccl_py.trace.units import format_time
from hccl_py.trace.words import Words, style_of

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
