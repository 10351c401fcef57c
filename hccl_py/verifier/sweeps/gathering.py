"""The findings, failures and notes of a sweep's report, from the outcomes of its calls.

Errors and warnings are listed once per (class, source line), as the smallest call shows them, with
the features that all such calls share; others of this call are counted. Hints are listed only where
they hold in general: in every call that is not trivial and whose line has a task that moves bytes
or synchronises. A synchronisation that is superfluous without data, or between two ranks only, is
no advice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from hccl_py.verifier.classes import Severity
from hccl_py.verifier.finding import Failure, Finding
from hccl_py.verifier.sweeps.common import Ran, common_of

T = TypeVar("T", Finding, Failure)
Key = tuple[object, ...]


@dataclass(frozen=True)
class CallOutcome:
    """The outcome of one call; `busy` are the author's lines with tasks that move bytes or
    synchronise, `notes` those of the verifier.
    """

    ran: Ran
    findings: tuple[Finding, ...] = ()
    failures: tuple[Failure, ...] = ()
    busy: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()


def gathered(
    outcomes: Sequence[CallOutcome],
) -> tuple[list[Finding], tuple[Failure, ...], tuple[str, ...]]:
    """Return findings, failures and notes of a report; `outcomes` have the smallest call first."""
    groups = _grouped(outcomes, lambda o: o.findings, lambda f: (f.name, f.source))
    general = {key: cases for key, cases in groups.items() if _is_general(key, cases, outcomes)}
    findings = [_counting(cases, outcomes) for cases in general.values()]
    broken = _grouped(outcomes, lambda o: o.failures, lambda f: (f.source or f.message,))
    failures = tuple(_first(cases, outcomes)[0] for cases in broken.values())
    return findings, failures, (*_notes(outcomes), *_left_out(len(groups) - len(general)))


def _notes(outcomes: Sequence[CallOutcome]) -> list[str]:
    """Return the verifier's notes, each with the number of calls."""
    counts = Counter(note for outcome in outcomes for note in outcome.notes)
    return [f"{note} ({n} of {len(outcomes)} cases)" for note, n in counts.items()]


def _left_out(hints: int) -> list[str]:
    if not hints:
        return []
    words = "1 hint that holds" if hints == 1 else f"{hints} hints that hold"
    return [f"{words} in some calls only left out"]


def _grouped(
    outcomes: Sequence[CallOutcome],
    pick: Callable[[CallOutcome], tuple[T, ...]],
    key_of: Callable[[T], Key],
) -> dict[Key, dict[int, list[T]]]:
    """Return by key the numbers of the calls that show it, each with its findings or failures."""
    groups: dict[Key, dict[int, list[T]]] = {}
    for number, outcome in enumerate(outcomes):
        for found in pick(outcome):
            groups.setdefault(key_of(found), {}).setdefault(number, []).append(found)
    return groups


def _is_general(key: Key, cases: dict[int, list[Finding]], outcomes: Sequence[CallOutcome]) -> bool:
    """True for errors and warnings, and for hints in every call that could show them."""
    if any(f.severity > Severity.HINT for found in cases.values() for f in found):
        return True
    could = [n for n, outcome in enumerate(outcomes) if _could_show(key[1], outcome)]
    return all(number in cases for number in could)


def _could_show(source: object, outcome: CallOutcome) -> bool:
    return not outcome.ran.case.is_trivial and (source is None or source in outcome.busy)


def _counting(cases: dict[int, list[Finding]], outcomes: Sequence[CallOutcome]) -> Finding:
    first, others = _first(cases, outcomes)
    rest = sum(1 + other.more for other in others)
    alike = partial(_every_of, others, first)
    return first.followed_by(rest, alike) if rest else first


def _every_of(findings: Sequence[Finding], first: Finding) -> Iterator[Finding]:
    """Yield every finding of the call that shows the first one."""
    for finding in findings:
        yield from finding.of_case(first.case, first.common).every()


def _first(cases: dict[int, list[T]], outcomes: Sequence[CallOutcome]) -> tuple[T, list[T]]:
    """Return the first finding or failure of the smallest call, and its others; for hints, of the
    smallest call that is not trivial, if there is one.
    """
    number = min(cases, key=lambda n: (_is_hint(cases[n]) and outcomes[n].ran.case.is_trivial, n))
    common = common_of([o.ran for o in outcomes], [n in cases for n in range(len(outcomes))])
    first = cases[number][0].of_case(outcomes[number].ran.case.text, common)
    return first, cases[number][1:]


def _is_hint(found: Sequence[Finding] | Sequence[Failure]) -> bool:
    return all(isinstance(f, Finding) and f.severity is Severity.HINT for f in found)
