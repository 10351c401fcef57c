"""Findings of the verifier in the words of the CCU."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from hccl_py.verifier.finding import Finding, TaskAt

_WHERE = r"(die \d+, mission \d+)"
_NAMES = (
    (re.compile(rf"notify 1 of {_WHERE}, (event \d+ bit \d+)"), r"\2 of \1"),
    (
        re.compile(rf"notify 0 of {_WHERE}, (event \d+ bit \d+)"),
        r"the start of a move for \2 of \1",
    ),
    (re.compile(r"notify 1 of (tag \d+ bit \d+)"), r"\1"),
    (re.compile(rf"notify 0 of {_WHERE}(, loop \d+)?"), r"the start of \1\2"),
    (re.compile(rf"notify 1 of {_WHERE}(, loop \d+)?"), r"the end of \1\2"),
)
"""Notifies of streams, and what they stand for (missions.py)."""

_HINTS = {
    "NOTIFY_OVERRUN": "A bit that is set again before it is waited for is lost. Give each move "
    "and each signal a bit of its own in the mask, or wait between the two.",
    "UNMATCHED_POST": "Wait for every bit that a kernel sets, by EventWait or NotifyWait with it "
    "in the mask: it stays set, and the next launch takes it for its own.",
    "WAIT_WITHOUT_POST": "Every bit of the mask must be set: by a move with this event and bit, "
    "or by the peer's NotifyRecord with this notify and bit.",
    "RACE_RW": "Let the kernel wait for the event bit of the move, or for a bit of a notify that "
    "the peer records after its own wait; where the op is over too early, by NotifyRecord and "
    "NotifyWait at the kernel's end.",
    "STREAM_NOT_JOINED": "A move is over when its event bit is set: wait for that bit by "
    "EventWait before the kernel ends.",
}


def in_words(finding: Finding, stack_of: Callable[[TaskAt, int], int]) -> Finding | None:
    """Return a finding that names events, launches and loops; None for a hint that one bit of a
    mask needs no wait, since the others are waited for in the same call.
    """
    if finding.name == "REDUNDANT_SYNC" and finding.tasks:
        task = finding.tasks[0]
        own = stack_of(task, 0)
        if own in (stack_of(task, -1), stack_of(task, 1)):
            return None
    hint = _HINTS.get(finding.name, finding.hint)
    return replace(finding, message=_named(finding.message), hint=_named(hint))


def _named(text: str) -> str:
    for pattern, name in _NAMES:
        text = pattern.sub(name, text)
    return text
