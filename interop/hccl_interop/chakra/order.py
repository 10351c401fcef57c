"""The order in which a rank issues its nodes, and the waits of one stream for another.

A trace has dependencies only. A rank issues its nodes in a topological order of them, the first in
the file first; the nodes of one stream run in that order. Between streams a node waits for its
dependencies, unless its stream has waited before for the dependency or for a later node of the same
stream.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from hccl_interop.chakra.values import NodeType, TraceNode
from hccl_py.documents.checks import defect
from hccl_py.errors import FileError


class Move(NamedTuple):
    """A node that is issued: its position in the order, its stream, and the moves, by their
    numbers, that the stream waits for before it.
    """

    position: int
    stream: int
    waits: tuple[int, ...]


def moves_of(
    nodes: Sequence[TraceNode], streams: Sequence[int], *, buffered: bool
) -> tuple[Move, ...]:
    """Return the moves of ordered nodes, all but those whose stream is -1. A node that depends on
    one of these depends on its dependencies instead; so does a node that depends on a send, where
    messages are `buffered`.
    """
    moves: list[Move] = []
    ends: list[dict[int, int]] = [{}] * len(nodes)
    """By position: the last move of every stream that has ended when the node has."""
    known: dict[int, dict[int, int]] = {}
    """By stream: the same for its last move, with the moves that it has waited for."""
    after: list[dict[int, int]] = []
    """By move: its clock, the same."""
    for position, node in enumerate(nodes):
        needed: dict[int, int] = {}
        for dep in node.deps:
            for stream, move in ends[dep].items():
                needed[stream] = max(move, needed.get(stream, -1))
        own = streams[position]
        if own < 0:
            ends[position] = needed
            continue
        clock = dict(known.get(own, {}))
        waits = []
        for stream, move in sorted(needed.items(), key=lambda item: -item[1]):
            if clock.get(stream, -1) < move:
                waits.append(move)
                for other, last in after[move].items():
                    clock[other] = max(last, clock.get(other, -1))
        clock[own] = len(moves)
        moves.append(Move(position, own, tuple(sorted(waits))))
        known[own] = clock
        after.append(clock)
        is_send = node.type is NodeType.COMM_SEND_NODE
        ends[position] = needed if buffered and is_send else {own: len(moves) - 1}
    return tuple(moves)


def ordered(nodes: Sequence[TraceNode]) -> tuple[TraceNode, ...]:
    """Return nodes in topological order; of several ready ones, the first in the file comes next.
    FileError for nodes that wait for each other.
    """
    left = [len(node.deps) for node in nodes]
    behind: list[list[int]] = [[] for _ in nodes]
    for position, node in enumerate(nodes):
        for dep in node.deps:
            behind[dep].append(position)
    ready = [position for position, count in enumerate(left) if not count]
    heapify(ready)
    found = []
    while ready:
        position = heappop(ready)
        found.append(position)
        for follower in behind[position]:
            left[follower] -= 1
            if not left[follower]:
                heappush(ready, follower)
    if len(found) < len(nodes):
        raise _cycle(nodes, left)
    if all(position == number for number, position in enumerate(found)):
        return tuple(nodes)
    number = {position: number for number, position in enumerate(found)}
    return tuple(
        nodes[position]._replace(deps=tuple(number[dep] for dep in nodes[position].deps))
        for position in found
    )


def _cycle(nodes: Sequence[TraceNode], left: Sequence[int]) -> FileError:
    """Return the error for nodes that wait for each other; `left` counts their open waits."""
    stuck = next(position for position, count in enumerate(left) if count)
    # A stuck node waits for a stuck node, so following such waits ends in a cycle.
    seen: set[int] = set()
    while stuck not in seen:
        seen.add(stuck)
        stuck = next(dep for dep in nodes[stuck].deps if left[dep])
    at = f"node {nodes[stuck].id}: dependencies"
    return defect(at, "nodes that end before it", "itself, by way of others", "Break the cycle.")
