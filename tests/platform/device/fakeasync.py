"""A module of devices in the place of torch.cuda, for CPU tensors; a seeded scheduler runs streams.

What torch writes under `with module.stream(s)` is done in s's order when somebody synchronises;
views are made at once. The scheduler then draws the stream whose next thing is done, some streams
much more seldom than others, so a seed is one order of all there is. Events have CUDA's meaning: a
wait is for the last record before it, and none where there was none. `plain_events_cross` False
makes events as NPUs have them. `dropped` is the number of a wait that is left out, counted from 0
over all streams.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

TICK_MS = 1e-3
"""The clock of events goes on by so much with each thing that a stream does."""


class FakeModule:
    def __init__(
        self,
        devices: int = 1,
        seed: int = 0,
        *,
        plain_events_cross: bool = True,
        dropped: int | None = None,
    ) -> None:
        self.random = random.Random(seed)
        self.plain_events_cross, self.dropped = plain_events_cross, dropped
        self.waits = self.events = self.ticks = 0
        self.streams: list[FakeStream] = []
        self._current = [FakeStream(self, index) for index in range(devices)]

    def device_count(self) -> int:
        return len(self._current)

    def is_available(self) -> bool:
        return True

    def current_stream(self, index: int) -> FakeStream:
        return self._current[index]

    def set_current(self, stream: FakeStream) -> FakeStream:
        before = self._current[stream.device]
        self._current[stream.device] = stream
        return before

    def Stream(self, device: int) -> FakeStream:
        return FakeStream(self, device)

    def Event(self, enable_timing: bool = False, interprocess: bool = False) -> FakeEvent:
        self.events += 1
        return FakeEvent(self, crosses=interprocess or self.plain_events_cross)

    def stream(self, stream: FakeStream) -> _On:
        return _On(self, stream)

    def synchronize(self, index: int) -> None:
        self._run()
        for stream in self.streams:
            if stream.device == index:
                stream.check()

    def _run(self) -> None:
        """Let streams do what they have, in an order that is drawn."""
        while busy := [stream for stream in self.streams if stream.tasks]:
            ready = [stream for stream in busy if stream.is_ready]
            if not ready:
                for stream in busy:
                    stream.fail(RuntimeError("an event was never recorded"))
                return
            (stream,) = self.random.choices(ready, [stream.speed for stream in ready])
            self.ticks += 1
            stream.step()


class FakeStream:
    """What was put on a stream and is not done yet: a wait for an event, or something to call."""

    def __init__(self, module: FakeModule, device: int) -> None:
        self.module, self.device = module, device
        self.tasks: deque[Callable[[], object] | Wait] = deque()
        self.error: BaseException | None = None
        self.speed = module.random.choice((1.0, 0.1, 0.01))
        module.streams.append(self)

    @property
    def is_ready(self) -> bool:
        head = self.tasks[0]
        return not isinstance(head, Wait) or head.event.reached >= head.count

    def step(self) -> None:
        """Do the first of its things; behind an error nothing is done."""
        head = self.tasks.popleft()
        if isinstance(head, Wait) or self.error is not None:
            return
        try:
            head()
        except BaseException as error:
            self.fail(error)

    def fail(self, error: BaseException) -> None:
        self.error = self.error or error
        self.tasks.clear()

    def wait_event(self, event: FakeEvent) -> None:
        number, self.module.waits = self.module.waits, self.module.waits + 1
        if number == self.module.dropped:
            return
        if event.device not in (None, self.device) and not event.crosses:
            raise RuntimeError("event and stream belong to different devices")
        self.tasks.append(Wait(event, event.count))

    def check(self) -> None:
        if self.error is not None:
            raise RuntimeError("a task of a stream failed") from self.error


class FakeEvent:
    """How often it was recorded, and how often that was reached."""

    def __init__(self, module: FakeModule, *, crosses: bool) -> None:
        self.module, self.crosses = module, crosses
        self.count = self.reached = self.at = 0
        self.device: int | None = None

    def record(self, stream: FakeStream) -> None:
        if self.device not in (None, stream.device):
            raise RuntimeError("an event belongs to the device that recorded it first")
        self.device = stream.device
        self.count += 1
        stream.tasks.append(partial(self._reach, self.count))

    def _reach(self, count: int) -> None:
        self.reached, self.at = max(self.reached, count), self.module.ticks

    def query(self) -> bool:
        return self.reached >= self.count

    def elapsed_time(self, other: FakeEvent) -> float:
        """Return milliseconds, as torch does."""
        return (other.at - self.at) * TICK_MS


@dataclass(frozen=True)
class Wait:
    event: FakeEvent
    count: int


class _On(TorchDispatchMode):  # type: ignore[misc]
    """What writes in the block goes to a stream, which is the current one of its device."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Nothing is compiled here: torch needs not import its compiler to leave it out."""
        return False

    def __init__(self, module: FakeModule, stream: FakeStream) -> None:
        super().__init__()
        self._module, self._stream = module, stream

    def __enter__(self) -> Any:
        self._before = self._module.set_current(self._stream)
        return super().__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        super().__exit__(kind, error, trace)
        self._module.set_current(self._before)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        given = kwargs or {}
        if not func._schema.is_mutable:
            return func(*args, **given)
        self._stream.tasks.append(partial(func, *args, **given))
        return given.get("out", args[0])
