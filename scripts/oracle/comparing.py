"""One call of HCCL's and the same call here: the choice, the tag, the resources and every task."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from hccl_py.errors import HcclError
from hccl_py.plugins.fidelity import Fidelity
from hccl_py.program.program import Program
from hccl_py.selection.answer import Selection
from scripts.oracle.asking import ON_THREADS, REQUESTED, Answer, Request, request_on_threads
from scripts.oracle.calls import GROUP, Case, parameters_of, planner_of
from scripts.oracle.canonical import CLOSENESS, Event, Run, run_of_program, seen

RULESET = "cann-2026.08"

NEIGHBOURS = 3
"""Tasks shown before and after the first one that differs."""

_OP = re.compile(rf"^\w+?_(?={GROUP})")
"""The op that begins a tag; HCCL puts it there before the code that runs in the driver."""

_WORDS = {
    "level1": {2: "ring", 1: "H-D_R", 5: "NHR", 6: "NHR_V1", 7: "NB", 8: "AHC", 9: "AHC_BROKE"},
    "level2": {2: "ring", 1: "H-D_R", 3: "NHR", 4: "NB"},
}
"""AlgTypeLevel1 and AlgTypeLevel2 of HCCL, in HCCL_ALGO's words."""


@dataclass(frozen=True)
class Here:
    """The call here: the selection, and, where a program was recorded, its run and its requests.
    `error` is the reason why there is none.
    """

    selection: Selection | None = None
    run: Run | None = None
    requests: tuple[Request, ...] = ()
    error: str = ""


def recorded_here(case: Case, answer: Answer, ruleset: str = RULESET) -> Here:
    """Select and record a case; a forced executor runs with the algorithms that HCCL's had."""
    selection = None
    try:
        planner, op = planner_of(case, ruleset), parameters_of(case)
        forced = case.get("alg")
        levels = _levels(planner.registry.find(forced).choices, answer) if forced else {}
        selection, _ = planner.select(op, forced, levels)
        program = planner.plan(op, forced, levels).program
    except HcclError as error:
        return Here(selection, error=str(error).replace("\n", " "))
    return Here(selection, run_of_program(program), _requests_of(program))


def _requests_of(program: Program) -> tuple[Request, ...]:
    """Return what every rank of a program asks for."""
    declared, transports = program.declared, program.transports
    if "CCL" not in program.buffers:
        columns = (declared.sub_streams, declared.notifies, declared.scratch_bytes)
        return tuple(zip(*(column.tolist() for column in columns), strict=True))
    channels: list[list[tuple[int, int]]] = [[] for _ in range(program.ranks)]
    ends = (transports.rank, transports.peer, transports.notifies)
    for rank, peer, notifies in zip(*(column.tolist() for column in ends), strict=True):
        channels[rank].append((peer, notifies))
    threads = (
        row[: subs + 1]
        for row, subs in zip(
            declared.local_notifies.tolist(), declared.sub_streams.tolist(), strict=True
        )
    )
    return tuple(
        request_on_threads(row, sorted(asked)) for row, asked in zip(threads, channels, strict=True)
    )


def _levels(choices: Mapping[str, tuple[str, ...]], answer: Answer) -> dict[str, str]:
    """Return the words of a forced executor on the levels that it leaves open."""
    if not answer.levels:
        return {}
    found = dict(zip(("level0", "level1", "level2"), answer.levels[0], strict=True))
    words = {level: _WORDS[level].get(found[level], "") for level in _WORDS}
    return {
        level: word
        for level, word in words.items()
        if len(choices.get(level, ())) > 1 and word in choices[level]
    }


@dataclass(frozen=True)
class Verdict:
    """The comparison of one call.

    `choice` is "same", "both refuse", "HCCL refuses", "refused here" or "different"; `tag` and
    `closeness` are None where there is nothing to compare; `closeness` is the strictest of
    CLOSENESS in which all ranks are equal, "no" where none is. `unequal` names the requests that
    differ: streams, notifies, scratch. `fidelity` is what the call says here.
    """

    answer: Answer
    here: Here
    choice: str
    tag: bool | None = None
    closeness: str | None = None
    unequal: tuple[str, ...] = ()
    fidelity: Fidelity = field(default_factory=lambda: Fidelity("ours", deviation="None runs."))

    @property
    def is_equal(self) -> bool:
        """Whether the choice, the tag, the requests and all tasks between ranks are equal."""
        tasks = self.closeness in (None, "all", "but for local copies")
        return self.choice in ("same", "both refuse") and self.tag is not False and tasks


def compare(answer: Answer, ruleset: str = RULESET) -> Verdict:
    """Compare what HCCL did in a case with what is done here."""
    here = recorded_here(answer.case, answer, ruleset)
    closeness = None
    if answer.run is not None and here.run is not None:
        closeness = closeness_of(here.run, answer.run)
    return verdict(answer, here, closeness)


def verdict(answer: Answer, here: Here, closeness: str | None) -> Verdict:
    """Return the verdict on a call whose tasks are as close as that; None: there are none."""
    choice = _choice(answer, here)
    if here.selection is None or choice != "same":
        return Verdict(answer, here, choice)
    chosen, is_forced = here.selection, "alg" in answer.case
    fidelity, tag = chosen.fidelity, None
    if not is_forced and chosen.executor != chosen.hccl_executor:
        fidelity = Fidelity("ours", deviation="; ".join(chosen.reasons) + ".")
    elif not is_forced and chosen.tag:  # one rank has none here: it asks for nothing
        mine = _OP.sub("", chosen.tag)
        tag = answer.tags[0] == mine and (len(answer.tags) == 1 or answer.case["op"] == "send_recv")
    return Verdict(answer, here, choice, tag, closeness, _unequal(answer, here), fidelity)


def _choice(answer: Answer, here: Here) -> str:
    selected = here.selection
    hccl_refuses, is_forced = not answer.executors, "alg" in answer.case
    if selected is None:
        return "both refuse" if hccl_refuses else "refused here"
    on_threads = answer.case["product"] == ON_THREADS
    refused_here = not (selected.executor if on_threads and is_forced else selected.hccl_executor)
    if hccl_refuses or refused_here:
        if hccl_refuses and refused_here:
            return "both refuse"
        return "HCCL refuses" if hccl_refuses else "refused here"
    wanted = selected.executor if is_forced else selected.hccl_executor
    return "same" if wanted in answer.executors else "different"


def _unequal(answer: Answer, here: Here) -> tuple[str, ...]:
    if not answer.requests or not here.requests:
        return ()
    names = REQUESTED[len(here.requests[0])]
    mine, theirs = zip(*here.requests, strict=True), zip(*answer.requests, strict=True)
    return tuple(
        name for name, own, wanted in zip(names, mine, theirs, strict=True) if own != wanted
    )


def closeness_of(mine: Run, hccls: Run) -> str:
    """Return the strictest way to compare in which two runs are equal."""
    for closeness in CLOSENESS:
        if seen(mine, closeness) == seen(hccls, closeness):
            return closeness
    return "no"


def first_differences(mine: Run, hccls: Run, closeness: str) -> Iterator[str]:
    """Yield for every stream of every rank that differs its first different task, both here and
    in HCCL, with the tasks before and after it.
    """
    none: list[Any] = []
    pairs = zip_longest(seen(mine, closeness), seen(hccls, closeness), fillvalue=none)
    for rank, (own, wanted) in enumerate(pairs):
        for stream, (x, y) in enumerate(zip_longest(own, wanted, fillvalue=none)):
            if x != y:
                yield _difference(rank, stream, x, y)


def _difference(rank: int, stream: int, own: Sequence[Event], wanted: Sequence[Event]) -> str:
    both = enumerate(zip(own, wanted, strict=False))
    at = next((i for i, (x, y) in both if x != y), min(len(own), len(wanted)))
    name = "main" if stream == 0 else f"sub {stream}"
    lines = [f"rank {rank} {name}: task {at} differs ({len(own)} here, {len(wanted)} in HCCL)"]
    for title, events in (("here", own), ("HCCL", wanted)):
        for i in range(max(0, at - NEIGHBOURS), at + NEIGHBOURS + 1):
            text = str(events[i]) if i < len(events) else "(no task)"
            if i <= len(events):
                lines.append(f"  {title} {'>' if i == at else ' '} {i:4} {text}")
    return "\n".join(lines)
