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
from scripts.oracle.canonical import Event, Run, digest, seen
from scripts.oracle.comparing import RULESET, Verdict, first_differences, recorded_here, verdict

BETWEEN_RANKS, WITH_COPIES = "but for local copies", "all"

MOST_TASKS = 60_000
"""Calls with more tasks than this are left out: they take longer to compare than all others."""

WHOLE_TASKS = 600
"""The first call of every executor and mode with no more tasks than this keeps them all."""

Digests = list[list[str]]
"""By rank, by stream."""


@dataclass(frozen=True)
class Golden:
    """What HCCL did in one call. `streams` is None where it ran no task; `copies` stands for every
    task of all ranks, copies inside a rank and names of buffers too; `run` has the tasks of some
    small calls; `source` names HCCL's code by repository and commit.
    """

    answer: Answer
    streams: Digests | None
    copies: str
    run: Run | None = None
    source: str = ""


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


def executor_of(answer: Answer) -> str:
    """Return the executor that HCCL ran, "" where it refused."""
    forced = answer.case.get("alg")
    return str(forced) if forced else next(iter(answer.executors), "")


def task_count(answer: Answer) -> int:
    """Return the number of tasks of all ranks."""
    return sum(len(stream) for rank in answer.tasks or () for stream in rank)


def write_golden(
    path: Path, source: str, answers: Iterable[Answer], kept: Iterable[str] = ()
) -> int:
    """Write the golden runs of some answers, made by HCCL's code at commit `source`, behind the
    lines that are kept; return the number of answers.
    """
    count = 0
    whole: set[tuple[str, str]] = set()
    with gzip.GzipFile(path, "wb", mtime=0) as file:
        file.write(json.dumps({"source": source}).encode() + b"\n")
        file.writelines(line.encode() for line in kept)
        for answer in answers:
            line = _line(answer)
            kind = (executor_of(answer), answer.case.get("mode", ""))
            if kind not in whole and 0 < task_count(answer) <= WHOLE_TASKS:
                whole.add(kind)
                line["run"] = answer.run
            file.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")
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


def kept_lines(path: Path) -> list[str]:
    """Return the lines of a file whose calls no part of drawing.py yields: those of plain machines
    of the Ascend 950.
    """
    with gzip.open(path, "rt", encoding="utf-8") as file:
        file.readline()
        return [
            line
            for line in file
            if "bus" not in (case := json.loads(line)["case"]) and case["op"] != "barrier"
        ]


def read_golden(path: Path) -> list[Golden]:
    """Return the golden runs of a file."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        source = str(json.loads(file.readline())["source"])
        return [_golden(source, json.loads(line)) for line in file]


def _golden(source: str, found: dict[str, Any]) -> Golden:
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
    return Golden(answer, ranks, found.get("copies", ""), _run(found.get("run")), source)


def _run(found: list[list[list[list[Any]]]] | None) -> Run | None:
    if found is None:
        return None
    return [[[_event(event) for event in stream] for stream in rank] for rank in found]


def _event(found: list[Any]) -> Event:
    kind, peer, link, notify, size, source, target, reduction = found
    return Event(kind, peer, link, notify, size, tuple(source), tuple(target), reduction)


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
    if copies_of(here.run) == golden.copies:
        return verdict(golden.answer, here, WITH_COPIES), ""
    mine = digests_of(here.run)
    if mine == golden.streams:
        return verdict(golden.answer, here, BETWEEN_RANKS), ""
    where = _first_difference(mine, golden.streams)
    words = words_of(golden.answer.case)
    text = f"{where} differs: python scripts/oracle compare {words} --ranks {len(mine)}"
    if golden.run is not None:
        text += "\n" + next(first_differences(here.run, golden.run, BETWEEN_RANKS))
    return verdict(golden.answer, here, "no"), text


def _first_difference(mine: Digests, hccls: Digests) -> str:
    none: list[str] = []
    for rank, (own, wanted) in enumerate(zip_longest(mine, hccls, fillvalue=none)):
        for stream, (x, y) in enumerate(zip_longest(own, wanted, fillvalue="")):
            if x != y:
                return f"rank {rank} {'main' if stream == 0 else f'sub {stream}'}"
    return "nothing"
