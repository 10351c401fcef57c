"""The data sizes at which the choice of an executor changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple


class Choice(NamedTuple):
    """The executor that runs, HCCL's (None where it refuses), and `is_same`: both do the same."""

    executor: str
    hccl_executor: str | None
    is_same: bool = False


class Span(NamedTuple):
    """Sizes in bytes, both ends included, with the same choice."""

    first: int
    last: int
    choice: Choice


def spans(points: Sequence[int], choice: Callable[[int], Choice]) -> list[Span]:
    """Return the sizes between the first and the last point, by choice.

    A change between two neighbouring points is located to the byte.
    """
    choices = [choice(point) for point in points]
    found = [Span(points[0], points[0], choices[0])]
    for low, high, below, above in zip(points, points[1:], choices, choices[1:], strict=False):
        for size, new in _changes(low, high, below, above, choice):
            found[-1] = found[-1]._replace(last=size - 1)
            found.append(Span(size, size, new))
        found[-1] = found[-1]._replace(last=high)
    return found


def _changes(
    low: int, high: int, below: Choice, above: Choice, choice: Callable[[int], Choice]
) -> Iterator[tuple[int, Choice]]:
    """Yield the sizes in low + 1 .. high at which a new choice begins, by bisection."""
    if below == above:
        return
    if high == low + 1:
        yield high, above
        return
    middle = (low + high) // 2
    between = choice(middle)
    yield from _changes(low, middle, below, between, choice)
    yield from _changes(middle, high, between, above, choice)
