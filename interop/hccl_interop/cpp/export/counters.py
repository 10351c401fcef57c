"""Formulas of the counters of loops: 15 - step, 1 << step, 8 >> step, also modulo an axis."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hccl_interop.cpp.export.formulas import Binary, Formula, Number, Variable, minus, plus, times
from hccl_interop.cpp.export.points import depends_on
from hccl_py.values import IntArray


@dataclass(frozen=True)
class Axis:
    """A cyclic variable: its values at the points, and their number as integer and as formula."""

    variable: Formula
    at: IntArray
    size: int
    count: Formula


def starting(number: int, around: Axis | None, least: int) -> Formula:
    """Return a number; modulo an axis as 3 or as kRanks - 1, such that it is not negative after the
    addition of `least`, the minimum of the other summands.
    """
    if around is None:
        return Number(number)
    number += -(-max(0, -(number + least)) // around.size) * around.size
    if number >= around.size or (number * 2 > around.size and number + least >= 0):
        return plus(around.count, Number(number - around.size))
    return Number(number)


def linear(at: IntArray, values: IntArray, around: Axis | None) -> Formula | None:
    """Return a number plus multiples of the counters."""
    steps = np.array([_step(at, values, k, around) for k in range(at.shape[1])], np.int64)
    start = int(values[0] - at[0] @ steps)
    wrong = values - start - at @ steps
    if (wrong if around is None else wrong % around.size).any():
        return None
    if around is not None:
        start %= around.size
    found: Formula = Number(0)
    for k in np.flatnonzero(steps > 0).tolist():
        found = plus(found, times(Variable(f"loop{k}"), Number(int(steps[k]))))
    found = plus(found, starting(start, around, int((at @ steps).min())))
    for k in np.flatnonzero(steps < 0).tolist():
        found = minus(found, times(Variable(f"loop{k}"), Number(int(-steps[k]))))
    return found


def _step(at: IntArray, values: IntArray, loop: int, around: Axis | None) -> int:
    """Return the growth of a number with one counter."""
    rest = np.delete(at, loop, axis=1)
    order = np.flatnonzero((rest == rest[0]).all(axis=1))
    order = order[np.argsort(at[order, loop])]
    if len(order) < 2 or at[order[1], loop] != at[order[0], loop] + 1:
        return 0
    step = int(values[order[1]] - values[order[0]])
    if around is None:
        return step
    step %= around.size
    return step - around.size if step * 2 > around.size else step


def growing(at: IntArray, values: IntArray, around: Axis | None) -> Formula | None:
    """Return a power of two of one counter, times a number: 1 << step, 8 >> step."""
    for loop in range(at.shape[1]):
        if not depends_on(at[:, [loop]], values):
            continue
        turns, first = np.unique(at[:, loop], return_index=True)
        if len(turns) < 2 or (turns != np.arange(len(turns))).any():
            continue
        power = _power(values[first], loop)
        is_line = len(turns) == 2 and around is not None
        if power is not None and not is_line:
            return power
        if around is not None:
            power = _power(around.size - values[first], loop)
            if power is not None:
                return minus(around.count, power)
    return None


def _power(numbers: IntArray, loop: int) -> Formula | None:
    first, turns = int(numbers[0]), np.arange(len(numbers))
    if first < 1 or len(numbers) > 40:
        return None
    is_line = len(numbers) == 2 and first == 1
    if (numbers == first << turns).all() and not is_line:
        return Binary("<<", Number(first), Variable(f"loop{loop}"))
    if first & (first - 1) == 0 and numbers[-1] > 0 and (numbers == first >> turns).all():
        return Binary(">>", Number(first), Variable(f"loop{loop}"))
    return None
