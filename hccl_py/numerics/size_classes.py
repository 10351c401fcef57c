"""Sizes in classes: in a class, one executor with the same tasks and the same set of trees.

The sizes where something may change are read from the rules and from the programs, not tried:

    selection   the bounds of all rows of the decision table, as sizes: between two neighbouring
                ones every condition on a size keeps its value
    tasks       executors record ranges of zero bytes, too, so that their tasks do not depend on the
                size, but for a comparison in their code; two programs of a class have the same
                tasks in the same order and differ only in offsets and sizes
    cuts        HCCL cuts a round into slots, rounds them up to 128 bytes and fills them in order: a
                smaller call has the first slots of a larger one, and so a part of its trees

So a class is named by its trees: those of a call are among them, and a change is searched only
between sizes where they are not, by halving, down to the element. Sizes are looked at beside powers
of two, where slots are partly filled, and at both ends of a class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol

from hccl_py.call.config import Config
from hccl_py.call.op_param import OpParam
from hccl_py.communicator.planning import Plan
from hccl_py.numerics.element_trees import ElementTrees, trees_of
from hccl_py.numerics.sum_trees import SumTree
from hccl_py.selection import Selection
from hccl_py.selection.gathering import gather_facts, served
from hccl_py.selection.rules import Multiple
from hccl_py.selection.rulesets import ruleset_of
from hccl_py.selection.spans import Choice, spans
from hccl_py.topology.topology import Topology

KEPT = 512
"""Calls whose trees are kept while classes are searched."""


class SizedCalls(Protocol):
    """Plans a call at any count of elements: the choice alone, or with its program."""

    def select(self, count: int) -> Selection:
        """Return the choice of an executor."""

    def plan(self, count: int) -> Plan:
        """Return the plan."""


@dataclass(frozen=True)
class SizeClass:
    """Counts `first` .. `last` of elements with one executor, and the trees of all of them.

    `least` and `most` are how many of the trees the calls at both ends and those between that were
    looked at have.
    """

    first: int
    last: int
    selection: Selection
    trees: tuple[SumTree, ...]
    least: int
    most: int
    is_fixed: bool

    @property
    def executor(self) -> str:
        """The executor and its algorithms, in one phrase."""
        return " ".join([self.selection.executor, *self.selection.algorithm.values()])


class TreesBySize:
    """The trees of a call at any size, each found once."""

    def __init__(self, calls: SizedCalls, *, is_trusted: bool = True) -> None:
        self.calls, self._is_trusted = calls, is_trusted
        self.at = lru_cache(KEPT)(self._at)
        self._set = lru_cache(KEPT)(lambda count: frozenset(self.at(count).trees))

    def _at(self, count: int) -> ElementTrees:
        return trees_of(self.calls.plan(count).program, is_trusted=self._is_trusted)

    def classes(self, first: int, last: int, bounds: Sequence[int] = ()) -> list[SizeClass]:
        """Return the classes of counts first .. last; `bounds` are counts at which the choice may
        change.
        """
        chosen = sorted({first, last, *(p for p in _beside(bounds, last) if first < p < last)})
        found: list[SizeClass] = []
        for span in spans(chosen, self._choice):
            inside = [p for p in _looked_at(span.last) if span.first < p < span.last]
            found += self._of_span([*inside, span.last], span.first)
        return found

    def _choice(self, count: int) -> Choice:
        selection = self.calls.select(count)
        return Choice(" ".join([selection.executor, *selection.algorithm.values()]), None)

    def _of_span(self, points: Sequence[int], first: int) -> Iterator[SizeClass]:
        """Yield the classes of counts `first` .. points[-1], which have one executor."""
        known, last, waiting = [first], points[-1], [*points]
        while waiting:
            point = waiting.pop(0)
            if point <= known[-1]:
                continue
            while not self._go_together([*known, point]):
                change = self._change(known, point)
                yield self._class(known, change - 1)
                known = [change]
            if point != known[-1]:
                known.append(point)
            if self.at(point).round_count and point != last:
                # Larger calls take more rounds of the same, and a last one of any size.
                waiting = sorted({*_rests(self.at(point).round_count, point, last), last})
        yield self._class(known, last)

    def _go_together(self, counts: Sequence[int]) -> bool:
        """Return True if the trees of all counts are among those of one of them."""
        sets = [self._set(count) for count in counts]
        largest = max(sets, key=len)
        return all(found <= largest for found in sets)

    def _change(self, known: Sequence[int], point: int) -> int:
        """Return the first count above those known whose trees do not go with theirs."""
        low, high = known[-1], point
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._go_together([*known, middle]) else (low, middle)
        return high

    def _class(self, known: Sequence[int], last: int) -> SizeClass:
        counts = sorted({*known, last})
        maps = [self.at(count) for count in counts]
        trees = max((found.trees for found in maps), key=len)
        numbers = [len(found.trees) for found in maps]
        return SizeClass(
            counts[0],
            last,
            self.calls.plan(counts[0]).selection,
            trees,
            min(numbers),
            max(numbers),
            all(found.is_fixed for found in maps),
        )


def _beside(bounds: Sequence[int], last: int) -> Iterator[int]:
    """Yield counts at which choices are compared: beside bounds, and powers of two."""
    for bound in bounds:
        yield from (bound - 1, bound, bound + 1)
    yield from (1 << k for k in range(last.bit_length()))


def _looked_at(last: int) -> Iterator[int]:
    """Yield counts whose trees are looked at, at powers of four and between, where slots are partly
    filled.
    """
    for k in range(0, last.bit_length(), 2):
        yield from (1 << k, (3 << k) + 1)


def _rests(round_count: int, low: int, last: int) -> Iterator[int]:
    """Yield counts whose last round is short: one element, and up to a whole round."""
    base = -(-low // round_count) * round_count
    rest = 1
    while rest < round_count and base + rest < last:
        yield base + rest
        rest *= 64


def selection_bounds(op: OpParam, topology: Topology, config: Config) -> list[int]:
    """Return the counts of elements at which a condition of the decision table changes: the bounds
    of its rows on facts that grow with the size.
    """
    config = replace(config, strict=False)
    facts = [
        gather_facts(replace(op, count=count), topology, config) for count in (1 << 20, 1 << 21)
    ]
    device, name = topology.product.device, served(op).name
    found: set[int] = set()
    for rule in ruleset_of(config).rows(device, name):
        for condition in rule.when:
            rate = _rate(condition.fact, facts)
            if rate:
                bound = condition.value
                bound = bound.of(facts[0]) if isinstance(bound, Multiple) else bound
                if isinstance(bound, int | Fraction):
                    found.add(int(bound / rate))
    return sorted(count for count in found if count > 0)


def _rate(fact: str, facts: Sequence[Any]) -> Fraction | None:
    """Return the growth of a fact by element; None where it does not grow with the size."""
    one, two = (getattr(found, fact) for found in facts)
    if isinstance(one, bool) or not isinstance(one, int) or one == two:
        return None
    return Fraction(two - one, facts[1].count - facts[0].count)


def calls_of(plan: Callable[[int], Plan], select: Callable[[int], Selection]) -> SizedCalls:
    """Return calls from two functions of a count."""
    return _SizedCalls(plan, select)


@dataclass(frozen=True)
class _SizedCalls:
    _plan: Callable[[int], Plan]
    _select: Callable[[int], Selection]

    def plan(self, count: int) -> Plan:
        return self._plan(count)

    def select(self, count: int) -> Selection:
        return self._select(count)
