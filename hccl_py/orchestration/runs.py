"""The runs of adjacent chunks in a series of chunks."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from hccl_py.values import IntArray, count_up


class AdjacentRuns:
    """For every first index: the runs of adjacent places that a series covers (low and high place
    of each), in the order of places; not kept where all are one place long and the order is that of
    the series.

    Indices fall into cycles: the indices that a stride visits until it is back at its beginning.
    The series that cover a chunk begin up to k - 1 strides before it on its cycle, and those in
    which a run begins there do not cover the chunk at the place before. So all of them are found in
    windows on cycles, without a look at all pairs of a first index and a place.
    """

    def __init__(
        self,
        n: int,
        stride: int,
        k: int,
        order: tuple[int, ...] | None,
        merge: bool,
    ) -> None:
        self._length = n // math.gcd(stride, n)
        self.covered = min(k, self._length)
        cycles = np.arange(n // self._length)[:, None] + stride * np.arange(self._length)
        self._cycles = cycles % n
        # Of the chunk at every place: its cycle, and where on it.
        chunk = np.arange(n) if order is None else np.argsort(order_table(order))
        at = np.argsort(self._cycles, axis=None)[chunk]
        self._cycle, self._step = np.divmod(at, self._length)
        starts = self._windows(np.arange(n) - 1, merge)
        self.are_kept = order is not None or int(starts[1].sum()) < n * self.covered
        if self.are_kept:
            first, self.low = self._ends(*starts)
            _, self.high = self._ends(*self._windows(np.arange(1, n + 1), merge))
            self.first = np.concatenate([[0], np.cumsum(np.bincount(first, minlength=n))])

    def _windows(self, beside: IntArray, merge: bool) -> tuple[IntArray, IntArray]:
        """Return the series that cover a place but not the one beside it: the number of strides
        before it at which the first of them begins, and their number.
        """
        n = len(beside)
        inside = merge & (beside >= 0) & (beside < n)
        beside = np.where(inside, beside, 0)
        meets = inside & (self._cycle[beside] == self._cycle)
        ahead = (self._step[beside] - self._step) % self._length
        low = np.where(meets, np.maximum(self.covered - ahead, 0), 0)
        high = np.where(meets, np.minimum(self.covered, self._length - ahead), self.covered)
        return low, np.maximum(high - low, 0)

    def _ends(self, low: IntArray, counts: IntArray) -> tuple[IntArray, IntArray]:
        """Return the (first, place) of all windows, sorted by both."""
        place = np.repeat(np.arange(len(low)), counts)
        before = low[place] + count_up(counts)
        first = self._cycles[self._cycle[place], (self._step[place] - before) % self._length]
        by_first = np.argsort(first, kind="stable")
        return first[by_first], place[by_first]


@lru_cache(maxsize=256)
def runs_of(
    n: int, stride: int, k: int, order: tuple[int, ...] | None, merge: bool
) -> AdjacentRuns:
    """Return the runs of a series of `k` of `n` chunks; `merge` where they lie without gaps."""
    return AdjacentRuns(n, stride, k, order, merge)


@lru_cache(maxsize=64)
def order_table(order: tuple[int, ...]) -> IntArray:
    """Return the places of the chunks in logical order."""
    return np.array(order, np.int64)
