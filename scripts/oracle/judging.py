"""The judgement on golden runs: which calls differ and why, and what the others prove."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from hccl_py.plugins.fidelity import Fidelity, Proof
from scripts.oracle.calls import words_of
from scripts.oracle.canonical import Run
from scripts.oracle.comparing import Verdict
from scripts.oracle.golden import (
    BETWEEN_RANKS,
    WITH_COPIES,
    Golden,
    compare_golden,
    executor_of,
)


@dataclass(frozen=True)
class Judged:
    """The judgement on one golden run. `executor` is what runs here; `closeness` and `fidelity`
    are those of the verdict, whose runs are not kept; `problem` is the first thing that differs, ""
    where nothing does that is said to be the same; `cause` and `why` are for all calls with the
    problem; `source` names HCCL's code.
    """

    words: str
    executor: str
    closeness: str | None
    fidelity: Fidelity
    problem: str = ""
    cause: str = ""
    why: str = ""
    copies: frozenset[str] = frozenset()
    source: str = ""

    @property
    def is_proof(self) -> bool:
        """Whether it is equal in every task and says so."""
        return self.closeness is not None and self.fidelity.is_same and not self.problem

    @property
    def outcome(self) -> str:
        """What the call came to."""
        closeness = self.closeness
        if self.problem:
            return "differ"
        if closeness is None:
            return "choice and tag equal, no tasks"
        if closeness != "no":
            return "equal" if closeness == WITH_COPIES else f"equal {closeness}"
        return f"tasks differ as the executor says: {self.fidelity.kind}"


def judge(golden: Golden) -> Judged:
    """Return the judgement on a golden run."""
    found, where = compare_golden(golden)
    chosen, case = found.here.selection, golden.answer.case
    executor = case.get("alg") or (chosen.executor if chosen else "")
    problem = _problem(found, where)
    words, how = words_of(case), (found.closeness, found.fidelity)
    if problem:
        return Judged(words, executor, *how, problem, *_cause(golden, found, problem))
    copies: frozenset[str] = frozenset()
    if found.closeness == BETWEEN_RANKS and golden.run and found.here.run:
        copies = frozenset(copies_differ(found.here.run, golden.run))
    return Judged(words, executor, *how, copies=copies, source=golden.source)


def judge_all(goldens: Iterable[Golden]) -> Iterator[Judged]:
    """Yield the judgements on golden runs."""
    return map(judge, goldens)


def _problem(found: Verdict, where: str) -> str:
    """Return the first thing that differs. `where` is the first stream whose tasks differ. Scratch
    is left open: docs/fidelity.md.
    """
    answer, here = found.answer, found.here
    if found.choice not in ("same", "both refuse"):
        wanted = " ".join(answer.executors) or answer.refusal
        chosen = here.selection.hccl_executor if here.selection else here.error
        return f"choice: HCCL takes {wanted}, hccl-py {chosen}"
    if found.tag is False and here.selection is not None:
        return f"tag: HCCL's is {answer.tags}, hccl-py's {here.selection.tag!r}"
    if found.closeness is None or not found.fidelity.is_same:
        return ""
    if where:
        return f"tasks: {where}"
    asked = [name for name in found.unequal if name != "scratch"]
    return f"requests: {', '.join(asked)}" if asked else ""


# ---- causes ----

_Holds = Callable[[Golden, Verdict], bool]


def _is_typed(golden: Golden, found: Verdict) -> bool:
    return found.choice == "refused here" and found.here.selection is None


def _is_refused_above(golden: Golden, found: Verdict) -> bool:
    chosen = found.here.selection
    refused = found.choice == "refused here" and chosen is not None
    return refused and chosen is not None and "hccl_communicator_host" in chosen.source


def _crashes(golden: Golden, found: Verdict) -> bool:
    return golden.answer.refusal.startswith("crashes")


CAUSES: tuple[tuple[str, str, _Holds], ...] = (
    (
        "choice: data types and reductions that the API refuses",
        "hccl-py refuses what HCCL's documents leave out, and what its API and its communicator "
        "refuse before an operator chooses (framework/common/src/param_check.cc:327, "
        "impl/hccl_communicator_host.cc:982); the driver begins with the operator.",
        _is_typed,
    ),
    (
        "choice: ops that the communicator refuses",
        "HCCL's communicator refuses reduce, scatter and all_to_all_vc on 310P3 "
        "(impl/hccl_communicator_host.cc:3402, :3673, :3782), as hccl-py does; the driver begins "
        "with the operator, which chooses.",
        _is_refused_above,
    ),
    (
        "choice: calls in which HCCL crashes",
        "HCCL's executor reads through a link that its plane does not have, with AHC on 910A.",
        _crashes,
    ),
)
"""Causes of differences: a name, a reason, and whether a call has it."""


def _cause(golden: Golden, found: Verdict, problem: str) -> tuple[str, str]:
    for name, why, holds in CAUSES:
        if holds(golden, found):
            return name, why
    return f"{problem.partition(':')[0]}: {executor_of(golden.answer) or 'HCCL refuses'}", ""


def differences(judged: Iterable[Judged]) -> dict[str, Any]:
    """Return the number of calls by outcome, and the words of all that differ, by cause, each with
    the reason.
    """
    outcomes: Counter[str] = Counter()
    causes: dict[str, Any] = {}
    for one in judged:
        outcomes[one.outcome] += 1
        if one.problem:
            cause = causes.setdefault(one.cause, {"why": one.why, "calls": []})
            cause["calls"].append(one.words)
    for cause in causes.values():
        cause["calls"].sort()
    return {"outcomes": dict(sorted(outcomes.items())), "causes": dict(sorted(causes.items()))}


# ---- proofs ----


def proofs_of(judged: Iterable[Judged]) -> dict[str, Proof]:
    """Return what the calls prove, by executor that runs here."""
    calls: dict[str, list[Judged]] = defaultdict(list)
    for one in judged:
        if one.is_proof:
            calls[one.executor].append(one)
    return {name: _proof(of) for name, of in sorted(calls.items())}


def _proof(calls: list[Judged]) -> Proof:
    nearly = [one for one in calls if one.closeness == BETWEEN_RANKS]
    ways = sorted({way for one in nearly for way in one.copies})
    return Proof(
        calls[0].source, len(calls), len(nearly), ", ".join(ways or [OTHER]) if nearly else ""
    )


OTHER = "other copies or buffers"
"""How copies differ in an executor of which no whole run shows it."""


def copies_differ(mine: Run, hccls: Run) -> Iterator[str]:
    """Yield how the copies and reductions inside ranks differ, where all else is equal."""
    own, wanted = _sizes_inside(mine), _sizes_inside(hccls)
    if len(own) != len(wanted):
        yield "fewer copies here" if len(own) < len(wanted) else "more copies here"
    elif sorted(own) != sorted(wanted):
        yield "copies of other sizes"
    elif own != wanted:
        yield "copies in another order"
    else:
        yield "other buffers"


def _sizes_inside(run: Run) -> list[tuple[str, int]]:
    """Return the kinds and sizes of copies and reductions inside the ranks, in order."""
    events = (event for rank in run for stream in rank for event in stream)
    return [(event.kind, event.size) for event in events if event.size and event.peer is None]
