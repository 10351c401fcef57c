"""A report for notebooks: a table of its findings."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from hccl_py.verifier.verdict import format_verdict

if TYPE_CHECKING:
    from hccl_py.verifier.finding import Report

SHOWN = 50
"""Rows of the table; the rest is counted."""

_HEADS = ("Severity", "Class", "Finding", "At", "Hint")


def report_html(report: Report) -> str:
    """Return a report as HTML: the verdict, notes, and a row per finding, all of it escaped."""
    head = f"<p><b>{escape(report.target)}</b>: {escape(format_verdict(report))}</p>"
    notes = "".join(f"<p>note: {escape(note)}</p>" for note in report.notes)
    rows = list(_rows(report))
    if not rows:
        return f"<div>{head}{notes}</div>"
    body = "".join(_row(row, "td") for row in rows[:SHOWN])
    rest = len(rows) - SHOWN
    more = f"<p>and {rest} more</p>" if rest > 0 else ""
    return f"<div>{head}{notes}<table>{_row(_HEADS, 'th')}{body}</table>{more}</div>"


def _rows(report: Report) -> Iterator[tuple[str, ...]]:
    for failure in report.failures:
        yield "error", "recording", failure.message, failure.source or "", failure.hint
    if report.numeric is not None and report.numeric.wrong is not None:
        yield "error", "numeric", report.numeric.wrong.message, "", ""
    for finding in report:
        more = f"\nand {finding.more} more like this" if finding.more else ""
        case = f"\nsmallest case: {finding.case}" if finding.case else ""
        text, at = f"{finding.message}{case}{more}", finding.source or ""
        yield finding.severity.spelling, finding.name, text, at, finding.hint


def _row(cells: tuple[str, ...], tag: str) -> str:
    style = ' style="text-align: left; white-space: pre-wrap"'
    return f"<tr>{''.join(f'<{tag}{style}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"
