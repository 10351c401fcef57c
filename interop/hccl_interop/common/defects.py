"""Defects of a source that show without its program."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:  # timing a program does without the verifier
    from hccl_py.verifier import Finding


class Defect(NamedTuple):
    """A defect: the class of its finding, the ranks and the line.

    `is_fatal` where no program can be made of the source, `is_warning` where the program still does
    what is meant.
    """

    name: str
    ranks: tuple[int, ...]
    line: int
    message: str
    hint: str
    is_fatal: bool = False
    is_warning: bool = False

    def finding(self, source: str) -> Finding:
        """Return the defect as a finding at a place, `file:line`."""
        from hccl_py.verifier import Finding, Severity

        return Finding(
            name=self.name,
            message=self.message,
            hint=self.hint,
            severity=Severity.WARNING if self.is_warning else Severity.ERROR,
            ranks=self.ranks,
            source=source,
        )


class HasLines(Protocol):
    """A source whose lines have names, `file:line`."""

    def source(self, line: int) -> str: ...


def findings_of(defects: Iterable[Defect], text: HasLines) -> tuple[Finding, ...]:
    """Return defects as findings at the lines of a file."""
    return tuple(defect.finding(text.source(defect.line)) for defect in defects)
