"""The begin and the end of every task of a run, by events on the streams."""

from __future__ import annotations

import numpy as np

from hccl_platform.device.devices import Devices, Event, Stream
from hccl_py.plugins.platforms import TaskTimes


class TaskClock:
    """Timed events before and after every task. Each device counts from an event of its own; all
    of these are recorded while the devices do nothing.
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
        """Record an event before a task on a stream of device `index`."""
        self._begun[row] = index, self._recorded(stream)

    def end(self, row: int, index: int, stream: Stream) -> None:
        """Record an event after the task."""
        self._ended[row] = index, self._recorded(stream)

    def times(self, rows: int) -> TaskTimes:
        """Return the times of all task rows after the run, in microseconds from the first begin; 0
        for tasks that move nothing.
        """
        self._devices.synchronize()
        start, end = np.zeros(rows), np.zeros(rows)
        for column, events in ((start, self._begun), (end, self._ended)):
            for row, (index, event) in events.items():
                column[row] = self._zero[index].elapsed_time(event) * 1e3
        first = min((start[row] for row in self._begun), default=0.0)
        start, end = (np.maximum(column - first, 0.0) for column in (start, end))
        return TaskTimes(start, np.maximum(start, end))

    def _recorded(self, stream: Stream) -> Event:
        event = self._devices.timed_event()
        event.record(stream)
        return event
