"""One order of the instructions of all ranks, for kernels that run one after the other.

Streams of a program run side by side; a kernel of the CCU is one sequence. Ranks that do the same
get the same sequence, and no sequence may wait for what another one has behind a wait of its own.
So instructions of groups of ranks are nodes of one graph: an edge leads from an instruction to the
next one of its stream, and from a post to the wait that consumes it. Any order along its edges has
no deadlock; here nodes stand by the longest way to them, so that what can begin together does.
Posts and waits between streams have no length: a kernel has nothing in their place.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hccl_interop.cpp.export.sizes import SizeFields
from hccl_py.enums import WAIT
from hccl_py.errors import NotSupportedError
from hccl_py.program.instruction import Instruction
from hccl_py.program.matching import Linked, match
from hccl_py.program.program import Program
from hccl_py.values import IntArray

DIES = 2

NO_DIE = -1
"""The die of posts and waits between streams, and of moves without bytes: no kernel has them."""


@dataclass(frozen=True)
class AlikeRanks:
    """Ranks of a batch whose instructions use the same dies, and the place of each in the batch."""

    batch: int
    ranks: IntArray
    places: IntArray
    instructions: tuple[Instruction, ...]
    dies: tuple[int, ...]


@dataclass(frozen=True)
class InstructionOrder:
    """Groups of ranks, and the graph of their instructions: node `first[g] + k` is the k-th of
    group g. `previous` has the node before it on its stream, -1 for none, `posts` the posts that a
    wait consumes at some rank, and `nodes` are all nodes in an order along the edges.
    """

    groups: tuple[AlikeRanks, ...]
    first: IntArray
    previous: tuple[int, ...]
    posts: tuple[tuple[int, ...], ...]
    nodes: tuple[int, ...]

    @cached_property
    def group_of(self) -> list[int]:
        """The group of every node."""
        lengths = np.diff(self.first)
        return np.repeat(np.arange(len(self.groups)), lengths).tolist()

    def die(self, node: int) -> int:
        """Return the die of an instruction, NO_DIE for a local post or wait."""
        group = self.group_of[node]
        return self.groups[group].dies[node - int(self.first[group])]

    def instruction(self, node: int) -> Instruction:
        """Return the instruction of a node."""
        group = self.group_of[node]
        return self.groups[group].instructions[node - int(self.first[group])]


def order_of(program: Program, sizes: SizeFields, die_of_end: IntArray) -> InstructionOrder:
    """Return the order of a program; `die_of_end` has the die of every end of a channel.

    Raises NotSupportedError for a program that never ends, or that loses posts.
    """
    linked = match(program)
    if len(linked.stuck) or len(linked.overruns) or len(linked.leftover):
        raise NotSupportedError(
            "The program has posts or waits without a counterpart, and kernels need both.",
            "`hccl-py check` names them.",
        )
    groups = _groups(program, sizes, die_of_end)
    found = _ordered(program, linked, groups)
    if found is None:  # ranks of a group wait for each other in a circle: each is one of its own
        groups = [one for group in groups for one in _apart(group)]
        found = _ordered(program, linked, groups)
    assert found is not None, "the walk has ended, so tasks have an order"
    return found


def _groups(program: Program, sizes: SizeFields, die_of_end: IntArray) -> list[AlikeRanks]:
    tasks, found = program.tasks, []
    for number, batch in enumerate(program.batches):
        rows = tasks.first[batch.ranks][:, None] + np.arange(len(batch.instructions))
        ends = tasks.end[rows]
        dies = np.where(ends >= 0, die_of_end[ends] if len(die_of_end) else 0, NO_DIE)
        is_move = [
            one.kind.moves_data and not sizes.is_empty(number, k)
            for k, one in enumerate(batch.instructions)
        ]
        dies[
            :,
            [
                one.kind.moves_data and not moved
                for one, moved in zip(batch.instructions, is_move, strict=True)
            ],
        ] = NO_DIE
        alike: dict[bytes, list[int]] = defaultdict(list)
        for place, row in enumerate(dies):
            alike[row.tobytes()].append(place)
        for members in alike.values():
            places = np.array(members)
            every = tuple(batch.instructions)
            local = _local_dies(every, is_move, dies[members[0]].tolist())
            found.append(AlikeRanks(number, batch.ranks[places], places, every, local))
    return found


def _local_dies(
    instructions: Sequence[Instruction], is_move: Sequence[bool], dies: list[int]
) -> tuple[int, ...]:
    """Return the dies of all instructions: moves in a rank's own memory are where the next task of
    their stream is, or the last one.
    """
    usual = next((die for die in dies if die != NO_DIE), 0)
    for numbers in (range(len(dies) - 1, -1, -1), range(len(dies))):
        near: dict[int, int] = {}
        for k in numbers:
            stream = instructions[k].stream
            if dies[k] != NO_DIE:
                near[stream] = dies[k]
            elif is_move[k] and stream in near:
                dies[k] = near[stream]
    return tuple(
        usual if moved and die == NO_DIE else die for moved, die in zip(is_move, dies, strict=True)
    )


def _apart(group: AlikeRanks) -> list[AlikeRanks]:
    return [
        AlikeRanks(group.batch, group.ranks[k : k + 1], group.places[k : k + 1], *rest)
        for rest in ((group.instructions, group.dies),)
        for k in range(len(group.ranks))
    ]


def _ordered(program: Program, linked: Linked, groups: list[AlikeRanks]) -> InstructionOrder | None:
    """Return the order of groups; None where their instructions have none."""
    lengths = [len(group.instructions) for group in groups]
    first = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    node_of = _nodes_of_tasks(program, groups, first)
    previous = [-1] * int(first[-1])
    for group, start in zip(groups, first.tolist(), strict=False):
        last: dict[int, int] = {}
        for k, one in enumerate(group.instructions):
            previous[start + k] = last.get(one.stream, -1)
            last[one.stream] = start + k
    waits = np.flatnonzero(program.tasks.kind == WAIT)
    pairs = np.stack([node_of[waits], node_of[linked.post_of[waits]]], axis=1)
    posts: list[list[int]] = [[] for _ in previous]
    for wait, post in np.unique(pairs, axis=0).tolist():
        posts[wait].append(post)
    has_length = [die != NO_DIE for group in groups for die in group.dies]
    nodes = _along(previous, posts, has_length)
    if nodes is None:
        return None
    return InstructionOrder(
        tuple(groups), first, tuple(previous), tuple(map(tuple, posts)), tuple(nodes)
    )


def _nodes_of_tasks(program: Program, groups: list[AlikeRanks], first: IntArray) -> IntArray:
    node_of = np.empty(len(program.tasks), np.int64)
    for group, start in zip(groups, first.tolist(), strict=False):
        numbers = np.arange(len(group.instructions))
        rows = program.tasks.first[group.ranks][:, None] + numbers
        node_of[rows] = start + numbers
    return node_of


def _along(previous: list[int], posts: list[list[int]], has_length: list[bool]) -> list[int] | None:
    """Return the nodes by the longest way to each; None where edges make a circle."""
    after: list[list[int]] = [[] for _ in previous]
    left = [0] * len(previous)
    for node, (one, others) in enumerate(zip(previous, posts, strict=True)):
        for before in (*(() if one < 0 else (one,)), *others):
            after[before].append(node)
            left[node] += 1
    way = [0] * len(previous)
    ready = [node for node, count in enumerate(left) if not count]
    for node in ready:
        for other in after[node]:
            way[other] = max(way[other], way[node] + has_length[node])
            left[other] -= 1
            if not left[other]:
                ready.append(other)
    if len(ready) < len(previous):
        return None
    # At the end of equal ways, those without length come first, as they were met.
    turn = {node: (has_length[node], 0 if has_length[node] else k) for k, node in enumerate(ready)}
    return sorted(ready, key=lambda node: (way[node], *turn[node], node))
