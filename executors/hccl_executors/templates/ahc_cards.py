"""Groups of AHC and the cards between them: who talks to whom, and in which order cards run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from hccl_py.errors import ParameterError
from hccl_py.orchestration import Plane
from hccl_py.orchestration.subplane import Subplane
from hccl_py.values import IntArray, PerRank, RankInt, values_of

RING_UP_TO = 3
"""Groups up to which a ring runs between them."""


class Cards:
    """Consecutive members in groups, and `cards`: for each, a member of every group, in the order
    in which a member runs its own.
    """

    def __init__(self, groups: Sequence[range], cards: Sequence[Sequence[int]]) -> None:
        self.groups, self.cards = groups, cards
        self._turns, self._counts = self._taken()
        self.inside, self.between = self._peers()

    @property
    def is_ring(self) -> bool:
        """True if a ring runs between the groups."""
        return len(self.groups) <= RING_UP_TO

    def own(self, plane: Plane) -> Iterator[tuple[RankInt, Plane]]:
        """Yield every rank's cards, one after the other, and the plane of each."""
        me = values_of(plane.id)
        for turn in range(int(PerRank.of(self._counts[me]))):
            card = PerRank.of(self._turns[me, turn])
            yield card, Subplane(plane, self.cards, card)

    def _taken(self) -> tuple[IntArray, IntArray]:
        """Return the cards of every member in the order in which they run, and how many."""
        mine: list[list[int]] = [[] for group in self.groups for _ in group]
        for number, card in enumerate(self.cards):
            for member in card:
                mine[member].append(number)
        counts = np.array([len(numbers) for numbers in mine], np.int64)
        table = np.full((len(mine), max(1, int(counts.max()))), -1, np.int64)
        for member, numbers in enumerate(mine):
            table[member, : len(numbers)] = numbers
        return table, counts

    def _peers(self) -> tuple[list[list[int]], list[list[int]]]:
        """Return the members that every member talks to inside its group, and between groups."""
        inside: list[set[int]] = [set() for group in self.groups for _ in group]
        for group in self.groups:
            _join(inside, group, _nhr_distances(len(group)))
        between: list[set[int]] = [set() for _ in inside]
        distances = [1] if self.is_ring else _nhr_distances(len(self.groups))
        for card in self.cards:
            _join(between, card, distances)
        return [sorted(peers) for peers in inside], [sorted(peers) for peers in between]


def ranges_of(groups: tuple[int, ...], size: int) -> list[range]:
    """Return the members of each group of a plane; ParameterError where they are not the plane."""
    if not groups or min(groups) < 1 or sum(groups) != size:
        raise ParameterError(
            f"Groups of {', '.join(map(str, groups)) or 'no'} members do not make up a plane "
            f"of {size}.",
            "Give the number of consecutive members of each group, at least one.",
        )
    ends = np.cumsum(groups).tolist()
    return [range(end - n, end) for end, n in zip(ends, groups, strict=True)]


def _join(found: list[set[int]], group: Sequence[int], distances: Iterable[int]) -> None:
    n = len(group)
    for distance in distances:
        for index, member in enumerate(group):
            peer = group[(index + distance) % n]
            if peer != member:
                found[member].add(peer)
                found[peer].add(member)


def _nhr_distances(n: int) -> list[int]:
    return [1 << k for k in range((n - 1).bit_length())]
