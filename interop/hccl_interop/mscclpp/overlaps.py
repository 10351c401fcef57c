"""Ranges of bytes, and which of them have bytes in common with another range."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Overlaps(Generic[Item]):
    """Items at ranges of bytes, given as (begin, stop, item); ranges hold a byte or more."""

    def __init__(self, ranges: Iterable[tuple[int, int, Item]]) -> None:
        self._ranges = sorted(ranges, key=lambda found: found[:2])
        self._begins = [begin for begin, _, _ in self._ranges]
        self._ends = list(accumulate((stop for _, stop, _ in self._ranges), max))

    def with_bytes_of(self, begin: int, stop: int) -> Iterator[Item]:
        """Yield the items that have bytes in common with a range, the last one by address first."""
        at = bisect_left(self._begins, stop)
        while at and self._ends[at - 1] > begin:
            at -= 1
            if self._ranges[at][1] > begin:
                yield self._ranges[at][2]
