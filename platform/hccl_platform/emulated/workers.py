"""Threads that run ranges of tiles."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

RangeRun: TypeAlias = Callable[[int, int], None]


class TileWorkers:
    """The calling thread and its helpers, in all one per core; helpers start when first needed."""

    def __init__(self, threads: int | None = None) -> None:
        self.threads = threads or _cores()
        self._pool: ThreadPoolExecutor | None = None

    def run(self, work: RangeRun, ranges: Sequence[tuple[int, int]]) -> None:
        """Call `work` for every range, in any order; a thread that is free takes the next one."""
        numbers = itertools.count()  # its next() is atomic

        def take() -> None:
            while (number := next(numbers)) < len(ranges):
                work(*ranges[number])

        helpers = [self._submit(take) for _ in range(min(self.threads, len(ranges)) - 1)]
        take()
        for helper in helpers:
            helper()

    def close(self) -> None:
        """Stop the helpers."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None

    def _submit(self, take: Callable[[], None]) -> Callable[[], None]:
        """Start a helper; return a function that waits for it."""
        if self._pool is None:
            from concurrent.futures import ThreadPoolExecutor

            self._pool = ThreadPoolExecutor(self.threads - 1, "hccl-emulated")
        return self._pool.submit(take).result


def _cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):  # Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
