"""The data sizes at which the choice of an executor changes, and the conditions that change it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from hccl_py.call.config import Config
from hccl_py.call.op_param import OpParam
from hccl_py.selection.hccl import HcclChoice
from hccl_py.selection.rules import Rule
from hccl_py.topology.topology import Topology


class Choice(NamedTuple):
    """The executor that runs, HCCL's (None where it refuses), `is_same`: both do the same; and the
    algorithm of each level that runs.
    """

    executor: str
    hccl_executor: str | None
    is_same: bool = False
    algorithm: tuple[tuple[str, str], ...] = ()


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


def reason_of_change(below: OpParam, above: OpParam, topology: Topology, config: Config) -> str:
    """Return the condition that lets HCCL's rules choose otherwise for the larger one of two calls
    that differ in size; empty where the rules choose the same.
    """
    small, large = (HcclChoice(op, topology, config) for op in (below, above))
    places = [small.rows.index(small.row), large.rows.index(large.row)]
    if places[0] == places[1]:
        different = small.levels.get("level1") != large.levels.get("level1")
        return large.why_levels["level1"] if different else ""
    if places[1] < places[0]:
        began = next((c for c in large.row.when if not c.holds(small.facts)), None)
        if began is None:
            return f"{large.row.engine} leaves smaller calls: {_leaving(large.row, small).leaves}"
        if began.fact == "level1":
            return f"level1 is {large.facts.level1}: {large.why_levels['level1']}"
        return began.format_condition(large.facts)
    ended = next((c for c in small.row.when if not c.holds(large.facts)), None)
    if ended is None:
        return f"{small.row.engine} leaves it: {_leaving(small.row, large).leaves}"
    return f"{small.row.executor or 'a refusal'} {ended.format_condition(large.facts)}"


def _leaving(row: Rule, choice: HcclChoice) -> Rule:
    """Return the row by which the engine of a row that holds hands a call to the next engine."""
    rows = (one for one in choice.rows if one.engine == row.engine and one.leaves)
    return next(one for one in rows if one.holds(choice.facts))


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
