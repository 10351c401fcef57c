"""All checks of one program, in one report.

    task by task      bounds, slices, hardware limits, resources
    the walk          deadlocks, leftover posts
    order             races, overruns, loose streams, implied waits: over several copies of the op
    contents          wrong results, undefined reads, dead transfers: over one copy

The report's notes say what other defects have kept from being judged. A call in place is judged for
order and contents in every layout in which IN and OUT may share memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial

import numpy as np

from hccl_py.program.describe import format_ranks
from hccl_py.program.program import Program
from hccl_py.values import IntArray
from hccl_py.verifier.analysis.contents import Contents, contents_of
from hccl_py.verifier.analysis.contents.arrays import Int32s
from hccl_py.verifier.analysis.memory import MemoryIntervals, memory_of
from hccl_py.verifier.analysis.ordering import Ordering, ordering_of
from hccl_py.verifier.analysis.unrolled import Unrolled, unrolled
from hccl_py.verifier.checks.bounds import find_bounds
from hccl_py.verifier.checks.concurrent import find_concurrent
from hccl_py.verifier.checks.deadlocks import find_deadlocks
from hccl_py.verifier.checks.hardware import find_hardware
from hccl_py.verifier.checks.leftovers import find_leftovers
from hccl_py.verifier.checks.notifies import find_implied, find_overruns, find_unordered_connections
from hccl_py.verifier.checks.races import find_races, racing_rows
from hccl_py.verifier.checks.resources import find_resources
from hccl_py.verifier.checks.results import WrongResults, find_silent_ranks, silent_ranks
from hccl_py.verifier.checks.slices import find_slices
from hccl_py.verifier.checks.streams import find_loose_streams, loose_streams
from hccl_py.verifier.checks.undefined import find_clobbers, find_dead, find_undefined
from hccl_py.verifier.checks.unused import find_unused
from hccl_py.verifier.finding import Finding, Report
from hccl_py.verifier.subject import Options, Subject

_CHECKS = (
    find_bounds,
    find_slices,
    find_hardware,
    find_resources,
    find_unused,
    find_leftovers,
    find_concurrent,
)
"""Checks that need the tasks only."""

STUCK = "Results were not judged: the program does not run to its end."
UNKNOWN = "Results were not judged: what the program is to compute is not known."
ONCE = "Only one copy was judged: posts are left over, so that a second one starts wrong."


def verify_program(program: Program, options: Options | None = None, target: str = "") -> Report:
    """Verify a program; the report is named after `target`, by default the executor or the op.

    Raises NotSupportedError where verifying takes more memory than a machine has.
    """
    verification = _Verification(Subject(program, options or Options()))
    findings = list(verification.findings())
    name = target or program.executor or program.op.name
    return Report.of(name, findings, {"": program}, notes=tuple(verification.notes))


@dataclass
class _Verification:
    """One verification, step by step; `notes` say what could not be judged."""

    subject: Subject
    notes: list[str] = field(default_factory=list)

    @cached_property
    def silent(self) -> IntArray:
        """The ranks that issue no task although the op needs them."""
        has_op = self.subject.program.has_op
        return silent_ranks(self.subject) if has_op else np.zeros(0, np.int64)

    def findings(self) -> Iterator[Finding]:
        """Yield all findings, in no particular order."""
        subject, program = self.subject, self.subject.program
        for check in _CHECKS:
            yield from check(subject)
        yield from find_silent_ranks(subject, self.silent)
        once, run = self._runs()
        yield from find_deadlocks(subject, run)
        layouts: list[tuple[str, IntArray | None]] = [] if program.op.in_place else [("", None)]
        layouts += subject.in_place
        yield from _each_once(
            (name, self._of_layout(once, run, shared, is_first=number == 0))
            for number, (name, shared) in enumerate(layouts)
        )

    def _runs(self) -> tuple[Unrolled, Unrolled]:
        """Walk one copy, and all that the options ask for; only one where that ends badly."""
        program, repeat = self.subject.program, len(self.subject.calls)
        once = unrolled(program, 1)
        if len(once.stuck):
            self.notes.append(STUCK if program.has_op else UNKNOWN)
            return once, once
        if not program.has_op:
            self.notes.append(UNKNOWN)
        if len(once.leftover) and repeat > 1 and not program.counts_posts:
            self.notes.append(ONCE)
        elif repeat > 1:
            return once, unrolled(program, repeat)
        return once, once

    def _of_layout(
        self, once: Unrolled, run: Unrolled, shared: IntArray | None, *, is_first: bool
    ) -> Iterator[Finding]:
        """Yield the findings of order and contents in one layout of IN and OUT; those that no
        layout changes only for the first one.
        """
        subject = self.subject
        memory = memory_of(subject, shared)
        meets = subject.program.op.name == "barrier" and is_first
        ordering = ordering_of(run, memory, meets=meets)
        loose = loose_streams(run, ordering)
        queues = loose.queues(subject)
        yield from find_races(subject, run, memory, ordering, queues)
        if is_first:
            yield from find_loose_streams(subject, loose)
            yield from find_overruns(subject, run, ordering, queues)
            yield from find_unordered_connections(subject, run, ordering)
            if not len(once.stuck):
                yield from find_implied(subject, run, ordering.is_implied)
        if not len(once.stuck):
            yield from self._contents(once, memory, shared, racing_rows(run, ordering))
            if meets:
                yield from find_strangers(subject, ordering, self.silent)

    def _contents(
        self, once: Unrolled, memory: MemoryIntervals, shared: IntArray | None, racing: IntArray
    ) -> Iterator[Finding]:
        """Yield the findings of the contents of memory, over one copy."""
        subject = self.subject
        order = once.order[once.order < once.rows]
        contents = contents_of(memory, order)
        if subject.program.has_op:
            yield from self._results(shared, order, contents)
        yield from find_undefined(subject, contents, racing)
        if not memory.is_shared:
            yield from find_dead(subject, contents, racing)

    def _results(
        self, shared: IntArray | None, order: Int32s, contents: Contents
    ) -> Iterator[Finding]:
        subject = self.subject
        wrong = list(WrongResults(subject, self.silent, contents).find())
        if wrong and len(contents.clobbered) and "OUT" in subject.program.buffers:
            apart = memory_of(subject, copied=shared)
            unclobbered = contents_of(apart, order, shared)
            results = WrongResults(subject, self.silent, contents, unclobbered)
            if results.has_clobbered():
                wrong = [*find_clobbers(subject, contents), *results.find()]
        yield from wrong


def _each_once(layouts: Iterable[tuple[str, Iterable[Finding]]]) -> Iterator[Finding]:
    """Yield the findings of several layouts of memory, each as the first one shows it; those about
    memory say which layout that is, where it has a name.
    """
    merged: dict[Finding, Finding] = {}  # by the finding alone, as its layout's check made it
    for name, findings in layouts:
        unknown = _unknown_beside(tuple(merged))
        shown = {}
        for finding in findings:
            alone, others = finding.alone(), partial(unknown, finding)
            if alone in merged:  # `more` stays as the first layout shows it
                merged[alone] = merged[alone].followed_by(0, others)
            else:
                following = alone.followed_by(finding.more, others) if finding.more else alone
                shown[alone] = following.changed(partial(_with_layout, name))
        merged |= shown
    yield from merged.values()


def _with_layout(name: str, finding: Finding) -> Finding:
    if not (name and finding.memory):
        return finding
    return replace(finding, message=f"{finding.message} ({name}.)")


def _unknown_beside(known: Sequence[Finding]) -> Callable[[Finding], Iterator[Finding]]:
    """Return a function that yields the findings that one counts, but for those known already."""

    @cache
    def everything() -> set[Finding]:
        return {one for finding in known for one in finding.every()}

    def unknown(finding: Finding) -> Iterator[Finding]:
        return (one for one in finding.others() if not known or one not in everything())

    return unknown


def find_strangers(subject: Subject, ordering: Ordering, silent: IntArray) -> Iterator[Finding]:
    """Yield MISSING_CONTRIBUTION for ranks that leave a barrier before all have entered it."""
    unknown = ordering.ranks[np.argwhere(ordering.met < 0)]
    unknown = unknown[~np.isin(unknown, silent).any(axis=1)]
    for rank in np.unique(unknown[:, 0]).tolist()[:1]:
        others = unknown[unknown[:, 0] == rank][:, 1].tolist()
        left = np.unique(unknown[:, 0]).tolist()
        yield subject.finding(
            "MISSING_CONTRIBUTION",
            f"Rank {rank} leaves the barrier without knowing that rank {others[0]} has entered it"
            f"{f' (nor {format_ranks(others[1:])})' if len(others) > 1 else ''}.",
            "Every rank must hear, directly or through others, from every other rank.",
            ranks=left,
        )
