"""What may happen before what, by going through every interleaving of a small program.

A state is how far each stream has got, and what is on its way on each RDMA connection; which
notifies are there follows from it. Nothing here knows how the verifier does it, and nothing is
fast.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import combinations, pairwise
from typing import NamedTuple

from hccl_py.enums import TaskKind
from hccl_py.verifier.analysis.unrolled import Unrolled
from tests.verifier.naive import Byte, Naive


class TooMany(Exception):
    """A program has more states than are looked at."""


class State(NamedTuple):
    """How many nodes each stream has issued, and the nodes under way by end of a transport."""

    at: tuple[int, ...]
    flights: tuple[tuple[int, ...], ...]


class Interleavings:
    """All states of a program that can be reached, notifies counting posts."""

    def __init__(self, run: Unrolled, most: int = 20_000) -> None:
        self.run, self.naive = run, Naive(run)
        queues = [run.nodes[a:b].tolist() for a, b in pairwise(run.first.tolist())]
        self.queues = [queue for queue in queues if queue]
        tasks, calls = run.program.tasks, len(run.kind) - run.rows * run.copies
        self.kind = run.kind.tolist()
        self.cell = tasks.cell.tolist() * run.copies + [-1] * calls
        self.end = tasks.end.tolist() * run.copies + [-1] * calls
        self.states, self.ends = self._reached(most)
        self.without = self._without()

    def _reached(self, most: int) -> tuple[set[State], set[State]]:
        ends = len(self.run.program.transports)
        begin = State((0,) * len(self.queues), ((),) * ends)
        states, last, left = {begin}, set(), [begin]
        while left:
            state = left.pop()
            following = self._following(state)
            if not following:
                last.add(state)
            left += [new for new in following if new not in states]
            states |= set(following)
            if len(states) > most:
                raise TooMany
        return states, last

    def _following(self, state: State) -> list[State]:
        count = self._counts(state)
        found = []
        for number, (queue, at) in enumerate(zip(self.queues, state.at, strict=True)):
            if at == len(queue):
                continue
            node = queue[at]
            if self.kind[node] == TaskKind.NOTIFY_WAIT and not count[self.cell[node]]:
                continue
            flights = list(state.flights)
            if node in self.naive.issues:
                flights[self.end[node]] += (node,)
            moved = (*state.at[:number], at + 1, *state.at[number + 1 :])
            found.append(State(moved, tuple(flights)))
        for end, flight in enumerate(state.flights):
            if flight:
                flights = list(state.flights)
                flights[end] = flight[1:]
                found.append(State(state.at, tuple(flights)))
        return found

    def _over(self, state: State) -> list[int]:
        """Return the nodes whose effect is there."""
        away = {node for flight in state.flights for node in flight}
        issued = (queue[:at] for queue, at in zip(self.queues, state.at, strict=True))
        return [node for nodes in issued for node in nodes if node not in away]

    def _counts(self, state: State) -> Counter[int]:
        count: Counter[int] = Counter()
        for node in self._over(state):
            if self.kind[node] == TaskKind.NOTIFY_POST:
                count[self.cell[node]] += 1
            elif self.kind[node] == TaskKind.NOTIFY_WAIT:
                count[self.cell[node]] -= 1
        return count

    def _without(self) -> dict[int, int]:
        """Return, for every node, the bits of those that need not be over when it is."""
        everything = (1 << len(self.kind)) - 1
        found: dict[int, int] = defaultdict(int)
        for state in self.states:
            over = self._over(state)
            missing = everything & ~sum(1 << node for node in over)
            for node in over:
                found[node] |= missing
        return found

    def can_hang(self) -> bool:
        """Whether some interleaving does not come to the end."""
        return {state.at for state in self.ends} != {tuple(map(len, self.queues))}

    def is_open(self, one: int, other: int) -> bool:
        """Whether either of two nodes may come first."""
        return bool(self.without[one] >> other & 1 and self.without[other] >> one & 1)

    def races(self) -> set[Byte]:
        """Return the bytes that two accesses touch which conflict and may come in either order."""
        by_byte: dict[tuple[int, str, int, int], list[tuple[int, str]]] = defaultdict(list)
        for access in self.naive.accesses:
            for byte in access.bytes:
                by_byte[self._half(byte, access.node)].append((access.node, access.how))
        racing = set()
        for (rank, name, at, _), touches in by_byte.items():
            for (one, how), (other, way) in combinations(touches, 2):
                agree = {how, way} in ({"read"}, {"add"}, {"add", "rdma add"})
                if not agree and one != other and self.is_open(one, other):
                    racing.add((rank, name, at))
        return racing

    def _half(self, byte: Byte, node: int) -> tuple[int, str, int, int]:
        """Return a byte with the number of the buffer, where every rank has two in turns."""
        alternates = byte[1] in self.run.program.alternating
        return (*byte, node // self.run.rows % 2 if alternates else 0)
