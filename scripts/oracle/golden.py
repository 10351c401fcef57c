"""Golden runs: what HCCL did in many calls, small enough to keep beside the tests.

A file has a line of JSON that says where it comes from, then one for every call: its case, what
HCCL chose, its tag and requests, and four characters for the events of every stream of every rank
(`digest`, at the closeness BETWEEN_RANKS), and for all of them with the copies inside a rank.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from scripts.oracle.asking import Answer, Request
from scripts.oracle.calls import Case, words_of
from scripts.oracle.canonical import Run, digest, seen
from scripts.oracle.comparing import RULESET, Verdict, recorded_here, verdict

BETWEEN_RANKS, WITH_COPIES = "but for local copies", "all"

MOST_TASKS = 60_000
"""Calls with more tasks than this are left out: they take longer to compare than all others."""

Digests = list[list[str]]
"""By rank, by stream."""


@dataclass(frozen=True)
class Golden:
    """What HCCL did in one call. `streams` is None where it ran no task; `copies` stands for every
    task of all ranks, copies inside a rank and names of buffers too.
    """

    answer: Answer
    streams: Digests | None
    copies: str


def digests_of(run: Run) -> Digests:
    """Return the digests of every stream of every rank."""
    return [_trimmed([digest(events) for events in rank]) for rank in seen(run, BETWEEN_RANKS)]


def copies_of(run: Run) -> str:
    """Return one digest for all tasks of a run."""
    return digest(event for rank in seen(run, WITH_COPIES) for stream in rank for event in stream)


def _trimmed(streams: list[str]) -> list[str]:
    while streams and not streams[-1]:
        streams.pop()
    return streams


def task_count(answer: Answer) -> int:
    """Return the number of tasks of all ranks."""
    return sum(len(stream) for rank in answer.tasks or () for stream in rank)


def write_golden(path: Path, source: str, answers: Iterable[Answer]) -> int:
    """Write the golden runs of some answers, made by HCCL's code at commit `source`; return their
    number.
    """
    count = 0
    with gzip.GzipFile(path, "wb", mtime=0) as file:
        file.write(json.dumps({"source": source}).encode() + b"\n")
        for answer in answers:
            file.write(json.dumps(_line(answer), separators=(",", ":")).encode() + b"\n")
            count += 1
    return count


def _line(answer: Answer) -> dict[str, Any]:
    run = answer.run
    case = {key: value for key, value in answer.case.items() if key not in ("id", "check")}
    found: dict[str, Any] = {"case": case, "executors": answer.executors, "tags": answer.tags}
    found |= {"levels": answer.levels, "requests": _repeated(answer.requests)}
    found |= {"refusal": answer.refusal} if answer.refusal else {}
    if run is not None:
        found |= {"copies": copies_of(run), "streams": _repeated(map(" ".join, digests_of(run)))}
    return found


def _repeated(values: Iterable[Any]) -> list[list[Any]]:
    """Return runs of equal values, each with its length."""
    found: list[list[Any]] = []
    for value in values:
        if found and found[-1][0] == value:
            found[-1][1] += 1
        else:
            found.append([value, 1])
    return found


def _spread(runs: Iterable[list[Any]]) -> Iterator[Any]:
    return (value for value, times in runs for _ in range(times))


def read_golden(path: Path) -> tuple[str, list[Golden]]:
    """Return the commit of HCCL's code and the golden runs of a file."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        source = str(json.loads(file.readline())["source"])
        return source, [_golden(json.loads(line)) for line in file]


def _golden(found: dict[str, Any]) -> Golden:
    case: Case = found["case"]
    requests: list[Request] = [tuple(request) for request in _spread(found["requests"])]
    answer = Answer(
        case,
        tuple(found["executors"]),
        tuple(found["tags"]),
        tuple(map(tuple, found["levels"])),
        found.get("refusal", ""),
        tuple(requests),
    )
    streams = found.get("streams")
    ranks = None if streams is None else [_split(text) for text in _spread(streams)]
    return Golden(answer, ranks, found.get("copies", ""))


def _split(text: str) -> list[str]:
    """Return the digests of a rank, none for one that does nothing with others."""
    return text.split(" ") if text else []


def compare_golden(golden: Golden, ruleset: str = RULESET) -> tuple[Verdict, str]:
    """Compare a golden run with the same call here; return the verdict, and the first stream that
    differs with the words that show its tasks.
    """
    here = recorded_here(golden.answer.case, golden.answer, ruleset)
    if golden.streams is None or here.run is None:
        return verdict(golden.answer, here, None), ""
    mine = digests_of(here.run)
    if copies_of(here.run) == golden.copies:
        return verdict(golden.answer, here, WITH_COPIES), ""
    if mine == golden.streams:
        return verdict(golden.answer, here, BETWEEN_RANKS), ""
    where = _first_difference(mine, golden.streams)
    words = words_of(golden.answer.case)
    text = f"{where} differs: python scripts/oracle compare {words} --ranks {len(mine)}"
    return verdict(golden.answer, here, "no"), text


def _first_difference(mine: Digests, hccls: Digests) -> str:
    none: list[str] = []
    for rank, (own, wanted) in enumerate(zip_longest(mine, hccls, fillvalue=none)):
        for stream, (x, y) in enumerate(zip_longest(own, wanted, fillvalue="")):
            if x != y:
                return f"rank {rank} {'main' if stream == 0 else f'sub {stream}'}"
    return "nothing"


def executor_of(golden: Golden) -> str:
    """Return the executor that HCCL ran, "" where it refused."""
    forced = golden.answer.case.get("alg")
    return str(forced) if forced else next(iter(golden.answer.executors), "")


def problem_of(found: Verdict, where: str) -> str:
    """Return the first thing that differs in a call; "" where nothing does that it says to be the
    same. `where` is the first stream whose tasks differ. Scratch is left open: docs/fidelity.md.
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
    asked = [name for name in found.unequal if name != "scratch"]
    if where:
        return f"tasks: {where}"
    return f"requests: {', '.join(asked)}" if asked else ""


def different_calls(goldens: Iterable[Golden]) -> dict[str, list[str]]:
    """Return the words of all calls that differ, by what differs and by executor."""
    found: dict[str, list[str]] = {}
    for golden in goldens:
        verdict_, where = compare_golden(golden)
        problem = problem_of(verdict_, where)
        if problem:
            cause = f"{problem.partition(':')[0]}: {executor_of(golden) or 'HCCL refuses'}"
            if verdict_.choice == "refused here" and "does not take" in verdict_.here.error:
                cause = "choice: the API refuses the data type, before an operator chooses"
            found.setdefault(cause, []).append(words_of(golden.answer.case))
    return {cause: sorted(calls) for cause, calls in sorted(found.items())}
