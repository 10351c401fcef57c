"""When every task began and ended: by events on the streams, or by the host's clock."""

from __future__ import annotations

import time
from typing import Protocol

import numpy as np

from hccl_platform.device.devices import Devices, Event, Stream
from hccl_py.plugins.platforms import TaskTimes


class Clock(Protocol):
    """Takes the time around every task of a run."""

    def begin(self, row: int, index: int, stream: Stream) -> None:
        """A stream of a device comes to a task."""

    def end(self, row: int, index: int, stream: Stream) -> None:
        """The stream is done with it."""

    def times(self, rows: int) -> TaskTimes:
        """Return the times of all task rows, after the run."""


class HostClock:
    """The host's clock, for devices that do everything at once."""

    def __init__(self) -> None:
        self._zero = time.perf_counter()
        self._begun: dict[int, float] = {}
        self._ended: dict[int, float] = {}

    def begin(self, row: int, index: int, stream: Stream) -> None:
        """Look at the clock."""
        self._begun[row] = time.perf_counter()

    def end(self, row: int, index: int, stream: Stream) -> None:
        """Look again."""
        self._ended[row] = time.perf_counter()

    def times(self, rows: int) -> TaskTimes:
        """Return microseconds since the clock was made."""
        begun = {row: (at - self._zero) * 1e6 for row, at in self._begun.items()}
        ended = {row: (at - self._zero) * 1e6 for row, at in self._ended.items()}
        return _times(begun, ended, rows)


class EventClock:
    """Events on the streams themselves; each device counts from an event of its own, and all of
    these are recorded while the devices do nothing.
    """

    def __init__(self, devices: Devices) -> None:
        self._devices = devices
        self._begun: dict[int, tuple[int, Event]] = {}
        self._ended: dict[int, tuple[int, Event]] = {}
        devices.synchronize()
        self._zero = [
            self._recorded(devices.current_stream(index)) for index in range(devices.count)
        ]

    def begin(self, row: int, index: int, stream: Stream) -> None:
        """Record an event before the task."""
        self._begun[row] = index, self._recorded(stream)

    def end(self, row: int, index: int, stream: Stream) -> None:
        """Record one behind it."""
        self._ended[row] = index, self._recorded(stream)

    def times(self, rows: int) -> TaskTimes:
        """Return microseconds since the clock was made."""
        self._devices.synchronize()
        begun, ended = (
            {row: self._zero[index].elapsed_time(event) * 1e3 for row, (index, event) in m.items()}
            for m in (self._begun, self._ended)
        )
        return _times(begun, ended, rows)

    def _recorded(self, stream: Stream) -> Event:
        event = self._devices.timed_event()
        event.record(stream)
        return event


def _times(begun: dict[int, float], ended: dict[int, float], rows: int) -> TaskTimes:
    """Return columns of all rows; a task that moves nothing took no time when all began."""
    first = min(begun.values(), default=0.0)
    start, end = np.zeros(rows), np.zeros(rows)
    for column, found in ((start, begun), (end, ended)):
        for row, at in found.items():
            column[row] = max(at - first, 0.0)
    return TaskTimes(start, np.maximum(start, end))
