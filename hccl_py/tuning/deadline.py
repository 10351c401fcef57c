"""Giving up in time what runs in Python."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["TooLongError", "at_most"]


class TooLongError(BaseException):
    """What was to be done took too long; no `except Exception` of an author stops it."""


@contextmanager
def at_most(seconds: float | None) -> Iterator[None]:
    """Raise TooLongError in the block after so many seconds of a core; None: it may take for ever.

    Only the main thread of a process can be interrupted; other threads go on to the end.
    """
    if seconds is None or threading.current_thread() is not threading.main_thread():
        yield
        return

    def give_up(number: int, frame: FrameType | None) -> None:
        raise TooLongError

    before = signal.signal(signal.SIGPROF, give_up)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
