"""CPU time of child processes: a machine that has other work does not change it much."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass
class Cpu:
    """User and system time, in seconds."""

    seconds: float = 0.0


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@contextmanager
def cpu_of_children() -> Iterator[Cpu]:
    """Measure the child processes that start and end inside the block."""
    found, before = Cpu(), _children()
    yield found
    found.seconds = _children() - before
