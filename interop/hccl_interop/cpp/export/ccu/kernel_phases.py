"""Phases: the kernels of both dies run side by side in each, and one phase after the other.

A kernel uses the channels of one die, and nothing inside of a kernel orders those of two dies. So
an instruction behind one of the other die, at the same rank, is in a later phase. Inside of a
kernel order is kept by the sequence, and by waits for event bits of moves: a wait has just the bits
of the moves that come before the next instruction in the program.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from hccl_interop.cpp.export.ccu.instruction_order import DIES, NO_DIE, InstructionOrder

BITS = 16
"""Bits of an event, and of a notify."""


class KernelAt(NamedTuple):
    """The phase and the die of a kernel."""

    phase: int
    die: int


class IssuedNode(NamedTuple):
    """A node that a kernel issues, and the bit that a move sets, -1 for a post or wait."""

    node: int
    bit: int


class Arrivals(NamedTuple):
    """A wait for bits of an event."""

    event: int
    mask: int


Sequenced = IssuedNode | Arrivals


def kernels_of(order: InstructionOrder) -> dict[KernelAt, list[list[Sequenced]]]:
    """Return the kernels in the order of launch, each as the sequence of every group."""
    places = _phases(order)
    needs = _needs(order)
    nodes: dict[KernelAt, list[list[int]]] = defaultdict(lambda: [[] for _ in order.groups])
    for node in order.nodes:
        if order.die(node) != NO_DIE:
            nodes[KernelAt(places[node], order.die(node))][order.group_of[node]].append(node)
    return {
        place: [list(_sequence(mine, order, needs)) for mine in nodes[place]]
        for place in sorted(nodes)
    }


def _phases(order: InstructionOrder) -> list[int]:
    """Return the phase of every node."""
    phases = [0] * len(order.previous)
    least: list[tuple[int, ...]] = [(0,) * DIES] * len(phases)  # of what follows, by die
    for node in order.nodes:
        die = order.die(node)
        known = [least[order.previous[node]]] if order.previous[node] >= 0 else []
        for post in order.posts[node]:
            if order.die(post) == NO_DIE:
                known.append(least[post])
            else:  # of another rank
                known.append(tuple(phases[post] * (k == die) for k in range(DIES)))
        mine = tuple(max((one[k] for one in known), default=0) for k in range(DIES))
        if die == NO_DIE:
            least[node] = mine
            continue
        phases[node] = mine[die]
        least[node] = tuple(max(mine[k], phases[node] + (k != die)) for k in range(DIES))
    return phases


def _needs(order: InstructionOrder) -> list[frozenset[int]]:
    """Return for every node the moves of its rank that end before it, but for those that end before
    one of these, or before a post or wait of a channel in between.
    """
    none: frozenset[int] = frozenset()
    needs = [none] * len(order.previous)
    open_behind = [none] * len(order.previous)
    for node in order.nodes:
        mine = open_behind[order.previous[node]] if order.previous[node] >= 0 else none
        for post in order.posts[node]:
            if order.die(post) == NO_DIE:
                mine |= open_behind[post]
        if order.die(node) == NO_DIE:
            open_behind[node] = mine
            continue
        needs[node] = mine
        moves = order.instruction(node).kind.moves_data
        open_behind[node] = frozenset((node,)) if moves else none
    return needs


@dataclass
class _OpenBits:
    """The bits of moves that a kernel has issued and not waited for."""

    bits: dict[int, int] = field(default_factory=dict)

    def taken(self, node: int) -> int:
        """Return the first free bit, and take it for a move."""
        used = set(self.bits.values())
        self.bits[node] = next(bit for bit in range(len(used) + 1) if bit not in used)
        return self.bits[node]

    def waits(self, nodes: frozenset[int]) -> Iterator[Arrivals]:
        """Yield the waits for those of some moves that are still open."""
        masks: dict[int, int] = defaultdict(int)
        for node in sorted(nodes & self.bits.keys()):
            event, bit = divmod(self.bits.pop(node), BITS)
            masks[event] |= 1 << bit
        for event in sorted(masks):
            yield Arrivals(event, masks[event])


def _sequence(
    nodes: Sequence[int], order: InstructionOrder, needs: Sequence[frozenset[int]]
) -> Iterator[Sequenced]:
    events = _OpenBits()
    for node in nodes:
        yield from events.waits(needs[node])
        moves = order.instruction(node).kind.moves_data
        yield IssuedNode(node, events.taken(node) if moves else -1)
    yield from events.waits(frozenset(events.bits))
