"""From the outcomes of a sweep to what its report lists.

Errors and warnings are listed once per (class, source line), as the smallest call shows them, with
what the calls that show them have in common; what else this call shows is counted. Hints are listed
only where they hold in general: in every call that is not trivial and whose line has a task that
moves bytes or synchronises. A synchronisation that is superfluous without data, or between two
ranks only, is no advice.
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
    """What came of one call; `busy` are the author's lines that do something in it, `notes` those
    of the verifier.
    """

    ran: Ran
    findings: tuple[Finding, ...] = ()
    failures: tuple[Failure, ...] = ()
    busy: frozenset[str] = frozenset()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Gathered:
    """What a report lists."""

    findings: tuple[Finding, ...]
    failures: tuple[Failure, ...]
    notes: tuple[str, ...]


def gathered(outcomes: Sequence[CallOutcome]) -> Gathered:
    """Group the outcomes, smallest call first."""
    groups = _grouped(outcomes, lambda o: o.findings, lambda f: (f.name, f.source))
    general = {key: cases for key, cases in groups.items() if _is_general(key, cases, outcomes)}
    findings = [_kept(cases, outcomes) for cases in general.values()]
    broken = _grouped(outcomes, lambda o: o.failures, lambda f: (f.source or f.message,))
    failures = [_first(cases, outcomes)[0] for cases in broken.values()]
    notes = [*_noted(outcomes), *_left_out(len(groups) - len(general))]
    return Gathered(tuple(findings), tuple(failures), tuple(notes))


def _noted(outcomes: Sequence[CallOutcome]) -> list[str]:
    """Return what the verifier noted, and of how many calls."""
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
    """Return for every key the numbers of the calls that show it, and what they show."""
    groups: dict[Key, dict[int, list[T]]] = {}
    for number, outcome in enumerate(outcomes):
        for found in pick(outcome):
            groups.setdefault(key_of(found), {}).setdefault(number, []).append(found)
    return groups


def _is_general(key: Key, cases: dict[int, list[Finding]], outcomes: Sequence[CallOutcome]) -> bool:
    """Whether to list a group: all but hints, and hints that every call shows that could."""
    if any(f.severity > Severity.HINT for found in cases.values() for f in found):
        return True
    could = [n for n, outcome in enumerate(outcomes) if _could_show(key[1], outcome)]
    return all(number in cases for number in could)


def _could_show(source: object, outcome: CallOutcome) -> bool:
    return not outcome.ran.case.is_trivial and (source is None or source in outcome.busy)


def _kept(cases: dict[int, list[Finding]], outcomes: Sequence[CallOutcome]) -> Finding:
    first, others = _first(cases, outcomes)
    rest = sum(1 + other.more for other in others)
    alike = partial(_every_of, others, first)
    return first.followed_by(rest, alike) if rest else first


def _every_of(findings: Sequence[Finding], first: Finding) -> Iterator[Finding]:
    """Yield every finding of the call that shows the first one."""
    for finding in findings:
        yield from finding.of_case(first.case, first.common).every()


def _first(cases: dict[int, list[T]], outcomes: Sequence[CallOutcome]) -> tuple[T, list[T]]:
    """Return what the smallest call shows first, and the rest of what it shows.

    Of calls that show a hint, one that is not trivial comes before all others.
    """
    number = min(cases, key=lambda n: (_is_hint(cases[n]) and outcomes[n].ran.case.is_trivial, n))
    common = common_of([o.ran for o in outcomes], [n in cases for n in range(len(outcomes))])
    first = cases[number][0].of_case(outcomes[number].ran.case.text, common)
    return first, cases[number][1:]


def _is_hint(found: Sequence[Finding] | Sequence[Failure]) -> bool:
    return all(isinstance(f, Finding) and f.severity is Severity.HINT for f in found)
