"""What may happen before what, by going through every interleaving of a small program.

A state is how far each queue has got; which notifies are there follows from it. Nothing here knows
how the verifier does it, and nothing is fast.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import combinations, pairwise

from hccl_py.enums import TaskKind
from hccl_py.verifier.analysis.unrolled import Unrolled
from tests.verifier.naive import Byte, Naive

__all__ = ["Interleavings", "TooMany"]

State = tuple[int, ...]


class TooMany(Exception):
    """A program has more states than are looked at."""


class Interleavings:
    """All states of a program over SDMA that can be reached, notifies counting posts."""

    def __init__(self, run: Unrolled, most: int = 20_000) -> None:
        self.run = run
        self.queues = [run.nodes[a:b].tolist() for a, b in pairwise(run.first.tolist())]
        self.queues = [queue for queue in self.queues if queue]
        self.states, self.ends = self._reached(most)

    def _reached(self, most: int) -> tuple[set[State], set[State]]:
        begin = tuple(0 for _ in self.queues)
        states, ends, left = {begin}, set(), [begin]
        while left:
            state = left.pop()
            following = self._following(state)
            if not following:
                ends.add(state)
            left += [new for new in following if new not in states]
            states |= set(following)
            if len(states) > most:
                raise TooMany
        return states, ends

    def _following(self, state: State) -> list[State]:
        count = self._counts(state)
        found = []
        for number, (queue, at) in enumerate(zip(self.queues, state, strict=True)):
            if at == len(queue):
                continue
            if self._kind(queue[at]) == TaskKind.NOTIFY_WAIT and not count[self._cell(queue[at])]:
                continue
            found.append((*state[:number], at + 1, *state[number + 1 :]))
        return found

    def _counts(self, state: State) -> Counter[int]:
        count: Counter[int] = Counter()
        for queue, at in zip(self.queues, state, strict=True):
            for node in queue[:at]:
                if self._kind(node) == TaskKind.NOTIFY_POST:
                    count[self._cell(node)] += 1
                elif self._kind(node) == TaskKind.NOTIFY_WAIT:
                    count[self._cell(node)] -= 1
        return count

    def _kind(self, node: int) -> int:
        return int(self.run.kind[node])

    def _cell(self, node: int) -> int:
        return int(self.run.program.tasks.cell[node % self.run.rows])

    def can_hang(self) -> bool:
        """Whether some interleaving does not come to the end."""
        return self.ends != {tuple(map(len, self.queues))}

    def may_be_first(self) -> set[tuple[int, int]]:
        """Return pairs (one, other) of which the first can be over while the other is not begun."""
        found = set()
        spans = {tuple(pair) for s in self.states for pair in combinations(enumerate(s), 2)}
        for (a, reached_a), (b, reached_b) in spans:
            for one, at, other, upto in (
                (a, reached_a, b, reached_b),
                (b, reached_b, a, reached_a),
            ):
                for node in self.queues[one][:at]:
                    found |= {(node, later) for later in self.queues[other][upto:]}
        return found

    def races(self) -> set[Byte]:
        """Return the bytes that two accesses touch which conflict and may come in either order."""
        first, racing = self.may_be_first(), set()
        by_byte: dict[tuple[int, str, int, int], list[tuple[int, str]]] = defaultdict(list)
        for access in Naive(self.run).accesses:
            for byte in access.bytes:
                by_byte[self._half(byte, access.node)].append((access.node, access.how))
        for (rank, name, at, _), touches in by_byte.items():
            for (one, how), (other, way) in combinations(touches, 2):
                conflict = {how, way} not in ({"read"}, {"add"}) and one != other
                if conflict and (one, other) in first and (other, one) in first:
                    racing.add((rank, name, at))
        return racing

    def _half(self, byte: Byte, node: int) -> tuple[int, str, int, int]:
        """Return a byte with the number of the buffer, where every rank has two in turns."""
        alternates = byte[1] in self.run.program.alternating
        return (*byte, node // self.run.rows % 2 if alternates else 0)
