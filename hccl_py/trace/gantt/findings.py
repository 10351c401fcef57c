"""Findings as they are marked and listed: those of one class at one line of code under a number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from rich.text import Text

from hccl_py.language import translated
from hccl_py.printable import brief
from hccl_py.trace.scene import Scene, SceneFinding
from hccl_py.verifier import Severity, verdict
from hccl_py.verifier.terminal import Pen

MOST_LISTED = 8
LONGEST = 4000
"""Characters of a text that are shown; names from files can have any length."""

_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow"}


class FindingGroup(NamedTuple):
    """Findings of one class at one line of the author's code; `number` marks their tasks."""

    number: int
    members: tuple[SceneFinding, ...]

    @property
    def first(self) -> SceneFinding:
        """The one that stands for all."""
        return self.members[0]

    @property
    def total(self) -> int:
        """Number of findings, those included that are only counted."""
        return verdict.total([member.finding for member in self.members])


def finding_groups(scene: Scene) -> list[FindingGroup]:
    """Return errors and warnings, worst first; hints are nothing to mark."""
    found: dict[tuple[str, str | None], list[SceneFinding]] = {}
    for member in scene.findings:
        if member.finding.severity is not Severity.HINT:
            found.setdefault((member.finding.name, member.finding.source), []).append(member)
    return [FindingGroup(k, tuple(members)) for k, members in enumerate(found.values(), start=1)]


def list_findings(scene: Scene, width: int) -> Iterator[Text]:
    """Yield findings in words, under the numbers that mark their tasks."""
    groups = finding_groups(scene)
    for group in groups[:MOST_LISTED]:
        yield from _listed(group, width)
    if not groups and scene.never_ends and not scene.left_out:
        message, hint = scene.program.linked.report(scene.program)
        yield from (Text(brief(translated(line)), "bold red") for line in message.splitlines())
        yield Text(translated(f"hint: {brief(hint)}"))
    rest = len(groups) - MOST_LISTED
    hints = Counter(f.finding.name for f in scene.findings if f.finding.severity is Severity.HINT)
    also = [f"{rest} more finding{'s' if rest > 1 else ''}"] if rest > 0 else []
    also += [f"{count} x {name}" for name, count in hints.items()]
    if also:
        yield Text(translated(f"also found: {', '.join(also)}"), style="dim")


def _listed(group: FindingGroup, width: int) -> Iterator[Text]:
    finding, pen = group.first.finding, Pen(width)
    head = Text(translated(f"!{group.number} {finding.severity.spelling}: {finding.name}"))
    head.stylize(_STYLES[finding.severity])
    yield head
    where = f"at {finding.source}" if finding.source else ""
    hint = f"hint: {finding.hint}" if finding.hint else ""
    likewise = f"and {group.total - 1} more like this" if group.total > 1 else ""
    for said in filter(None, (finding.message, where, likewise, hint)):
        yield from (Text(line.text) for line in pen.wrapped(said[:LONGEST], 3))
