"""What the times of a program say, in short: ranks, waits, links, critical path."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hccl_py.program.describe import spell_task
from hccl_py.simulator import Timeline
from hccl_py.simulator.analysis import CriticalPath

__all__ = ["HEAD", "Summary", "spell_count"]

HEAD = 16
"""Columns of the words on the left."""

MOST = 5
"""Waits, links and tasks that are shown; a document has twice as many."""

_STEP = re.compile(r" [0-9]+/[0-9]+$")

_PARTS = {
    "alpha_us": "α",
    "notify_us": "notifies",
    "link_us": "bytes over links",
    "reduce_us": "reductions",
    "copy_us": "local copies",
    "compute_us": "compute",
}


class RankUse(NamedTuple):
    """A rank's share of its streams' time: the mean over those that it uses."""

    which: str
    rank: int
    busy: float
    waiting: float
    idle: float


class Wait(NamedTuple):
    """How long a rank waits for another one."""

    rank: int
    on: int
    us: float


class Link(NamedTuple):
    """What goes over a link, and the part of the time in which that would fill it."""

    source: str
    target: str
    bytes: int
    share: float


@dataclass(frozen=True)
class Summary:
    """What people look at first; everything else is in the timeline."""

    timeline: Timeline

    def document(self) -> dict[str, Any]:
        """Return the `report` of the JSON document."""
        path = self.timeline.critical_path()
        return {
            "ranks": [row._asdict() for row in self.ranks()],
            "waits": [row._asdict() for row in self.waits(2 * MOST)],
            "waits_on_itself_us": float(self.timeline.waits().local_us.max(initial=0.0)),
            "links": [row._asdict() for row in self.links(2 * MOST)],
            "critical_path": {
                "tasks": len(path.rows),
                **path.parts()._asdict(),
                "phases": _phases(path),
                "first": [
                    {"begin_us": begin, "end_us": end, "task": task}
                    for begin, end, task in _first_tasks(path, 2 * MOST)
                ],
            },
        }

    def lines(self) -> Iterator[str]:
        """Yield what people read."""
        if not self.timeline.total_us:
            yield "Nothing takes any time."
            return
        for use in self.ranks():
            yield _row(
                f"{use.which} rank",
                f"{use.rank}: busy {use.busy:.1%}, waiting {use.waiting:.1%}, idle {use.idle:.1%}",
            )
        yield from _table(
            "waits most", [f"rank {w.rank} {w.us:.2f} us for rank {w.on}" for w in self.waits(MOST)]
        )
        yield from _table(
            "busiest links",
            [f"{a} to {b}: {share:.1%}, {size} bytes" for a, b, size, share in self.links(MOST)],
        )
        yield from self._path()

    def ranks(self) -> list[RankUse]:
        """Return the busiest, the median and the idlest rank."""
        total = self.timeline.total_us or 1.0
        shares = self.timeline.usage().of_ranks() / total
        order = np.argsort(-shares[:, 0], kind="stable")
        picked = {"busiest": order[0], "median": order[len(order) // 2], "idlest": order[-1]}
        return [RankUse(which, int(rank), *shares[rank].tolist()) for which, rank in picked.items()]

    def waits(self, most: int) -> list[Wait]:
        """Return the longest waits of a rank on another one."""
        found = self.timeline.waits()
        longest = np.argsort(-found.us, kind="stable")[:most]
        return [Wait(int(found.rank[k]), int(found.on[k]), float(found.us[k])) for k in longest]

    def links(self, most: int) -> list[Link]:
        """Return the links that are full for most of the time."""
        found = self.timeline.link_use()
        return [
            Link(*found.names(k), int(found.bytes[k]), float(found.share[k]))
            for k in found.busiest(most).tolist()
        ]

    def _path(self) -> Iterator[str]:
        path, total = self.timeline.critical_path(), self.timeline.total_us
        yield _row("critical path", spell_count(len(path.rows), "task"))
        for name, us in path.parts()._asdict().items():
            if us:
                yield _row("", f"{us:.2f} us ({us / total:.1%}) {_PARTS[name]}")
        phases = [(name, us) for name, us in _phases(path).items() if us]
        told = [f"{us:.2f} us {name or 'no phase'}" for name, us in phases[:MOST]]
        if len(phases) > MOST:
            told.append(f"{sum(us for _, us in phases[MOST:]):.2f} us {len(phases) - MOST} others")
        yield from _table("by phase", told)
        first = _first_tasks(path, MOST)
        yield from _table("its first tasks", [f"{b:.2f}-{e:.2f}  {task}" for b, e, task in first])


def _phases(path: CriticalPath) -> dict[str, float]:
    """Return the microseconds of phases, their steps together: "ring 3/7" counts as "ring"."""
    found: dict[str, float] = {}
    for label, us in path.phases().items():
        phase = _STEP.sub("", label)
        found[phase] = found.get(phase, 0.0) + us
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _first_tasks(path: CriticalPath, most: int) -> list[tuple[float, float, str]]:
    """Return begin, end and words of the first tasks that take time."""
    places = np.flatnonzero(path.spans_us > 0)[:most]
    program = path.timeline.program
    return [
        (float(path.begin_us[k]), float(path.end_us[k]), spell_task(program, int(path.rows[k])))
        for k in places
    ]


def spell_count(count: int, noun: str) -> str:
    """Return `1 task`, `2 tasks`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _table(head: str, rows: list[str]) -> Iterator[str]:
    for number, row in enumerate(rows):
        yield _row("" if number else head, row)


def _row(head: str, text: str) -> str:
    return f"{head:{HEAD}}{text}"
