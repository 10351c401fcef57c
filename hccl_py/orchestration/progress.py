"""A watch over an author's code: a loop that records nothing ends, at the line where it is."""

from __future__ import annotations

import _thread
import ctypes
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache

LONGEST_S = 8.0
"""Seconds of the thread's work in which something has to be recorded: what it waits for, a debugger
or other processes, does not count.
"""

_LOOK_S = 0.5


class NoProgressError(BaseException):
    """Code of an author that works and records nothing; no `except Exception` there stops it."""

    def __init__(self) -> None:
        super().__init__(f"{LONGEST_S:g} s of work recorded nothing: a loop here does not end")


@contextmanager
def watched(progress: Callable[[], object]) -> Iterator[None]:
    """Raise NoProgressError in this thread where `progress` stays the same for too long."""
    watch, watcher = _Watch(progress), _watcher_of(os.getpid())
    watcher.add(watch)
    try:
        yield
    finally:
        watch.ended = True  # an error raised in the lines below finds it so
        watcher.remove(watch)
        if watch.is_asked():
            _take_back(watch.thread)


class _Watch:
    """A block that has begun; its progress, and its work, at the last look that found some."""

    def __init__(self, progress: Callable[[], object]) -> None:
        self.thread = threading.get_ident()
        self.ended = False
        self._progress, self._worked = progress, _worked(self.thread)
        self._before: object = self  # no look has been yet
        self._work = 0.0
        self._asked = False
        self._looking = threading.Lock()

    def look(self) -> None:
        """Ask the block's thread to raise an error if there was no progress for too long."""
        with self._looking:
            if self.ended:
                return
            now = self._progress()
            if now != self._before:
                self._before, self._work = now, self._worked()
            elif self._worked() - self._work >= LONGEST_S:
                self._asked = True
                _raise_in(self.thread, NoProgressError)

    def is_asked(self) -> bool:
        """Tell if an error has been asked for. An ended block is asked for none after this."""
        with self._looking:
            return self._asked


class _Watcher:
    """One thread that looks at all blocks of a process: to start one for every block would take
    longer than many a recording. It ends where a look finds no block, and a later one starts it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watches: set[_Watch] = set()
        self._runs = False

    def add(self, watch: _Watch) -> None:
        """Look at a block from now on."""
        with self._lock:
            self._watches.add(watch)
            if not self._runs:
                _thread.start_new_thread(self._run, ())
                self._runs = True

    def remove(self, watch: _Watch) -> None:
        """Look at a block no longer."""
        with self._lock:
            self._watches.discard(watch)

    def _run(self) -> None:
        while self._look():
            time.sleep(_LOOK_S)

    def _look(self) -> bool:
        with self._lock:
            watches = tuple(self._watches)
            self._runs = bool(watches)
        for watch in watches:
            watch.look()
        return bool(watches)


@lru_cache(maxsize=1)
def _watcher_of(process: int) -> _Watcher:
    """Return the watcher of a process; a process that was forked has no thread but its own."""
    return _Watcher()


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
