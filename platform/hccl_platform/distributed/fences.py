"""What keeps loads and stores of shared memory in order, without compiled code.

A processor of the x86 family does so by itself, but for a store and a later load of something else.
Others may reorder any two accesses. Releasing a lock and taking it again orders all of them on
every processor: the release waits for what came before, nothing later passes the taking, and the
taking does not pass the release.
"""

from __future__ import annotations

import platform
import threading

_lock = threading.local()


def fence() -> None:
    """Let every earlier access of this thread be over before any later one."""
    lock = getattr(_lock, "lock", None)
    if lock is None:
        lock = _lock.lock = threading.Lock()
    if not lock.locked():  # the first fence, or the last one was interrupted between its halves
        lock.acquire()
    lock.release()
    lock.acquire()


def _nothing() -> None:
    """Order what this processor orders by itself."""


order_accesses = _nothing if platform.machine() in ("x86_64", "AMD64") else fence
"""Keep stores in order among stores, and loads among loads."""
