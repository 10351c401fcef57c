"""All checks of one program, in one report.

    task by task      bounds, slices, hardware limits, resources
    the walk          deadlocks, leftover posts
    order             races, overruns, loose streams, implied waits: over several copies of the op
    contents          wrong results, undefined reads, dead transfers: over one copy

What cannot be judged because something else is wrong is said in the report's notes. A call in place
is judged for order and contents with IN and OUT in the same memory, in every way that they may be.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from hccl_py.program.program import Program
from hccl_py.values import IntArray
from hccl_py.verifier.analysis.contents import Contents, contents_of
from hccl_py.verifier.analysis.meaning import in_place_offsets
from hccl_py.verifier.analysis.memory import Memory, memory_of
from hccl_py.verifier.analysis.ordering import Ordering, ordering_of
from hccl_py.verifier.analysis.unrolled import Unrolled, unrolled
from hccl_py.verifier.checks.bounds import find_bounds
from hccl_py.verifier.checks.concurrent import find_concurrent
from hccl_py.verifier.checks.culprits import spell_ranks
from hccl_py.verifier.checks.deadlocks import find_deadlocks
from hccl_py.verifier.checks.hardware import find_hardware
from hccl_py.verifier.checks.leftovers import find_leftovers
from hccl_py.verifier.checks.notifies import find_implied, find_overruns, find_unordered_connections
from hccl_py.verifier.checks.races import find_races, racing_rows
from hccl_py.verifier.checks.resources import find_resources
from hccl_py.verifier.checks.results import find_silent_ranks, find_wrong_results, silent_ranks
from hccl_py.verifier.checks.slices import find_slices
from hccl_py.verifier.checks.streams import find_loose_streams
from hccl_py.verifier.checks.undefined import find_clobbers, find_dead, find_undefined
from hccl_py.verifier.checks.unused import find_unused
from hccl_py.verifier.finding import Finding, Report
from hccl_py.verifier.subject import Options, Subject

__all__ = ["verify_program"]

_CHECKS = (
    find_bounds,
    find_slices,
    find_hardware,
    find_resources,
    find_unused,
    find_leftovers,
    find_concurrent,
)
"""What needs the tasks only."""

STUCK = "Results were not judged: the program does not run to its end."
ONCE = "Only one copy was judged: posts are left over, so that a second one starts wrong."


def verify_program(program: Program, options: Options | None = None, target: str = "") -> Report:
    """Verify a program; the report is named after `target`, by default the executor or the op.

    Raises NotSupportedError where verifying takes more memory than a machine has.
    """
    judge = _Judge(Subject(program, options or Options()))
    findings = list(judge.findings())
    name = target or program.executor or program.op.name
    return Report.of(name, findings, {"": program}, notes=tuple(judge.notes))


@dataclass
class _Judge:
    """One verification, step by step."""

    subject: Subject
    notes: list[str] = field(default_factory=list)

    @cached_property
    def silent(self) -> IntArray:
        """The ranks that issue nothing and should."""
        return silent_ranks(self.subject)

    def findings(self) -> Iterator[Finding]:
        """Yield everything that is found, in no particular order."""
        subject, program = self.subject, self.subject.program
        for check in _CHECKS:
            yield from check(subject)
        yield from find_silent_ranks(subject, self.silent)
        once, run = self._runs()
        yield from find_deadlocks(subject, run)
        if not program.op.in_place:
            yield from self._judged(once, run, None, is_first=True)
        if program.op.in_place or subject.options.in_place:
            yield from self._in_place(once, run)

    def _runs(self) -> tuple[Unrolled, Unrolled]:
        """Walk one copy, and as many as make sense: only one where the first does not end well."""
        program, repeat = self.subject.program, len(self.subject.calls)
        once = unrolled(program, 1)
        if len(once.stuck):
            self.notes.append(STUCK)
        elif len(once.leftover) and repeat > 1:
            self.notes.append(ONCE)
        elif repeat > 1:
            return once, unrolled(program, repeat)
        return once, once

    def _judged(
        self, once: Unrolled, run: Unrolled, shared: IntArray | None, *, is_first: bool
    ) -> Iterator[Finding]:
        """Yield what order and contents show; only the first time what is the same wherever IN and
        OUT lie.
        """
        subject = self.subject
        memory = memory_of(subject, shared)
        meets = subject.program.op.name == "barrier" and is_first
        ordering = ordering_of(run, memory, meets=meets)
        loose = list(find_loose_streams(subject, run, ordering))
        yield from _without_loose(find_races(subject, run, memory, ordering), loose)
        if is_first:
            yield from loose
            yield from _without_loose(find_overruns(subject, run, ordering), loose)
            yield from find_unordered_connections(subject, run, ordering)
            if not len(once.stuck):
                yield from find_implied(subject, run, ordering.is_implied)
        if not len(once.stuck):
            contents = contents_of(memory, once.order[once.order < once.rows])
            yield from self._results(memory, contents, racing_rows(run, ordering))
            if meets:
                yield from find_strangers(subject, ordering, self.silent)

    def _results(self, memory: Memory, contents: Contents, racing: IntArray) -> Iterator[Finding]:
        subject = self.subject
        wrong = list(find_wrong_results(subject, memory, contents, self.silent))
        clobbers = list(find_clobbers(subject, memory, contents)) if wrong else []
        yield from clobbers or wrong  # what a clobber makes wrong has its finding
        yield from find_undefined(subject, memory, contents, racing)
        if not memory.is_shared:
            yield from find_dead(subject, memory, contents, racing)

    def _in_place(self, once: Unrolled, run: Unrolled) -> Iterator[Finding]:
        """Yield what is wrong in place, once for all ways that show the same."""
        program, seen = self.subject.program, set()
        ways = in_place_offsets(program.op, program.ranks)
        for number, (way, offsets) in enumerate(ways):
            is_first = program.op.in_place and number == 0
            for finding in self._judged(once, run, offsets, is_first=is_first):
                key = finding.name, finding.tasks or finding.memory
                if key not in seen:
                    seen.add(key)
                    depends = len(ways) > 1 and finding.memory
                    said = f"{finding.message} ({way}.)" if depends else finding.message
                    yield replace(finding, message=said)


def _without_loose(findings: Iterable[Finding], loose: list[Finding]) -> Iterator[Finding]:
    """Leave out what streams that are known to be loose do to their own rank: races with the
    caller, and local notifies that are used again in the next op.
    """
    streams = {(finding.tasks[0].rank, finding.tasks[0].stream) for finding in loose}
    for finding in findings:
        stays = len({task.rank for task in finding.tasks}) == 1
        alone = len(finding.tasks) == 1 or (finding.name == "NOTIFY_OVERRUN" and finding.repeat > 1)
        if not (stays and alone and streams & {(t.rank, t.stream) for t in finding.tasks}):
            yield finding


def find_strangers(subject: Subject, ordering: Ordering, silent: IntArray) -> Iterator[Finding]:
    """Yield MISSING_CONTRIBUTION for ranks that leave a barrier before all have entered it."""
    unknown = np.argwhere(ordering.met < 0)
    unknown = unknown[~np.isin(unknown, silent).any(axis=1)]
    for rank in np.unique(unknown[:, 0]).tolist()[:1]:
        others = unknown[unknown[:, 0] == rank][:, 1].tolist()
        left = np.unique(unknown[:, 0]).tolist()
        yield subject.finding(
            "MISSING_CONTRIBUTION",
            f"Rank {rank} leaves the barrier without knowing that rank {others[0]} has entered it"
            f"{f' (nor {spell_ranks(others[1:])})' if len(others) > 1 else ''}.",
            "Every rank must hear, directly or through others, from every other rank.",
            ranks=left,
        )
