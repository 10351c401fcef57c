"""Few rows in which every two choices meet: pairwise covering, as testers of many options use it.

Defects mostly need one or two things to come together (an odd rank count, a root, a short tail).
Where a full product would take tens of thousands of calls, some two hundred hold every pair.
Greedy, after Cohen et al., "The AETG system", 1997: each row starts from a pair that is still
missing, and takes the random completion, of a few, that brings most other pairs.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import TypeAlias

import numpy as np

Row: TypeAlias = tuple[int, ...]
"""The number of the chosen value on every axis."""

Pair: TypeAlias = tuple[int, int, int, int]
"""(axis, value, later axis, value)."""

COMPLETIONS = 16
"""Random completions of a pair that are tried."""


def pairs_of(row: Row) -> Iterator[Pair]:
    """Yield every two choices of a row."""
    for (a, x), (b, y) in combinations(enumerate(row), 2):
        yield a, x, b, y


def covering(bases: Sequence[Row], free: Sequence[int]) -> list[Row]:
    """Return rows base + (one value per free axis) that hold every pair that any such row holds.

    `bases` lists the legal choices on the first axes, `free` the sizes of the other axes, whose
    values combine with all bases. The same arguments give the same rows.
    """
    search = _PairSearch(bases, free)
    return [search.take_best_row(pair) for pair in search.wanted if search.is_missing(pair)]


class _PairSearch:
    """The pairs that are still missing, and the bases by the choices and pairs that they hold.

    Every value of every axis has a number; `_missing` is true for two numbers whose pair is still
    missing.
    """

    def __init__(self, bases: Sequence[Row], free: Sequence[int]) -> None:
        self._bases = bases
        self._free = free
        self._width = len(bases[0]) if bases else 0
        self._random = random.Random(0)
        self._holding: dict[tuple[int, ...], list[Row]] = defaultdict(list)
        for base in bases:
            for pair in pairs_of(base):
                self._holding[pair].append(base)
            for choice in enumerate(base):
                self._holding[choice].append(base)
        self.wanted = list(self._all_pairs()) if bases else []
        sizes = [max(values) + 1 for values in zip(*bases, strict=True)] + list(free)
        self._first = np.cumsum([0, *sizes])
        self._missing = np.zeros((self._first[-1], self._first[-1]), np.bool_)
        if self.wanted:
            a, x, b, y = np.array(self.wanted).T
            self._missing[self._first[a] + x, self._first[b] + y] = True
        self._axes = np.triu_indices(len(sizes), 1)

    def is_missing(self, pair: Pair) -> bool:
        """True if no row that was taken holds the pair."""
        a, x, b, y = pair
        return bool(self._missing[self._first[a] + x, self._first[b] + y])

    def take_best_row(self, pair: Pair) -> Row:
        """Return a row with this pair that holds many missing ones, and strike those off."""
        completions = [self._complete(pair) for _ in range(COMPLETIONS)]
        numbers = np.array(completions) + self._first[:-1]
        one, other = (numbers[:, axes] for axes in self._axes)
        best = int(self._missing[one, other].sum(axis=1).argmax())
        self._missing[one[best], other[best]] = False
        return completions[best]

    def _complete(self, pair: Pair) -> Row:
        fixed = {pair[0]: pair[1], pair[2]: pair[3]}
        based = tuple(n for choice in fixed.items() if choice[0] < self._width for n in choice)
        bases = self._holding[based] if based else self._bases
        free = (
            fixed.get(self._width + axis, self._draw(size)) for axis, size in enumerate(self._free)
        )
        return (*bases[self._draw(len(bases))], *free)

    def _draw(self, size: int) -> int:
        return int(self._random.random() * size)

    def _all_pairs(self) -> Iterator[Pair]:
        """Yield the pairs of bases and free axes, bases' own last."""
        choices = [key for key in self._holding if len(key) == 2]
        free = [(self._width + a, n) for a, size in enumerate(self._free) for n in range(size)]
        for choice in choices:
            for other in free:
                yield (*choice, *other)
        for one, other in combinations(free, 2):
            if one[0] != other[0]:
                yield (*one, *other)
        for pair in self._holding:
            if len(pair) == 4:
                yield pair
