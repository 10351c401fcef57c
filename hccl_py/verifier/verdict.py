"""The verdict of a report in a line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hccl_py.verifier.classes import Severity

if TYPE_CHECKING:
    from hccl_py.verifier.finding import Finding, Report


def format_verdict(report: Report) -> str:
    """Return `ok`, or the numbers of errors, warnings and hints."""
    if not report.cases and not report.findings:
        return "nothing was verified"
    parts = ["ok"] if report.ok else []
    unclassed = len(report.failures) + (report.numeric is not None and not report.numeric.ok)
    for severity in reversed(Severity):
        count = total([f for f in report if f.severity is severity])
        count += unclassed if severity is Severity.ERROR else 0
        if count:
            parts.append(counted(count, severity.spelling))
    return ", ".join(parts)


def total(findings: Sequence[Finding]) -> int:
    """Return the number of findings, with those that others count."""
    return sum(1 + finding.more for finding in findings)


def counted(count: int, what: str) -> str:
    """Return `1 error` or `2 errors`."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
