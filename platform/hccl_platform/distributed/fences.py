"""Fences: loads and stores of shared memory in order, without compiled code.

Processors of the x86 family keep that order, except for a store and a later load of another word.
Others may reorder any two accesses. Releasing a lock and taking it again orders all of them on
every processor: the release waits for all earlier accesses, no later one passes the acquisition,
and the acquisition does not pass the release.
"""

from __future__ import annotations

import platform
import threading

_lock = threading.local()


def fence() -> None:
    """Complete every earlier access of this thread before any later one."""
    lock = getattr(_lock, "lock", None)
    if lock is None:
        lock = _lock.lock = threading.Lock()
    if not lock.locked():  # the first fence, or the last one was interrupted between its halves
        lock.acquire()
    lock.release()
    lock.acquire()


def _nothing() -> None:
    """Do nothing: this processor orders these accesses itself."""


order_accesses = _nothing if platform.machine() in ("x86_64", "AMD64") else fence
"""Keep stores in order among stores, and loads among loads."""
