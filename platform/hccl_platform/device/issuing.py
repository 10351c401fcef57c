"""Issuing a program on the streams of devices, between the caller's work on its own streams.

    caller's stream    inputs ─► start                            end ─► outputs
    rank's main              └──► tasks, posts, waits ... ─► end ──┘
    rank's subs              └──► tasks, posts, waits ...

All streams of a device's ranks wait for the caller's current stream there, and that waits for their
main streams: programs have no open ends, so the other streams are done by then. Every post is an
event that its wait is issued for; events are used again when the run that used them has ended.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import torch

from hccl_platform.device.clocks import TaskClock
from hccl_platform.device.devices import Devices, Event, Stream, Tensor
from hccl_platform.device.issue_order import Action, IssueOrder, Ranges, StreamSegment
from hccl_platform.lowering.part import MOVE
from hccl_py.enums import POST


class Issuer:
    """Issues programs: the streams of all ranks, and events. Rank r is on device `place[r]`."""

    def __init__(self, devices: Devices, place: Sequence[int]) -> None:
        self._devices, self._place = devices, place
        self._streams: dict[tuple[int, int], Stream] = {}
        self._links: dict[tuple[int, int, int], Stream] = {}
        self._events = _Events(devices)

    def run(
        self,
        order: IssueOrder,
        slots: dict[int, Tensor],
        callers: Sequence[Stream] = (),
        clock: TaskClock | None = None,
    ) -> None:
        """Issue a program; `callers` are streams of the caller besides its current ones."""
        indices = sorted({self._place[rank] for rank, _ in order.queues})
        current = [(index, self._devices.current_stream(index)) for index in indices]
        self._events.begin()
        self._start(order, current, callers)
        run = _RunIssuer(self._devices, self._events, order, slots, clock)
        for segment in order.segments:
            run.issue(segment, self._stream(segment.rank, segment.stream), self)
        self._end(order, current, callers)

    def index(self, rank: int) -> int:
        """Return the device of a rank."""
        return self._place[rank]

    def link(self, rank: int, stream: int, index: int) -> Stream:
        """Return the stream on another device that works for a stream of a rank: a copy between
        devices takes a stream on both.
        """
        key = rank, stream, index
        if key not in self._links:
            self._links[key] = self._devices.stream(index)
        return self._links[key]

    def _stream(self, rank: int, stream: int) -> Stream:
        key = rank, stream
        if key not in self._streams:
            self._streams[key] = self._devices.stream(self._place[rank])
        return self._streams[key]

    def _start(
        self, order: IssueOrder, current: list[tuple[int, Stream]], callers: Sequence[Stream]
    ) -> None:
        """Let all streams of the program wait for the caller's."""
        started: dict[int, list[Event]] = {}
        for index, stream in current:
            started[index] = [self._events.recorded(index, stream)]
        for caller in callers:
            for index in started:
                started[index].append(self._events.recorded(index, caller, crosses=True))
        for rank, stream in order.queues:
            for event in started[self._place[rank]]:
                self._stream(rank, stream).wait_event(event)

    def _end(
        self, order: IssueOrder, current: list[tuple[int, Stream]], callers: Sequence[Stream]
    ) -> None:
        """Let the caller's streams wait for the main streams."""
        by_index = dict(current)
        ended = []
        for rank, stream in order.queues:
            if stream == 0:
                index = self._place[rank]
                main = self._stream(rank, 0)
                event = self._events.recorded(index, main)
                by_index[index].wait_event(event)
                ended.append(event)
                for caller in callers:
                    caller.wait_event(self._events.recorded(index, main, crosses=True))
        self._events.end(ended)


class _RunIssuer:
    """One run of a program, and the events of its posts and moves, while it is issued."""

    def __init__(
        self,
        devices: Devices,
        events: _Events,
        order: IssueOrder,
        slots: dict[int, Tensor],
        clock: TaskClock | None,
    ) -> None:
        self._devices, self._events = devices, events
        self._order, self._slots, self._clock = order, slots, clock
        self._posted: dict[int, Event] = {}
        self._moved: dict[int, Event] = {}
        self._buffers = order.buffers

    def issue(self, segment: StreamSegment, stream: Stream, issuer: Issuer) -> None:
        """Issue the tasks of a segment."""
        index, clock = issuer.index(segment.rank), self._clock
        with self._devices.on(stream):
            for action in segment.actions:
                if clock is not None:
                    clock.begin(action.row, index, stream)
                self._issue(action, segment, stream, index, issuer)
                if clock is not None:
                    clock.end(action.row, index, stream)

    def _issue(
        self, action: Action, segment: StreamSegment, stream: Stream, index: int, issuer: Issuer
    ) -> None:
        order, number = self._order, action.number
        if action.kind == POST:
            crosses = number in order.crossing
            self._posted[number] = self._events.recorded(index, stream, crosses=crosses)
        elif action.kind != MOVE:
            stream.wait_event(self._posted.pop(number))
        else:
            for earlier in order.behind.get(number, ()):
                stream.wait_event(self._moved[earlier])
            self._move(number, segment, stream, index, issuer)
            if number in order.signals:
                crosses = order.signals[number]
                self._moved[number] = self._events.recorded(index, stream, crosses=crosses)

    def _move(
        self, number: int, segment: StreamSegment, stream: Stream, index: int, issuer: Issuer
    ) -> None:
        ranges = self._order.ranges[number]
        into = self._slots[ranges.dst][ranges.start : ranges.stop]
        what = self._slots[ranges.src][ranges.low : ranges.high]
        owner, other = (issuer.index(slot // self._buffers) for slot in (ranges.dst, ranges.src))
        if owner == other:
            _work(ranges, into, _landed(into, what) if _overlap(into, what) else what)
            return
        far = other if owner == index else owner
        link = issuer.link(segment.rank, segment.stream, far)
        here, there = (index, stream), (far, link)
        with self._devices.on(link), self._devices.on(stream):
            self._follow(there, here)
            if ranges.reduce is not None:
                what = _landed(into, what)
                # The reduction runs where the result is.
                self._follow(*((here, there) if owner == index else (there, here)))
            _work(ranges, into, what)
            self._follow(here, there)

    def _follow(self, later: tuple[int, Stream], earlier: tuple[int, Stream]) -> None:
        """Let a stream of a device wait for one of another device. Kinds of devices differ in the
        stream that torch puts a copy between them on, and in whether the other stream waits for it.
        """
        later[1].wait_event(self._events.recorded(*earlier, crosses=True))


def _landed(into: Tensor, what: Tensor) -> Tensor:
    """Return a copy of a source on the device of the destination."""
    landed = torch.empty_like(into)
    landed.copy_(what, non_blocking=True)
    return landed


def _work(ranges: Ranges, into: Tensor, what: Tensor) -> None:
    """Copy or reduce."""
    if ranges.reduce is None:
        into.copy_(what, non_blocking=True)
    else:
        ranges.reduce(into, what)


def _overlap(into: Tensor, what: Tensor) -> bool:
    """True if a source overlaps its destination, other than exactly."""
    apart = abs(int(into.data_ptr()) - int(what.data_ptr()))
    return 0 < apart < len(into)


class _Events:
    """A pool of events. The events of a run are used again when it has ended, not earlier: some
    devices look at the event again after a wait was issued.
    """

    def __init__(self, devices: Devices) -> None:
        self._devices = devices
        self._free: dict[tuple[int, bool], list[Event]] = {}
        self._used: list[tuple[tuple[int, bool], Event]] = []
        self._runs: deque[tuple[list[Event], list[tuple[tuple[int, bool], Event]]]] = deque()

    def begin(self) -> None:
        """Take back the events of runs that have ended."""
        while self._runs and all(event.query() for event in self._runs[0][0]):
            for key, event in self._runs.popleft()[1]:
                self._free.setdefault(key, []).append(event)

    def recorded(self, index: int, stream: Stream, *, crosses: bool = False) -> Event:
        """Return an event, recorded on a stream of a device."""
        key = index, crosses
        free = self._free.get(key)
        event = free.pop() if free else self._devices.event(crosses=crosses)
        self._used.append((key, event))
        event.record(stream)
        return event

    def end(self, ended: list[Event]) -> None:
        """Keep the events of a run until those of its end are set."""
        self._runs.append((ended, self._used))
        self._used = []
