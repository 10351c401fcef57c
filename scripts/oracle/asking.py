"""Answers of HCCL: what the driver prints for a case, as data."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from scripts.oracle.calls import Case
from scripts.oracle.canonical import Run, run_of_tasks, run_of_threads

DRIVER = "HCCL_ORACLE"
"""The environment variable that names the driver where no option does."""

Request = tuple[int | str, ...]
"""Streams, notifies and scratch bytes that a rank asks for; on the Ascend 950 the notifies of its
threads, and its channels.
"""

REQUESTED = {3: ("streams", "notifies", "scratch"), 2: ("threads", "channels")}
"""The names of the members of a request, by their number."""


@dataclass(frozen=True)
class Answer:
    """What HCCL did in a case. `executors` and `tags` are those of the ranks, without repetition;
    `refusal` says where HCCL stopped, and is "" where it ran; `run` has the tasks where there are
    any, `requests` the resources of every rank, on threads `resources` as the driver says them.
    """

    case: Case
    executors: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    levels: tuple[tuple[int, int, int], ...] = ()
    refusal: str = ""
    requests: tuple[Request, ...] = ()
    tasks: Any = field(default=None, repr=False)
    resources: Any = field(default=None, repr=False)

    @property
    def run(self) -> Run | None:
        """The tasks in canonical form."""
        if self.tasks is None:
            return None
        on_threads = self.case.get("product") == ON_THREADS
        if on_threads:
            return run_of_threads(self.tasks, self.resources)
        return run_of_tasks(self.tasks)


RECEIVER = "AicpuRecvSole"
"""The name of HCCL's executor at the receiver of a message."""

ON_THREADS = "950"
"""The device whose executors record on threads and channels, asked of `pub`."""


def answer_of(found: dict[str, Any]) -> Answer:
    """Return the answer that a line of a driver is."""
    if "selected" in found:
        return _answer_on_threads(found)
    chosen = [group[2] for group in found.get("chosen", [])]
    requests = [group[2] for group in found.get("resources", []) for _ in range(group[1])]
    return Answer(
        case=found["case"],
        executors=tuple(dict.fromkeys(c["alg"] for c in chosen if "alg" in c)),
        tags=tuple(dict.fromkeys(c["tag"] for c in chosen if "tag" in c)),
        levels=tuple(dict.fromkeys(tuple(c["levels"]) for c in chosen if "levels" in c)),
        refusal=_refusal(found, chosen),
        requests=tuple(
            (r["streams"], r["notifies"], r["scratch"]) for r in requests if r is not None
        ),
        tasks=found.get("tasks"),
    )


def _answer_on_threads(found: dict[str, Any]) -> Answer:
    """Return the answer of `pub`; the executor that HCCL chose is forced here. Of a message that is
    the sender's, which also has the receiver's tasks here.
    """
    chosen = dict.fromkeys(name.partition("|")[0] for name, _ in found["selected"])
    names = tuple(name for name in chosen if name != RECEIVER or len(chosen) == 1)
    refusals = [name for name in names if name.startswith("refused")]
    named = {} if refusals else {"alg": names[0]}
    return Answer(
        case={**found["case"], **named, "product": ON_THREADS},
        executors=() if refusals else names,
        refusal=" ".join(refusals),
        requests=tuple(map(_request_on_threads, found["resources"])),
        tasks=None if refusals else found["tasks"],
        resources=found["resources"],
    )


def _request_on_threads(asked: dict[str, Any]) -> Request:
    """Return what a rank asks for, without the host's stream and main's notify for it."""
    threads = [
        count for engine, many, count in asked.get("threads", []) if engine for _ in range(many)
    ]
    threads = [threads[0] - 1, *threads[1:]] if threads else [0]
    channels = sorted((peer, notifies) for _, peer, _, notifies in asked.get("channels", []))
    return request_on_threads(threads, channels)


def request_on_threads(threads: Sequence[int], channels: Sequence[tuple[int, int]]) -> Request:
    """Spell the notifies of threads, and the peers and notifies of channels."""
    pairs = (f"{peer}:{notifies}" for peer, notifies in channels)
    return " ".join(map(str, threads)), " ".join(pairs)


def _refusal(found: dict[str, Any], chosen: list[dict[str, Any]]) -> str:
    if "crashed" in found:
        return f"crashes with signal {found['crashed']}"
    for what in ("refused", "calc_failed"):
        for one in chosen:
            if what in one:
                return f"{what.replace('_', ' ')} with {one[what]}"
    if "failed" in found:
        failed = found["failed"]
        return f"fails at {failed['where']} with {failed.get('code', failed.get('what'))}"
    return ""


def ask(cases: Iterable[Case], driver: Path) -> Iterator[Answer]:
    """Yield HCCL's answers to cases, in order."""
    for line in ask_lines(cases, driver):
        yield answer_of(json.loads(line))


def ask_lines(cases: Iterable[Case], driver: Path) -> Iterator[str]:
    """Yield the lines of the driver."""
    with TemporaryFile("w+") as asked:
        asked.writelines(json.dumps(dict(case)) + "\n" for case in cases)
        asked.seek(0)
        with subprocess.Popen([driver], stdin=asked, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            yield from process.stdout


def driver_of(given: str | None) -> Path:
    """Return the driver's path, from an option or from the environment."""
    path = given or os.environ.get(DRIVER)
    if not path:
        raise SystemExit(
            f"No driver is named: give --driver, or set {DRIVER} to what `build` printed."
        )
    if not os.access(path, os.X_OK):
        raise SystemExit(f"{path} is no program: run `scripts/oracle build` first.")
    return Path(path)
