"""Giving up in time what runs in Python."""

from __future__ import annotations

import gc
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["TooLongError", "at_most"]


SHORTEST_S = 1e-6
"""What a timer can tell from 0, which would be for ever."""


AGAIN_S = 0.001
"""Seconds until the next attempt, where the first one would be lost."""


class TooLongError(BaseException):
    """What was to be done took too long; no `except Exception` of an author stops it."""


@contextmanager
def at_most(seconds: float | None) -> Iterator[None]:
    """Raise TooLongError in the block after so many seconds of a core; None: it may take for ever.

    Only the main thread of a process can be interrupted; other threads go on to the end. A timer of
    a profiler pauses meanwhile.
    """
    if seconds is None or threading.current_thread() is not threading.main_thread():
        yield
        return

    def give_up(number: int, frame: FrameType | None) -> None:
        if _would_be_lost(frame):
            signal.setitimer(signal.ITIMER_PROF, AGAIN_S)
            return
        raise TooLongError

    before = signal.signal(signal.SIGPROF, give_up)
    others = signal.setitimer(signal.ITIMER_PROF, max(seconds, SHORTEST_S))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
        signal.setitimer(signal.ITIMER_PROF, *others)


def _would_be_lost(frame: FrameType | None) -> bool:
    """Whether what is raised here is swallowed: in callbacks of the garbage collector, and where
    objects end.
    """
    callbacks = {getattr(callback, "__code__", None) for callback in gc.callbacks}
    while frame is not None:
        if frame.f_code in callbacks or frame.f_code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False
