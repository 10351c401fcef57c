"""A module of devices in the place of torch.cuda, for CPU tensors: streams are threads.

What torch writes under `with module.stream(s)` is done by the thread of s, in order, after random
delays; views are made at once. No thread begins before somebody synchronises, so that all of them
run at once; some streams are slower than others. Events have CUDA's meaning: a wait is for the last
record before it, and none where there was none. `plain_events_cross` False makes events as NPUs
have them. `dropped` is the number of a wait that is left out, counted from 0 over all streams.
"""

from __future__ import annotations

import queue
import random
import threading
import time
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

PATIENCE_S = 20


class FakeModule:
    """`close` ends the threads."""

    def __init__(
        self,
        devices: int = 1,
        seed: int = 0,
        delay_s: float = 2e-4,
        *,
        plain_events_cross: bool = True,
        dropped: int | None = None,
    ) -> None:
        self.random, self.delay_s = random.Random(seed), delay_s
        self.plain_events_cross, self.dropped = plain_events_cross, dropped
        self.waits = 0
        self.goes = threading.Event()
        self.streams: list[FakeStream] = []
        self.events = 0
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
        self.goes.set()
        for stream in self.streams:
            stream.tasks.join()
        self.goes.clear()
        for stream in self.streams:
            if stream.device == index:
                stream.check()

    def close(self) -> None:
        self.goes.set()
        for stream in self.streams:
            stream.tasks.put(None)
            stream.thread.join(PATIENCE_S)


class FakeStream:
    """A thread that does one thing after the other."""

    def __init__(self, module: FakeModule, device: int) -> None:
        self.module, self.device = module, device
        self.tasks: queue.Queue[Callable[[], object] | None] = queue.Queue()
        self.error: BaseException | None = None
        self.slowness = module.random.choice((0.0, 0.1, 1.0))
        self.thread = threading.Thread(target=self._work, daemon=True)
        self.thread.start()
        module.streams.append(self)

    def _work(self) -> None:
        while True:
            task = self.tasks.get()
            self.module.goes.wait()
            try:
                if task is None:
                    return
                if self.error is None:
                    task()
            except BaseException as error:
                self.error = error
            finally:
                self.tasks.task_done()

    def wait_event(self, event: FakeEvent) -> None:
        number, self.module.waits = self.module.waits, self.module.waits + 1
        if number == self.module.dropped:
            return
        if event.device not in (None, self.device) and not event.crosses:
            raise RuntimeError("event and stream belong to different devices")
        count = event.count
        self.tasks.put(lambda: event.block(count))

    def pause(self) -> float:
        drawn = self.module.random.random() * self.module.delay_s
        return drawn * self.slowness

    def check(self) -> None:
        if self.error is not None:
            raise RuntimeError("a task of a stream failed") from self.error


class FakeEvent:
    """How often it was recorded, and how often that was reached."""

    def __init__(self, module: FakeModule, *, crosses: bool) -> None:
        self.module, self.crosses = module, crosses
        self.changed = threading.Condition()
        self.count = self.reached = 0
        self.device: int | None = None
        self.at = 0.0

    def record(self, stream: FakeStream) -> None:
        if self.device not in (None, stream.device):
            raise RuntimeError("an event belongs to the device that recorded it first")
        self.device = stream.device
        self.count += 1
        stream.tasks.put(partial(self._reach, self.count))

    def _reach(self, count: int) -> None:
        with self.changed:
            self.reached, self.at = max(self.reached, count), time.perf_counter()
            self.changed.notify_all()

    def block(self, count: int) -> None:
        with self.changed:
            if not self.changed.wait_for(lambda: self.reached >= count, PATIENCE_S):
                raise RuntimeError("an event was never recorded")

    def query(self) -> bool:
        return self.reached >= self.count

    def elapsed_time(self, other: FakeEvent) -> float:
        """Return milliseconds, as torch does."""
        return (other.at - self.at) * 1e3


class _On(TorchDispatchMode):  # type: ignore[misc]
    """What writes in the block goes to a stream, which is the current one of its device."""

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
        pause = self._stream.pause()

        def work() -> None:
            time.sleep(pause)
            func(*args, **given)

        self._stream.tasks.put(work)
        return given.get("out", args[0])
