"""Groups of ranks that SDMA reaches, as the direct full mesh sees them."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from hccl_py.plugins.executor import Topology
from hccl_py.values import IntArray, PerRank, RankInt, values_of


class Pods:
    """Of each rank the pod and the place in it. Ranks of one pod follow each other in `order`, by
    which ranks are counted here; it is the order of ranks wherever pods are numbered one after the
    other.
    """

    def __init__(self, topology: Topology) -> None:
        self._number = topology.sdma_groups
        self._order = np.argsort(self._number, kind="stable")
        self._at = np.argsort(self._order, kind="stable")
        self._sizes = np.bincount(self._number)
        self.is_even = topology.is_even and len(set(self._sizes.tolist())) == 1
        self._first = np.cumsum(self._sizes) - self._sizes

    @cached_property
    def several(self) -> bool:
        """True if some ranks are reached only over RDMA."""
        return len(self._sizes) > 1

    def size(self, rank: RankInt) -> RankInt:
        """Return the ranks of a rank's pod."""
        return PerRank.of(self._sizes[self._number[values_of(rank)]])

    def near(self, rank: RankInt, distance: int) -> RankInt:
        """Return the member of a rank's pod that is so many places further."""
        if not self.several:
            found: RankInt = (rank + distance) % len(self._order)
            return found
        pod = self._number[values_of(rank)]
        place = (self._at[values_of(rank)] - self._first[pod] + distance) % self._sizes[pod]
        return PerRank.of(self._order[self._first[pod] + place])

    def remote(self, rank: RankInt, number: int) -> tuple[RankInt, RankInt]:
        """Return the rank of another pod that a rank sends to as its `number`-th, and the one that
        it receives from meanwhile.

        Pods of one size: upwards from the rank's place in the next pod, and downwards from its
        place in the pod before, both round and past its own pod. Other pods: the `number`-th among
        the ranks of other pods, for both.
        """
        all_ranks, at = len(self._order), self._at[values_of(rank)]
        pod = self._number[values_of(rank)]
        first, size = self._first[pod], self._sizes[pod]
        if not self.is_even:
            both = self._rank(number + np.where(number >= first, size, 0))
            return both, both
        place = at - first
        past = number >= all_ranks - size - place
        to = at + size + number + np.where(past, size, 0)
        past = number > all_ranks - 2 * size + place
        frm = at - size - number - np.where(past, size, 0)
        return self._rank(to % all_ranks), self._rank(frm % all_ranks)

    def turn(self, rank: RankInt, peer: RankInt, way: int) -> RankInt:
        """Return a number that orders peers in other pods as `remote` names them: those that a rank
        sends to (way 1), or receives from (-1).
        """
        mine, theirs = self._at[values_of(rank)], self._at[values_of(peer)]
        if not self.is_even:
            return PerRank.of(theirs)
        size = self._sizes[self._number[values_of(rank)]]
        return PerRank.of((way * (theirs - mine) - size) % len(self._order))

    def _rank(self, at: IntArray) -> RankInt:
        return PerRank.of(self._order[at])
