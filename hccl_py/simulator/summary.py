"""A timeline in short: ranks, waits, links, critical path."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hccl_py.program.describe import format_task
from hccl_py.simulator import Timeline
from hccl_py.simulator.analysis import CriticalPath

MOST = 5
"""Waits, links and tasks that are shown; a document has twice as many."""

_STEP = re.compile(r" [0-9]+/[0-9]+$")


class RankUse(NamedTuple):
    """A rank's share of its streams' time: the mean over those that it uses."""

    which: str
    rank: int
    busy: float
    waiting: float
    idle: float


class RankWait(NamedTuple):
    """The time that a rank waits for another one."""

    rank: int
    on: int
    us: float


class LinkShare(NamedTuple):
    """The bytes over a link, and the part of the time in which these would fill it."""

    source: str
    target: str
    bytes: int
    share: float


@dataclass(frozen=True)
class Summary:
    """Figures that people look at first; all others are in the timeline."""

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

    def ranks(self) -> list[RankUse]:
        """Return the busiest, the median and the least busy rank."""
        total = self.timeline.total_us or 1.0
        shares = self.timeline.usage().of_ranks() / total
        order = np.argsort(-shares[:, 0], kind="stable")
        picked = {"busiest": order[0], "median": order[len(order) // 2], "idlest": order[-1]}
        return [RankUse(which, int(rank), *shares[rank].tolist()) for which, rank in picked.items()]

    def waits(self, most: int) -> list[RankWait]:
        """Return the longest waits of a rank on another one."""
        found = self.timeline.waits()
        longest = np.argsort(-found.us, kind="stable")[:most]
        return [RankWait(int(found.rank[k]), int(found.on[k]), float(found.us[k])) for k in longest]

    def links(self, most: int) -> list[LinkShare]:
        """Return the links that are full for most of the time."""
        found = self.timeline.link_use()
        return [
            LinkShare(*found.names(k), int(found.bytes[k]), float(found.share[k]))
            for k in found.busiest(most).tolist()
        ]

    def phases(self) -> dict[str, float]:
        """Return the microseconds of the critical path's phases, those that take most first."""
        return _phases(self.timeline.critical_path())

    def first_tasks(self, most: int) -> list[tuple[float, float, str]]:
        """Return begin, end and words of the critical path's first tasks that take time."""
        return _first_tasks(self.timeline.critical_path(), most)


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
        (float(path.begin_us[k]), float(path.end_us[k]), format_task(program, int(path.rows[k])))
        for k in places
    ]
