"""Numbers at points: a rank, and the counters of the loops, the outermost first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hccl_py.values import IntArray


@dataclass(frozen=True)
class Points:
    """Numbers, and their points, [points, 1 + loops], the rank first."""

    where: IntArray
    values: IntArray

    @classmethod
    def of_ranks(cls, ranks: IntArray, values: npt.NDArray[Any]) -> Points:
        """Return one number per rank."""
        return cls(ranks.reshape(-1, 1), np.asarray(values, np.int64))

    @classmethod
    def looped(cls, turns: Sequence[Points]) -> Points:
        """Return the points of all turns of a loop around the present loops."""
        where = [np.insert(points.where, 1, turn, axis=1) for turn, points in enumerate(turns)]
        return cls(np.concatenate(where), np.concatenate([points.values for points in turns]))

    @classmethod
    def joined(cls, groups: Sequence[Points]) -> Points:
        """Return the points of several groups of ranks."""
        where = np.concatenate([group.where for group in groups])
        return cls(where, np.concatenate([group.values for group in groups]))


def distinct(points: Points) -> tuple[IntArray, IntArray]:
    """Return points and numbers, each pair once."""
    where, values = points.where, points.values
    if depends_on(where, values):
        first, _ = places(where)
        return np.ascontiguousarray(where[first]), np.ascontiguousarray(values[first])
    rows = np.unique(np.concatenate([where, values[:, None]], axis=1), axis=0)
    return np.ascontiguousarray(rows[:, :-1]), np.ascontiguousarray(rows[:, -1])


def places(where: IntArray) -> tuple[IntArray, IntArray]:
    """Return the first place of each of the different points, in their order, and the number of
    every point among them.
    """
    key = np.zeros(len(where), np.int64)
    for column in where.T:  # none is negative
        key = key * (int(column.max()) + 1) + column
    _, first, number = np.unique(key, return_index=True, return_inverse=True)
    return first, number.reshape(-1)


def depends_on(where: IntArray, values: IntArray) -> bool:
    """True if equal points have equal numbers."""
    first, number = places(where)
    return bool((values[first][number] == values).all())


def by_turn(loops: IntArray) -> list[IntArray]:
    """Return the points of every turn."""
    first, number = places(loops)
    return [np.flatnonzero(number == k) for k in range(len(first))]
