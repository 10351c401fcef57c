"""Repeated tasks become loops.

Steps that follow each other several times become one loop whose fields have numbers for every turn;
short repetitions are folded first, so that loops of loops are found, too. A loop stays only where
its fields are formulas: otherwise it would hide tables behind a counter.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from hccl_interop.cpp.export.fitting import Fitter
from hccl_interop.cpp.export.formulas import entries
from hccl_interop.cpp.export.points import Points

_STEP_IN_NUMBERS = 12
"""Numbers of tables that are as long to read as one step."""

_LEAST_OF_TWO = 4
"""Least steps of a turn for a loop of two turns."""

_LONGEST = 64
"""Most steps and loops of one turn."""


@dataclass(frozen=True)
class CppStep:
    """One task: its shape, the same for all ranks and turns, and the fields that differ."""

    shape: Hashable
    fields: dict[str, Points]


@dataclass(frozen=True)
class Loop:
    """Nodes that are repeated."""

    count: Points
    body: tuple[Node, ...]


Node: TypeAlias = CppStep | Loop


def key_of(node: Node) -> Hashable:
    """Return a key; nodes of one key can be turns of one loop."""
    if isinstance(node, CppStep):
        return node.shape
    return ("loop", *(key_of(inner) for inner in node.body))


def joined(nodes: Sequence[Node], *, as_turns: bool) -> Node:
    """Return one node for turns of a loop, or for groups of ranks; their keys are equal."""
    join = Points.looped if as_turns else Points.joined
    first = nodes[0]
    if isinstance(first, CppStep):
        steps = [node for node in nodes if isinstance(node, CppStep)]
        fields = {name: join([step.fields[name] for step in steps]) for name in first.fields}
        return CppStep(first.shape, fields)
    loops = [node for node in nodes if isinstance(node, Loop)]
    bodies = zip(*(loop.body for loop in loops), strict=True)
    body = tuple(joined(turns, as_turns=as_turns) for turns in bodies)
    return Loop(join([loop.count for loop in loops]), body)


def fields_of(node: Node) -> Iterator[Points]:
    """Yield the numbers of all fields, inner loops included."""
    if isinstance(node, CppStep):
        yield from node.fields.values()
        return
    yield node.count
    for inner in node.body:
        yield from fields_of(inner)


def fold(nodes: Sequence[Node], fitter: Fitter) -> list[Node]:
    """Return the nodes with repetitions as loops."""
    return _Folder(fitter).folded(list(nodes))


class _Folder:
    """The search for loops, with the keys and costs seen so far."""

    def __init__(self, fitter: Fitter) -> None:
        self._fitter = fitter
        self._numbers: dict[Hashable, int] = {}
        self._costs: dict[bytes, int] = {}

    def folded(self, nodes: list[Node]) -> list[Node]:
        """Fold turns of one node, then of two, and so on; begin again after a success."""
        length = 1
        while length <= min(_LONGEST, len(nodes) // 2):
            found = self._folded_by(nodes, length)
            if len(found) < len(nodes):
                nodes, length = found, 0
            length += 1
        return nodes

    def _folded_by(self, nodes: list[Node], length: int) -> list[Node]:
        """Fold repetitions of turns of `length` nodes."""
        keys = [self._numbers.setdefault(key_of(node), len(self._numbers)) for node in nodes]
        found: list[Node] = []
        at = 0
        while at < len(nodes):
            turns = 1
            while keys[at : at + length] == keys[at + turns * length : at + (turns + 1) * length]:
                turns += 1
            loop, turns = self._loop(nodes[at : at + turns * length], length, turns)
            if loop is None:
                found.append(nodes[at])
                at += 1
            else:
                found.append(loop)
                at += turns * length
        return found

    def _loop(self, nodes: list[Node], length: int, turns: int) -> tuple[Loop | None, int]:
        """Return a loop of these turns, or of all but the last, where its fields are formulas."""
        for some in (turns, turns - 1):
            if some < 2 or (some == 2 and length < _LEAST_OF_TWO):
                break
            parts = [nodes[k * length : (k + 1) * length] for k in range(some)]
            body = tuple(joined(turn, as_turns=True) for turn in zip(*parts, strict=True))
            least = sum(self._cost(node) for node in nodes[: some * length])
            limit = least + _STEP_IN_NUMBERS * (some - 1) * length // 4
            if sum(self._cost(node) for node in body) <= limit:
                return Loop(self._count(nodes[0], some), body), some
        return None, 1

    def _cost(self, node: Node) -> int:
        """Return the count of numbers in the tables of a node."""
        return sum(self._cost_of(points) for points in fields_of(node))

    def _cost_of(self, points: Points) -> int:
        key = points.where.tobytes() + b"|" + points.values.tobytes()
        if key not in self._costs:
            self._costs[key] = entries(self._fitter.formula(points))
        return self._costs[key]

    def _count(self, node: Node, turns: int) -> Points:
        ranks = np.unique(next(fields_of(node)).where[:, :1], axis=0)
        return Points(ranks, np.full(len(ranks), turns))
