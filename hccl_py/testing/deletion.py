"""Is all of an executor's synchronisation needed? Each line is deleted in turn, and must be missed.

A mutant is noticed where the verifier has a warning or error that it does not have for the intact
program. One that goes unnoticed in every call is fine only if all that it deletes is listed as
REDUNDANT_SYNC there. Calls come smallest first, and a mutant that one call has noticed is not tried
again, so that most are verified once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from hccl_py.enums import TaskKind
from hccl_py.program.describe import format_line_of
from hccl_py.program.matching import Queues, queues_of
from hccl_py.program.program import Program
from hccl_py.testing.mutation import Mutant, sync_mutants, words_of_line
from hccl_py.verifier.classes import Severity
from hccl_py.verifier.finding import Report, TaskAt
from hccl_py.verifier.sweeps.cases import Case
from hccl_py.verifier.verifier import verify_program

MOST_RANKS = 6
"""Ranks up to which all layouts are tried; an executor that needs more gets its smallest one."""


class Deletions:
    """The mutants of a few calls that are noticed, and those that are not.

    `kept` names lines, as file.py:number, whose synchronisation is not deleted.
    """

    def __init__(
        self,
        cases: Iterable[Case],
        record: Callable[[Case], Program],
        kept: Iterable[str] = (),
    ) -> None:
        self.noticed: set[str] = set()
        self.unnoticed: dict[str, Unnoticed] = {}
        self._kept = tuple(kept)
        self._both: set[str] = set()
        for case in small_cases(cases):
            self._try(case, Intact(record(case)))

    @property
    def needless(self) -> list[Unnoticed]:
        """The synchronisation that an author could delete.

        An author cannot delete a part of one call that posts and waits, as `exchange` does: its
        tasks count as one.
        """
        return [found for found in self.unnoticed.values() if not self._is_part(found.mutant)]

    def _try(self, case: Case, intact: Intact) -> None:
        self._both |= intact.exchanging_lines
        for mutant in sync_mutants(intact.program):
            if mutant.words in self.noticed or self._is_kept(mutant):
                continue
            if intact.notices(mutant):
                self.noticed.add(mutant.words)
                self.unnoticed.pop(mutant.words, None)
            elif not intact.lists(mutant):
                self.unnoticed.setdefault(mutant.words, Unnoticed(mutant, case)).calls += 1

    def _is_part(self, mutant: Mutant) -> bool:
        return all(
            line in self._both and words_of_line(line) in self.noticed for line in mutant.lines
        )

    def _is_kept(self, mutant: Mutant) -> bool:
        """True if one of the lines, as folder/file.py:number, is listed with or without folder."""
        return any(f"/{line}".endswith(f"/{k}") for line in mutant.lines for k in self._kept)


@dataclass
class Unnoticed:
    """A mutant that goes unnoticed: the smallest call, and the number of calls."""

    mutant: Mutant
    case: Case
    calls: int = 0

    def __str__(self) -> str:
        calls = f"{self.calls} call{'s' if self.calls > 1 else ''}"
        return (
            f"{self.mutant.words}: delete that, and nothing goes wrong in {calls}, the smallest of "
            f"them {self.case.text}. Nothing that conflicts is ordered by it; remove it or say why "
            f'it stays: kept={{"{self.mutant.lines[0]}": "..."}}.'
        )


def small_cases(cases: Iterable[Case]) -> Iterator[Case]:
    """Yield the first call of every kind that is small and leaves no rank without data.

    Calls of one kind share layout, links, mode, size of CCL buffers, and inline reduction.
    """
    full = [case for case in cases if not case.is_trivial and _fills(case)]
    most = max(MOST_RANKS, min((case.topology.size for case in full), default=0))
    seen = set()
    for case in full:
        op, topology = case.op, case.topology
        inline = topology.reduces_inline(op.dtype, op.reduce)
        kind = topology.servers, topology.level0, op.mode, case.ccl_bytes, inline
        if topology.size <= most and kind not in seen:
            seen.add(kind)
            yield case


def _fills(case: Case) -> bool:
    """True if a split, at multiples of 128 bytes, gives every rank a part."""
    return case.op.size > 128 * (case.topology.size - 1)


class Intact:
    """A program as it was recorded, to compare its mutants with."""

    def __init__(self, program: Program) -> None:
        self.program = program

    @cached_property
    def report(self) -> Report:
        """The verifier's report of the program."""
        return verify_program(self.program)

    @property
    def exchanging_lines(self) -> set[str]:
        """The lines that both post and wait, as `exchange` does."""
        table = self.program.tasks.table
        posts, waits = (
            set(table.line[table.kind == kind].tolist())
            for kind in (TaskKind.NOTIFY_POST, TaskKind.NOTIFY_WAIT)
        )
        return {self.program.lines[number] for number in posts & waits if number >= 0}

    def notices(self, mutant: Mutant) -> bool:
        """True if the verifier finds more wrong without the mutant's tasks."""
        report = verify_program(mutant.of(self.program))
        return not report.ok or not _bad(report) <= _bad(self.report)

    def lists(self, mutant: Mutant) -> bool:
        """True if the mutant's tasks are listed as redundant, by the counts of each line."""
        tasks = self.program.tasks
        waits = mutant.rows[tasks.kind[mutant.rows] == TaskKind.NOTIFY_WAIT]
        deleted = Counter(format_line_of(self.program, row) for row in waits.tolist())
        named, counted = Counter[str](), Counter[str]()
        for finding in self.report.of_class("REDUNDANT_SYNC"):
            line = finding.source or ""
            named[line] += self._row(finding.tasks[0]) in mutant.rows
            counted[line] += 1 + finding.more
        return all(named[line] and counted[line] >= n for line, n in deleted.items())

    def _row(self, task: TaskAt) -> int:
        queues = self._queues
        return int(
            queues.rows[queues.first[task.rank * self.program.streams + task.stream] + task.index]
        )

    @cached_property
    def _queues(self) -> Queues:
        return queues_of(self.program)


def _bad(report: Report) -> set[str]:
    return {finding.name for finding in report if finding.severity > Severity.HINT}
