"""Findings of the verifier, one value each, and the report that holds them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from hccl_py.program.program import Program
from hccl_py.verifier.classes import CLASSES, Severity

if TYPE_CHECKING:
    from hccl_py.verifier.numeric import NumericResult

_RANKS = {name: number for number, name in enumerate(CLASSES)}


@dataclass(frozen=True, order=True)
class TaskAt:
    """A task by rank, stream and position on the stream, all from 0; later copies of the op count
    on.
    """

    rank: int
    stream: int
    index: int

    def __str__(self) -> str:
        return f"r{self.rank}.s{self.stream}.t{self.index}"


class MemoryRange(NamedTuple):
    """Bytes start .. stop of one buffer of one rank; the buffer's name is that of program files."""

    rank: int
    buffer: str
    start: int
    stop: int

    def __str__(self) -> str:
        return f"rank {self.rank} {self.buffer}[{self.start}:{self.stop}]"


@dataclass(frozen=True)
class Finding:
    """One defect, or a hint.

    `name` is the class (classes.py). `tasks` has the culprit first, `source` the author's line of
    the culprit as file:line. `repeat` is the copy of the op in which it shows, from 1, and
    `between_calls` says that it takes two calls in a row without synchronisation to show it. Where
    an executor was swept, `case` is the call that shows it and `common` the features that all such
    calls share. A program can be wrong a million times, so findings of the same class at the same
    lines are only counted in `more`; `every` makes them, too.
    """

    name: str
    message: str
    hint: str = ""
    severity: Severity = Severity.ERROR
    tasks: tuple[TaskAt, ...] = ()
    memory: tuple[MemoryRange, ...] = ()
    ranks: tuple[int, ...] = ()
    repeat: int = 1
    between_calls: bool = False
    source: str | None = None
    more: int = 0
    case: str = ""
    common: str = ""
    _others: tuple[Callable[[], Iterable[Finding]], ...] = field(
        default=(), compare=False, repr=False
    )

    def others(self) -> Iterator[Finding]:
        """Yield the findings that this one only counts, made one by one."""
        for others in self._others:
            for finding in others():
                if finding._others:
                    yield from finding.every()
                else:
                    yield finding.alone()

    def every(self) -> Iterator[Finding]:
        """Yield this finding and those that it only counts."""
        yield self.alone()
        yield from self.others()

    def followed_by(self, more: int, others: Callable[[], Iterable[Finding]]) -> Finding:
        """Return this finding counting `more` others, which a function makes."""
        return replace(self, more=self.more + more, _others=(*self._others, others))

    def changed(self, change: Callable[[Finding], Finding]) -> Finding:
        """Return this finding changed, and those that it counts when they are made."""
        if not (self.more or self._others):
            return change(self)
        others = (lambda: map(change, self.others()),) if self._others else ()
        return replace(change(self), more=self.more, _others=others)

    def of_case(self, case: str, common: str) -> Finding:
        """Return this finding of a call, with the features that all such calls share."""
        return self.changed(lambda finding: replace(finding, case=case, common=common))

    def alone(self) -> Finding:
        """Return this finding without those that it counts."""
        return replace(self, more=0, _others=()) if self.more or self._others else self

    def released(self) -> Finding:
        """Return this finding, still counting others but unable to make them, to free memory."""
        return replace(self, _others=())

    @property
    def key(self) -> tuple[int, int]:
        """The sort key of findings: worst first, then in the order of classes.py."""
        return -self.severity, _RANKS[self.name]

    def document(self) -> dict[str, Any]:
        """Return the finding as an object of a `hccl-py.check/1` document."""
        found: dict[str, Any] = {
            "class": self.name,
            "severity": self.severity.spelling,
            "tasks": [str(task) for task in self.tasks],
            "memory": [memory._asdict() for memory in self.memory],
            "ranks": list(self.ranks),
            "repeat": self.repeat,
            "between_calls": self.between_calls,
            "source": self.source,
            "message": self.message,
            "hint": self.hint,
        }
        if self.case:
            found |= {"case": self.case, "common": self.common}
        return found


@dataclass(frozen=True)
class Failure:
    """A defect of an executor without a class: it raises, or records differently rank by rank."""

    message: str
    hint: str = ""
    source: str | None = None
    case: str = ""
    common: str = ""

    def of_case(self, case: str, common: str) -> Failure:
        """Return this failure of a call, with the features that all such calls share."""
        return replace(self, case=case, common=common)

    def document(self) -> dict[str, Any]:
        """Return the failure as an entry of `failures` of a report."""
        return {
            "message": self.message,
            "hint": self.hint,
            "source": self.source,
            "case": self.case,
            "common": self.common,
        }


@dataclass(frozen=True, eq=False)
class Report:
    """All findings about one target, worst first.

    `programs` has the program of every case that findings refer to (key: `Finding.case`; "" where a
    program was verified alone), for drawing the tasks around a culprit. `cases` is the number of
    calls verified. `notes` say what could not be judged, and why. `failures` are errors of a swept
    executor outside of all classes, `numeric` the result of running with data, where it was asked
    for. A report about nothing is not ok.
    """

    target: str
    findings: tuple[Finding, ...]
    programs: dict[str, Program]
    cases: int = 1
    notes: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = ()
    numeric: NumericResult | None = None

    @staticmethod
    def of(
        target: str, findings: Iterable[Finding], programs: dict[str, Program], **rest: Any
    ) -> Report:
        """Sort findings into a report."""
        return Report(target, tuple(sorted(findings, key=lambda f: f.key)), programs, **rest)

    @cached_property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that make the report fail."""
        return tuple(f for f in self.findings if f.severity is Severity.ERROR)

    @property
    def ok(self) -> bool:
        """True if there is no error; warnings and hints are fine."""
        wrong = self.errors or self.failures or (self.numeric is not None and not self.numeric.ok)
        return self.cases > 0 and not wrong

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def every(self) -> Iterator[Finding]:
        """Yield every finding, also those that others only count, made one by one."""
        for finding in self.findings:
            yield from finding.every()

    @cached_property
    def only_between_calls(self) -> tuple[Finding, ...]:
        """The findings between calls whose class no single call shows at the same line; none in a
        sweep, as executors are meant to be called repeatedly.
        """
        if "" not in self.programs:
            return ()
        inside = {(f.name, f.source) for f in self.findings if not f.between_calls}
        between = (f for f in self.findings if f.between_calls)
        return tuple(f for f in between if (f.name, f.source) not in inside)

    def of_class(self, name: str) -> tuple[Finding, ...]:
        """Return the findings of one class."""
        assert name in CLASSES, name
        return tuple(f for f in self.findings if f.name == name)

    def document(self) -> dict[str, Any]:
        """Return the report as an entry of `reports` of a `hccl-py.check/1` document."""
        return {**self._head, "findings": [finding.document() for finding in self.every()]}

    def json(self) -> Iterator[str]:
        """Yield the document as JSON, finding by finding: there may be a million of them."""
        yield json.dumps(self._head).removesuffix("}") + ', "findings": ['
        separator = ""
        for finding in self.every():
            yield separator + json.dumps(finding.document())
            separator = ", "
        yield "]}"

    @property
    def _head(self) -> dict[str, Any]:
        head: dict[str, Any] = {
            "target": self.target,
            "ok": self.ok,
            "cases": self.cases,
            "notes": list(self.notes),
        }
        if self.failures:
            head["failures"] = [failure.document() for failure in self.failures]
        if self.numeric is not None:
            head["numeric"] = self.numeric.document()
        return head

    def renamed(self, target: str) -> Report:
        """Return the report under another target's name."""
        return replace(self, target=target)

    def _repr_html_(self) -> str:
        from hccl_py.verifier.page import report_html

        return report_html(self)

    def __bool__(self) -> bool:
        raise TypeError("a report is neither true nor false: look at report.ok or report.findings")
