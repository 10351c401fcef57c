"""A foreign program imported for one call: the program, the findings about its source, and the
verifier's findings in the words of the source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple

from hccl_py.errors import DeadlockError, ParameterError
from hccl_py.program.program import Program

if TYPE_CHECKING:  # timing a program does without the verifier
    from hccl_py.topology.presets import Product
    from hccl_py.verifier import Finding, Options, Report

UNVERIFIED = "The program was not verified: it is not whole."


LIMITS_ONLY = "All errors are limits of the runtime: but for these, nothing is wrong."


def _are_limits(findings: Iterable[Finding]) -> bool:
    """True if there are errors, and all are about what the source's runtime refuses."""
    from hccl_py.verifier import Severity

    names = {found.name for found in findings if found.severity is Severity.ERROR}
    return names == {"RUNTIME_LIMIT"}


class ProgramCase(NamedTuple):
    """One of the programs of a call that are verified. `explain` returns a finding of the verifier
    in the words of the source, or None where its author cannot change what the finding is about.
    """

    program: Program
    explain: Callable[[Finding], Finding | None]
    name: str = ""


def _unchanged(finding: Finding) -> Finding:
    return finding


def _unchanged_hang(error: DeadlockError) -> DeadlockError:
    return error


def _explained(explain: Callable[[Finding], Finding | None], finding: Finding) -> Finding:
    return explain(finding) or finding


def _no_findings() -> tuple[Finding, ...]:
    return ()


@dataclass(frozen=True)
class Imported:
    """A call of a source.

    `program` is None where errors of the source leave no program to be made. `own_findings` makes
    the findings about the source itself when they are asked for, `cases` the programs to verify;
    by default that is `program`, with findings explained by `explain`. `product` has the limits
    that the verifier checks unless it is given another product. `unknown` says why the op is not
    known, `printed` is the output of the source's own code.
    """

    title: str
    program: Program | None
    own_findings: Callable[[], tuple[Finding, ...]] = _no_findings
    notes: tuple[str, ...] = ()
    explain: Callable[[Finding], Finding | None] = _unchanged
    cases: Callable[[], Iterator[ProgramCase]] | None = None
    product: Product | None = None
    is_complete: bool = True
    """False if the findings stand against any use of the program but verifying it."""

    unknown: str = ""
    printed: str = ""
    hang: Callable[[DeadlockError], DeadlockError] = _unchanged_hang
    """Returns the error of a program that never ends in the words of the source."""

    verdict_line: Callable[[Report], str] | None = None
    """Makes the line of `check` on one of many sources of a path, in place of a report."""

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """The findings about the source itself."""
        return self.own_findings()

    def require(self) -> Program:
        """Return the program; ParameterError with the worst finding where it cannot be used."""
        if self.program is not None and self.is_complete:
            return self.program
        hint = "`hccl-py check` with the same options shows all findings."
        if not self.findings:
            raise ParameterError(f"{self.title}: {self.notes[0]}", hint)
        worst = min(self.findings, key=lambda finding: finding.key)
        place = worst.source or self.title
        raise ParameterError(f"{place}: {worst.name}: {worst.message}", worst.hint or hint)

    def require_op(self) -> Program:
        """Return the program; ParameterError where its op is not known."""
        program = self.require()
        if self.unknown:
            raise ParameterError(
                f"{self.title}: the op is not known: {self.unknown}.",
                "State it: --op, -d, -o and -r; --op FILE.json has amounts by rank.",
            )
        return program

    def recorded(self) -> Report:
        """Return a report of the findings about the source alone."""
        from hccl_py.verifier import Report

        programs = {} if self.program is None else {"": self.program}
        notes = self.notes if self.program is not None else (*self.notes, UNVERIFIED)
        return Report.of(self.title, self.findings, programs, cases=len(programs), notes=notes)

    def report(self, options: Options | None = None) -> Report:
        """Verify: return the findings about the source and those of the verifier, explained."""
        from hccl_py.verifier import Options, Report, verify_program

        if self.program is None:
            return self.recorded()
        options = options or Options()
        if options.product is None:
            options = replace(options, product=self.product)
        findings, programs, notes, known = [*self.findings], {}, [*self.notes], set()
        for case in self._cases(self.program):
            report = verify_program(case.program, options, self.title)
            programs[case.name] = case.program
            notes += [note for note in report.notes if note not in notes]
            for finding in report.findings:
                key = finding.name, finding.source, finding.message
                is_known = self.cases is not None and key in known
                if is_known or case.explain(finding) is None:
                    continue
                known.add(key)
                explained = finding.changed(partial(_explained, case.explain))
                findings.append(explained.of_case(case.name, "") if case.name else explained)
        if _are_limits(findings):
            notes.append(LIMITS_ONLY)
        return Report.of(self.title, findings, programs, notes=tuple(notes))

    def _cases(self, program: Program) -> Iterator[ProgramCase]:
        if self.cases is None:
            yield ProgramCase(program, self.explain)
        else:
            yield from self.cases()
