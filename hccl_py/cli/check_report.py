"""The reports of `hccl-py check`: as text when each is made, or as one JSON document at the end."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from tempfile import SpooledTemporaryFile

from hccl_py.cli.output import Screen, print_json
from hccl_py.formats import format_path
from hccl_py.verifier import Report
from hccl_py.verifier.terminal import Pen, draw_report

_AT_ONCE = 1 << 16
"""Bytes of a report that are held in memory."""


class TextReports:
    """Prints every report when it is made, and at the end the number of targets by verdict."""

    def __init__(self, verbose: bool) -> None:
        self._screen = Screen()
        self._pen = Pen(self._screen.console.width, self._screen.unicode, verbose)
        self._verdicts: list[bool] = []
        self._skipped = 0

    @property
    def ok(self) -> bool:
        """True if there are reports and none has errors."""
        return all(self._verdicts) and bool(self._verdicts)

    def skip(self, name: str) -> None:
        """Name an executor that suits none of the calls."""
        self._gap()
        self._skipped += 1
        self._screen.show(f"{name}: suits no such call")

    def add(self, report: Report) -> None:
        """Print a report."""
        self._gap()
        self._verdicts.append(report.ok)
        for line in draw_report(report.renamed(format_path(report.target)), self._pen):
            self._screen.show(line.text, style=line.style)

    def add_line(self, line: str, report: Report) -> None:
        """Print the line about one of many sources; with --verbose its report."""
        if self._pen.verbose:
            self.add(report)
            return
        self._verdicts.append(report.ok)
        self._screen.show(line, style="green" if report.ok else "bold red")

    def _gap(self) -> None:
        if self._verdicts or self._skipped:
            self._screen.show()

    def end(self, failed: int) -> None:
        """Print the number of targets with each verdict, where there are several."""
        total = len(self._verdicts) + self._skipped + failed
        if total < 2:
            return
        wrong = self._verdicts.count(False)
        parts = [f"{self._verdicts.count(True)} ok"]
        parts += [f"{wrong} with errors"] if wrong else []
        parts += [f"{self._skipped} suit no such call"] if self._skipped else []
        parts += [f"{failed} not verified"] if failed else []
        self._screen.show()
        self._screen.show(f"{total} targets: {', '.join(parts)}")


class JsonReports:
    """One JSON document at the end. Reports wait in a file: they can be larger than memory, and the
    first key of the document, the verdict, is known last.
    """

    def __init__(self) -> None:
        self._reports = SpooledTemporaryFile(max_size=1 << 24)  # noqa: SIM115 - closed at the end
        self._ends = [0]
        self._verdicts: list[bool] = []
        self._skipped: list[str] = []

    @property
    def ok(self) -> bool:
        """True if there are reports and none has errors."""
        return all(self._verdicts) and bool(self._verdicts)

    def skip(self, name: str) -> None:
        """Keep the name of an executor that suits none of the calls."""
        self._skipped.append(name)

    def add(self, report: Report) -> None:
        """Keep a report."""
        self._verdicts.append(report.ok)
        self._reports.writelines(part.encode("ascii") for part in report.json())
        self._ends.append(self._reports.tell())

    def add_line(self, line: str, report: Report) -> None:
        """Keep a report."""
        self.add(report)

    def end(self, failed: int) -> None:
        """Print the document."""
        ok = self.ok and not failed
        head = {"schema": "hccl-py.check/1", "ok": ok, "unsuited": self._skipped}
        with self._reports:
            self._reports.seek(0)
            print_json(head, reports=map(self._text, pairwise(self._ends)))

    def _text(self, ends: tuple[int, int]) -> Iterator[str]:
        """Yield the text of the next report."""
        for begin in range(*ends, _AT_ONCE):
            yield self._reports.read(min(_AT_ONCE, ends[1] - begin)).decode("ascii")
