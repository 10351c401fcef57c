"""A report for people: the verdict, then every class of findings, worst first.

    ring.json: 1 error, 1 hint
      all_gather fp32, 4 ranks, 56 tasks

    RACE_RW (1 error): a read and a write of the same memory, in no order
      rank 1 main task 2 reads what rank 0 main task 3 may be writing ...
        at my_ring.py:31
        hint: wait for the Ack before the copy
        rank 1 main
            task 1  posts Ack of rank 0          my_ring.py:30
          > task 2  ...

Findings that show only between two calls are one sentence at the end, unless everything is asked
for. Lines are plain text with a style each; their printer decides about colour. Names and source
lines from a program file are escaped, so that control characters in them have no effect.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from hccl_py.language import translated
from hccl_py.language.wrapping import columns, padded, wrapped
from hccl_py.printable import one_line
from hccl_py.program.program import Program
from hccl_py.verifier.classes import CLASSES, Severity
from hccl_py.verifier.excerpt import MOST_CULPRITS, Excerpt, TaskLine, excerpts, format_at
from hccl_py.verifier.finding import Failure, Finding, Report
from hccl_py.verifier.verdict import counted, format_verdict, total

IN_FULL = 3
"""Lines of the author's code, per class, that show a finding with the tasks around it."""
LISTED = 8
"""Lines of the author's code, per class, that show a finding at all."""
LISTED_HINTS = 2
"""Hints of one class that are shown; more become one line."""

NARROWEST = 40
"""Columns that lines need at least; a narrower terminal breaks them."""
_SOURCE_WIDTH = 28
_ACTION_WIDTH = 24
"""Columns below which source lines give way to the tasks' actions."""
_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.HINT: "bold cyan"}


class StyledLine(NamedTuple):
    """One line and its style, in rich's words."""

    text: str = ""
    style: str = ""


class Pen(NamedTuple):
    """The form of a report: columns, whether Unicode may be used, and whether all is shown."""

    width: int = 80
    unicode: bool = False
    verbose: bool = False

    def wrapped(self, text: str, indent: int, style: str = "") -> Iterator[StyledLine]:
        """Yield the lines of a text; a line that is broken goes on two columns further in."""
        first, more = " " * indent, " " * (indent + 2)
        for part in translated(text).splitlines() or [""]:
            for line in wrapped(one_line(part), max(self.width, NARROWEST), first, more):
                yield StyledLine(line, style)


def format_report(report: Report, pen: Pen | None = None) -> str:
    """Return a report as plain text, by default for 80 columns."""
    return "\n".join(line.text for line in draw_report(report, pen or Pen()))


def draw_report(report: Report, pen: Pen) -> Iterator[StyledLine]:
    """Yield a report's lines."""
    verdict_style = "bold green" if report.ok else "bold red"
    yield from pen.wrapped(f"{report.target}: {format_verdict(report)}", 0, verdict_style)
    for fact in _facts(report):
        yield from pen.wrapped(fact, 2)
    yield from _failures(report, pen)
    between = () if pen.verbose else report.only_between_calls
    left_out = set(map(id, between))
    shown = [finding for finding in report if id(finding) not in left_out]
    for (severity, name), group in groupby(shown, key=lambda f: (f.severity, f.name)):
        findings = list(group)
        yield from _head(name, total(findings), severity, CLASSES[name].meaning, pen)
        yield from _class(report, findings, severity, pen)
    if between:
        yield StyledLine()
        yield from pen.wrapped(_between_calls(between), 0, _STYLES[between[0].severity])
    yield from _numeric(report, pen)


def _between_calls(findings: Sequence[Finding]) -> str:
    """Return one sentence about findings that show only where calls follow each other."""
    groups = [list(group) for _, group in groupby(findings, key=lambda f: f.name)]
    classes = ", ".join(f"{total(group)} {group[0].name}" for group in groups)
    return (
        f"Only between calls that follow each other without synchronisation: {classes}"
        f"{_at(findings)}; -v shows them"
    )


def _facts(report: Report) -> Iterator[str]:
    """Yield the program or the number of cases, the runs with data, and the notes."""
    program = report.programs.get("")
    if program is not None:
        yield _format_program(program, report.target)
    elif report.cases:
        yield f"{counted(report.cases, 'case')} checked"
    if report.numeric is not None and report.numeric.ok:
        programs = counted(report.numeric.programs, "program")
        yield f"{counted(report.numeric.runs, 'run')} of {programs} with data, all results right"
    for note in report.notes:
        yield f"note: {note}"


def _format_program(program: Program, target: str) -> str:
    by = f" by {program.executor}" if program.executor not in ("", target) else ""
    ranks, tasks = counted(program.ranks, "rank"), counted(program.task_count, "task")
    dtype = f" {program.op.dtype.value}" if program.has_op else ""
    return f"{program.op_name}{dtype}{by}, {ranks}, {tasks}"


def _head(
    name: str, count: int, severity: Severity, meaning: str, pen: Pen
) -> Iterator[StyledLine]:
    yield StyledLine()
    how_many = counted(count, severity.spelling)
    yield from pen.wrapped(f"{name} ({how_many}): {meaning}", 0, _STYLES[severity])


def _failures(report: Report, pen: Pen) -> Iterator[StyledLine]:
    if not report.failures:
        return
    meaning = "the executor raises, or gives another program rank by rank"
    yield from _head("recording", len(report.failures), Severity.ERROR, meaning, pen)
    for failure in report.failures:
        yield from pen.wrapped(failure.message, 2)
        yield from _place(failure, pen)
        if failure.hint:
            yield from pen.wrapped(f"hint: {failure.hint}", 4, "green")


def _numeric(report: Report, pen: Pen) -> Iterator[StyledLine]:
    if report.numeric is None or report.numeric.wrong is None:
        return
    wrong = report.numeric.wrong
    yield from _head("numeric", 1, Severity.ERROR, "run with data, it goes wrong", pen)
    yield from pen.wrapped(wrong.message, 2)
    if wrong.case:
        yield from pen.wrapped(f"case: {wrong.case}", 4)
    schedule = wrong.schedule
    yield from pen.wrapped(f"interleaving: {schedule.adversary.value}, seed {schedule.seed}", 4)


def _place(found: Finding | Failure, pen: Pen) -> Iterator[StyledLine]:
    """Yield the author's line, the smallest case, and the features that all cases share."""
    if found.source:
        yield from pen.wrapped(f"at {found.source}", 4)
    if found.case:
        yield from pen.wrapped(f"smallest case: {found.case}", 4)
    if found.common:
        yield from pen.wrapped(f"in common: {found.common}", 4)


def _class(
    report: Report, findings: Sequence[Finding], severity: Severity, pen: Pen
) -> Iterator[StyledLine]:
    """Yield findings of one class, line by line of the author's code: the first lines with the
    tasks around a culprit, then lines without, the rest counted.
    """
    if pen.verbose:
        for number, finding in enumerate(one for f in findings for one in f.every()):
            if number:
                yield StyledLine()
            yield from _finding(finding, report.programs.get(finding.case), True, pen)
        return
    is_hint = severity is Severity.HINT
    if is_hint and len(findings) > LISTED_HINTS:
        yield from _summary(findings, pen)
        return
    groups = _by_line(report, findings)
    for number, (first, *others) in enumerate(groups[:LISTED]):
        in_full = number < IN_FULL and not is_hint
        if in_full and number:
            yield StyledLine()
        yield from _finding(first, report.programs.get(first.case), in_full, pen)
        yield from _likewise(report, others, pen)
    if rest := [finding for group in groups[LISTED:] for finding in group]:
        yield from pen.wrapped(f"and {total(rest)} more{_at(rest)}; -v shows them", 2)


def _by_line(report: Report, findings: Sequence[Finding]) -> list[list[Finding]]:
    """Group findings with tasks by the author's line; others stay alone."""
    groups: dict[object, list[Finding]] = {}
    for number, finding in enumerate(findings):
        alike = finding.source and finding.tasks and finding.case in report.programs
        key = finding.source if alike else number
        groups.setdefault(key, []).append(finding)
    return list(groups.values())


def _likewise(report: Report, others: Sequence[Finding], pen: Pen) -> Iterator[StyledLine]:
    """Yield the other places at which the same line is at fault."""
    if not others:
        return
    places = [format_at(report.programs[f.case], f.tasks[0]) for f in others]
    rest = total(others) - len(places)
    more = f" and {rest} more" if rest else ""
    yield from pen.wrapped(f"likewise: {', '.join(places)}{more}", 4)


def _summary(findings: Sequence[Finding], pen: Pen) -> Iterator[StyledLine]:
    first = findings[0].message.split("\n", 1)[0]
    yield from pen.wrapped(f"for example: {first}", 2)
    rest = total(findings) - 1
    yield from pen.wrapped(f"and {rest} more{_at(findings)}; -v shows them", 2)


def _at(findings: Sequence[Finding]) -> str:
    """Return ` at` the first few source lines of findings."""
    lines = list(dict.fromkeys(f.source for f in findings if f.source))
    if not lines:
        return ""
    rest = f" and {len(lines) - 4} other lines" if len(lines) > 4 else ""
    return f" at {', '.join(lines[:4])}{rest}"


def _finding(
    finding: Finding, program: Program | None, in_full: bool, pen: Pen
) -> Iterator[StyledLine]:
    yield from pen.wrapped(finding.message, 2)
    yield from _place(finding, pen)
    if finding.repeat > 1:
        again = "right after op 1" if finding.repeat == 2 else "right after the others"
        yield from pen.wrapped(f"shows in op {finding.repeat}: the same call again, {again}", 4)
    if in_full and finding.hint:
        yield from pen.wrapped(f"hint: {finding.hint}", 4, "green")
    if in_full and program is not None:
        for excerpt in excerpts(program, finding):
            yield from _excerpt(excerpt, pen)
        left_out = len(finding.tasks) - MOST_CULPRITS
        if left_out > 0:
            yield from pen.wrapped(f"and {counted(left_out, 'task')} more", 4, "dim")
    if finding.more:
        yield from pen.wrapped(f"and {finding.more} more like this", 4)


def _excerpt(excerpt: Excerpt, pen: Pen) -> Iterator[StyledLine]:
    """Yield a stream's name and its tasks, the culprits marked."""
    yield StyledLine(f"    rank {excerpt.rank} {translated(excerpt.name)}", "dim")
    lines = excerpt.lines
    names = [translated(line.name) for line in lines]
    label_width = max(map(columns, names))
    left = 8 + label_width + 2
    sources, room = _columns(lines, left, pen)
    before = lines[0].at.index
    for line, name, source in zip(lines, names, sources, strict=True):
        if line.at.index > before + 1:
            yield StyledLine(f"{'':8}...", "dim")
        before = line.at.index
        mark = ("▸" if pen.unicode else ">") if line.is_culprit else " "
        style = "bold" if line.is_culprit else "dim"
        said = wrapped(_action(line), room)
        head = f"{'':6}{mark} {padded(name, label_width)}  {padded(said[0], room)}  {source}"
        yield StyledLine(head.rstrip(), style)
        yield from (StyledLine(f"{'':{left + 2}}{part}", style) for part in said[1:])


def _columns(lines: Sequence[TaskLine], left: int, pen: Pen) -> tuple[list[str], int]:
    """Return the source lines, shortened where they must be, and the columns for the actions."""
    longest = max(columns(_action(line)) for line in lines)
    sources = [one_line(line.source) for line in lines]
    for candidate in (sources, [_shortened(source) for source in sources]):
        free = pen.width - left - 2 - max(map(len, candidate))
        if free >= longest:
            return candidate, longest
    if free < _ACTION_WIDTH:
        return [""] * len(lines), max(pen.width, NARROWEST) - left
    return candidate, free


def _action(line: TaskLine) -> str:
    return translated(one_line(line.action))


def _shortened(source: str) -> str:
    name = source.rpartition("/")[2]
    return name if len(name) <= _SOURCE_WIDTH else f"...{name[3 - _SOURCE_WIDTH :]}"
