"""Streams of CCU programs and the tasks on them.

A mission is a stream. A move is asynchronous: it runs on a lane of its own, a stream that belongs
to the first bit of the event that it sets. Lanes own two notifies: the start of a move, and the
event's bit.

    die 0, mission 0          post start ─┐            wait bit ...
    ..., event 2 bit 3                    └ wait start, move, post bit

Streams have the same numbers on all ranks, so that a number has one name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hccl_interop.cpp.traces import TASK

START, BIT = 0, 1
"""Notifies of a lane, a loop or a mission: its start; its event's bit, or its end."""

COPY, REDUCE, READ, READ_REDUCE, WRITE, WRITE_REDUCE, POST, WAIT, LOCAL_POST, LOCAL_WAIT = range(10)
"""Kinds of tasks, as in recorder/state.hpp."""


class Origin(NamedTuple):
    """The stack of an operation, and the call of the op that it is part of."""

    stack: int
    call: int


class Extent(NamedTuple):
    """Bytes of a part of a rank's memory, from `offset` on."""

    rank: int
    part: int
    offset: int


@dataclass
class StreamNames:
    """The streams of a program: the threads of the rank with most, then others as they are met."""

    names: list[str]
    numbers: dict[str, int] = field(default_factory=dict)

    @staticmethod
    def of_threads(count: int) -> StreamNames:
        """Begin with threads: the caller's stream, and those that host code acquires."""
        return StreamNames(["main", *(f"thread {number}" for number in range(1, count))])

    def number(self, name: str) -> int:
        """Return the number of a stream."""
        found = self.numbers.get(name)
        if found is None:
            found = self.numbers[name] = len(self.names)
            self.names.append(name)
        return found


@dataclass
class RankTasks:
    """The tasks of a rank, in the order in which it issues them; `notifies` counts those of every
    stream that owns some.
    """

    rows: list[tuple[int, ...]] = field(default_factory=list)
    notifies: dict[int, int] = field(default_factory=dict)

    def post(self, stream: int, owner: int, index: int, origin: Origin) -> None:
        """Set a local notify of the stream `owner`."""
        self._local(LOCAL_POST, stream, owner, index, origin)

    def wait(self, stream: int, owner: int, index: int, origin: Origin) -> None:
        """Wait for a local notify of the stream `owner`."""
        self._local(LOCAL_WAIT, stream, owner, index, origin)

    def _local(self, kind: int, stream: int, owner: int, index: int, origin: Origin) -> None:
        self.notifies[owner] = max(self.notifies.get(owner, 0), index + 1)
        self.rows.append((kind, -1, -1, -1, -1, stream, owner, index, *origin, 0, 0, 0, 0))

    def signal(self, kind: int, stream: int, channel: int, bit: int, origin: Origin) -> None:
        """Post, or wait for, a bit of a channel's notifies; bits are numbered through."""
        self.rows.append((kind, -1, -1, -1, -1, stream, channel, bit, *origin, 0, 0, 0, 0))

    def move(
        self,
        kind: int,
        lane: int,
        channel: int,
        to: Extent,
        source: Extent,
        size: int,
        reduction: tuple[int, int],
        joined: int,
        origin: Origin,
    ) -> None:
        """Move data on a lane; `reduction` is its data type and op, -1 for none."""
        places = source.part, to.part, lane, channel, -1
        offsets = source.offset, to.offset, size
        self.rows.append((kind, *reduction, *places, *origin, *offsets, joined))

    def columns(self) -> npt.NDArray[np.void]:
        """Return the tasks as the recorder would have written them."""
        return np.array(self.rows, TASK) if self.rows else np.zeros(0, TASK)
