"""Amounts of data of a sweep, and the size of the CCL buffers with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from hccl_py.plugins.executor import BySize, Executor
from hccl_py.verifier.sweeps.cases import LARGE_CCL, SMALL_CCL, Cases

ALIGN = 128
"""Bytes to which HCCL rounds slices."""

MOST_ROUNDS = 8
"""Counts that a user gives run with small CCL buffers only where that takes no more rounds."""

Elements = Callable[[int, int, int], int]
"""From bytes of an element, ranks and elements of one round to a count."""


@dataclass(frozen=True)
class Amount:
    """An amount of data, the size of the CCL buffers, and a limit of rounds."""

    elements: Elements
    ccl_bytes: int = LARGE_CCL
    most_rounds: int | None = None


AMOUNTS = (
    Amount(lambda unit, ranks, most: 0),
    Amount(lambda unit, ranks, most: 1),
    Amount(lambda unit, ranks, most: 3),
    Amount(lambda unit, ranks, most: ALIGN // unit - 1),
    Amount(lambda unit, ranks, most: ALIGN // unit + 1),
    Amount(lambda unit, ranks, most: ranks * ALIGN // unit),
    Amount(lambda unit, ranks, most: ranks * ALIGN // unit + 1),
    Amount(lambda unit, ranks, most: 1001),
    Amount(lambda unit, ranks, most: most, SMALL_CCL),
    Amount(lambda unit, ranks, most: most + 1, SMALL_CCL),
    Amount(lambda unit, ranks, most: 2 * most, SMALL_CCL),
    Amount(lambda unit, ranks, most: 2 * most + most // 2 + 1, SMALL_CCL),
)
"""Nothing, one element, few, around the alignment of the whole and of each slice, more than that;
one full round, one with the shortest tail, two full ones, three with a tail.
"""


def amounts_of(cases: Cases, executor: Executor) -> tuple[Amount, ...]:
    """Return the amounts of the options, or the usual ones and both sides of every threshold."""
    amounts: tuple[Amount, ...] = AMOUNTS
    if isinstance(executor, BySize):
        amounts += tuple(map(_up_to, executor.thresholds))
        amounts += tuple(map(_from_on, executor.thresholds))
    if cases.counts:
        amounts = tuple(
            Amount(lambda unit, ranks, most, count=count: count, ccl, rounds)  # type: ignore[misc]
            for count in cases.counts
            for ccl, rounds in ((LARGE_CCL, None), (SMALL_CCL, MOST_ROUNDS))
        )
    if cases.buffsize is not None:
        amounts = tuple(replace(a, ccl_bytes=cases.buffsize << 20) for a in amounts)
    return amounts


def _up_to(threshold: int) -> Amount:
    """Return the largest amount below a size in bytes."""
    return Amount(lambda unit, ranks, most: (threshold - 1) // unit)


def _from_on(threshold: int) -> Amount:
    """Return the smallest amount of at least a size in bytes."""
    return Amount(lambda unit, ranks, most: -(-threshold // unit))
