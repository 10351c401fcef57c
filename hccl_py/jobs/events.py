"""Local notifies of a job: one for every wait, which the record posts and the wait consumes.

A wait for an event of the same stream, or for one that the stream has waited for before, orders
nothing and is left out.

At the begin of a job its first stream wakes the others, and at the end it waits for them. A stream
that begins with a wait for another one needs no waking, and a stream that ends with an event that
the first stream waits for is known to be over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hccl_py.errors import ParameterError
from hccl_py.jobs.layout import JobNumbers
from hccl_py.jobs.steps import Event, Record, Step, Wait
from hccl_py.values import IntArray


@dataclass(frozen=True, eq=False)
class Crossing:
    """A local notify, by its slot, that `stream` waits for at `ranks`."""

    stream: int
    slot: int
    ranks: IntArray


def crossing(layout: JobNumbers, stream: int, ranks: IntArray) -> Crossing:
    """Return a new notify that a stream will wait for."""
    return Crossing(stream, layout.notify(stream, ranks), ranks)


class Events:
    """The notifies posted at every record and consumed at every wait, by the step's number."""

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


def begun(
    layout: JobNumbers, steps: Sequence[Step], events: Events, streams: int
) -> tuple[Crossing, ...]:
    """Return the notifies that the first stream posts to wake the others."""
    waking = {number: wait.ranks for number, wait in events.waits.items()}
    firsts = _open(reversed(list(enumerate(steps))), streams, layout.ranks, waking)
    return tuple(crossing(layout, stream, ranks) for stream, ranks in firsts)


def ended(
    layout: JobNumbers, steps: Sequence[Step], events: Events, streams: int
) -> tuple[tuple[int, Crossing], ...]:
    """Return the notifies that the other streams post at their end, each with its stream."""
    ending = {
        number: np.concatenate([np.zeros(0, np.int64), *(p.ranks for p in posts if not p.stream)])
        for number, posts in events.posts.items()
    }
    lasts = _open(enumerate(steps), streams, layout.ranks, ending)
    return tuple((stream, crossing(layout, 0, ranks)) for stream, ranks in lasts)


def _open(
    steps: Iterator[tuple[int, Step]], streams: int, ranks: int, settled: Mapping[int, IntArray]
) -> Iterator[tuple[int, IntArray]]:
    """Yield every stream but the first with the ranks whose last of these steps on the stream is
    not among the settled ranks of that step, by its number.
    """
    last = np.full((streams, ranks), -1)
    for number, step in steps:
        last[step.stream, step.ranks] = number
    for stream in range(1, streams):
        is_open = last[stream] >= 0
        for number in np.unique(last[stream, is_open]).tolist():
            here = settled.get(number, np.zeros(0, np.int64))
            is_open[here[last[stream, here] == number]] = False
        if is_open.any():
            yield stream, np.flatnonzero(is_open)
