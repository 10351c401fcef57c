"""Which of the two buffers that alternate from call to call a run works in."""

from __future__ import annotations

from collections import Counter

from hccl_py.program.program import Program


class Halves:
    """Counts the runs of every tag whose program has buffers that alternate."""

    def __init__(self) -> None:
        self._runs: Counter[str] = Counter()

    def next(self, tag: str, program: Program) -> int:
        """Return 0 for runs 0, 2, 4, ... of a tag, 1 for those between; programs without buffers
        that alternate are always in 0, and do not count.
        """
        if not program.alternating:
            return 0
        self._runs[tag] += 1
        return (self._runs[tag] - 1) % 2
