"""A watch over an author's code: a loop that records nothing ends, at the line where it is."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

LONGEST_S = 8.0
"""Seconds in which something has to be recorded."""

LEAST_WORK_S = 2.0
"""Seconds of them in which the thread works: a pause, as in a debugger, is no loop."""

_LOOK_S = 0.5


class NoProgressError(BaseException):
    """Code of an author that works and records nothing; no `except Exception` there stops it."""

    def __init__(self) -> None:
        super().__init__(f"{LONGEST_S:g} s of work recorded nothing: a loop here does not end")


@contextmanager
def watched(progress: Callable[[], object]) -> Iterator[None]:
    """Raise NoProgressError in this thread where `progress` stays the same for too long."""
    ended, thread = threading.Event(), threading.get_ident()
    worked = _worked(thread)
    asked = threading.Event()

    def watch() -> None:
        before, since, work = progress(), time.monotonic(), worked()
        while not ended.wait(_LOOK_S):
            now = progress()
            if now != before:
                before, since, work = now, time.monotonic(), worked()
            elif time.monotonic() - since >= LONGEST_S and worked() - work >= LEAST_WORK_S:
                asked.set()
                _raise_in(thread, NoProgressError)

    watcher = threading.Thread(target=watch, name="hccl-py-progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
        if asked.is_set():
            _take_back(thread)


def _worked(thread: int) -> Callable[[], float]:
    """Return a clock of the seconds that a thread works."""
    if hasattr(time, "pthread_getcpuclockid"):
        clock = time.pthread_getcpuclockid(thread)
        return lambda: time.clock_gettime(clock)
    return time.process_time


def _take_back(thread: int) -> None:
    """Take an error that was asked for and may not have come yet, in the thread itself.

    Asking for no error would leave CPython 3.11 with a signal that it never clears: every function
    that is traced or profiled from then on would never begin.
    """
    try:
        _raise_in(thread, NoProgressError)
        for _ in range(1_000_000):
            pass
    except NoProgressError:
        pass


def _raise_in(thread: int, error: type[BaseException]) -> None:
    """Ask a thread to raise an error at its next instruction."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error))
