"""Events as local notifies: one for every wait, which the record posts and the wait consumes.

A stream's own events, and those that it has waited for before, hold nothing up: such waits are left
out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hccl_py.errors import ParameterError
from hccl_py.jobs.layout import JobNumbers
from hccl_py.jobs.steps import Event, Record, Step, Wait
from hccl_py.values import IntArray


@dataclass(frozen=True, eq=False)
class Crossing:
    """A stream waits for another one of the same rank: the slot of the local notify, at ranks."""

    stream: int
    slot: int
    ranks: IntArray


def crossing(layout: JobNumbers, stream: int, ranks: IntArray) -> Crossing:
    """Return a new notify that a stream will wait for."""
    return Crossing(stream, layout.notify(stream, ranks), ranks)


class Events:
    """What is posted at every record, and consumed at every wait, by the number of the step."""

    def __init__(self, layout: JobNumbers, streams: Sequence[str], steps: Sequence[Step]) -> None:
        self.posts: dict[int, list[Crossing]] = {}
        self.waits: dict[int, Crossing] = {}
        self._layout, self._streams = layout, streams
        self._recorded: dict[Event, tuple[IntArray, IntArray]] = {}
        self._waited: dict[tuple[Event, int], IntArray] = {}
        for number, step in enumerate(steps):
            if isinstance(step, Record):
                self._record(number, step)
        for number, step in enumerate(steps):
            if isinstance(step, Wait):
                self._wait(number, step)

    def _record(self, number: int, step: Record) -> None:
        stream, at = self._recorded.setdefault(step.event, (self._nowhere(), self._nowhere()))
        stream[step.ranks], at[step.ranks] = step.stream, number

    def _wait(self, number: int, step: Wait) -> None:
        stream, at = self._recorded.get(step.event, (self._nowhere(), self._nowhere()))
        missing = step.ranks[at[step.ranks] < 0]
        if len(missing):
            raise ParameterError(
                f"Rank {missing[0]} waits on stream {self._streams[step.stream]} for an event that "
                f"it never records ({step.line}).",
                "Record it on a stream of that rank: an event orders the streams of one rank.",
            )
        passed = (stream[step.ranks] == step.stream) & (at[step.ranks] < number)
        waited = self._waited.setdefault((step.event, step.stream), np.zeros_like(at))
        live = step.ranks[~passed & (waited[step.ranks] == 0)]
        waited[live] = 1
        if len(live):
            self.waits[number] = crossed = crossing(self._layout, step.stream, live)
            for record in np.unique(at[live]).tolist():
                ranks = live[at[live] == record]
                post = Crossing(crossed.stream, crossed.slot, ranks)
                self.posts.setdefault(record, []).append(post)

    def _nowhere(self) -> IntArray:
        return np.full(self._layout.ranks, -1)
