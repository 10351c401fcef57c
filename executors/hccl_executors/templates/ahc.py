"""AHC, asymmetric hierarchical concatenate: a hierarchy over groups of different sizes.

Groups of 2 and 3 members that hold parts of the same data, cut at every boundary of either group:

    group 0    |  member 0      |  member 1      |
    group 1    |  member 2  |  member 3  |  member 4  |
    cards      |  {0, 2}    |{0,3}|{1,3}|   {1, 4}    |

Every piece between two cuts is a logical card: one member of each group has it, and these reduce it
among themselves. In units of 1/lcm(sizes) of the data all cuts are whole numbers.

    all-reduce: reduce-scatter inside every group; all-reduce of every card; all-gather inside

A member that has several cards takes them one after the other, in the order of their distance from
the beginning of the smallest group's part: so all members of the smallest group are busy from the
start, and no two members wait for each other crosswise.

BROKE cuts the data for the smallest group's members only: member j < m of every group takes part
between the groups, all others only inside their own.

Inside NHR, between the groups a ring, NHR where there are more than 3 groups. For G groups of m to
m + d members, all-reduce of n bytes with NHR between takes about 2(⌈log2(m+d)⌉ + ⌈log2 G⌉)α +
2((m+d-1)/(m+d) + (G-1)/(Gm))n·β + ((m+d-1)/(m+d) + (G-1)/(Gm))n·γ with one card a member. Cuts
are at multiples of 128 bytes.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from math import lcm

import numpy as np

from hccl_executors.templates.nhr import nhr_all_gather, nhr_all_reduce, nhr_reduce_scatter
from hccl_executors.templates.ring import ring_all_reduce
from hccl_py.errors import ParameterError
from hccl_py.orchestration import Chunks, Plane, Region, Stream
from hccl_py.orchestration.region import SLICE_ALIGN
from hccl_py.orchestration.subplane import Subplane
from hccl_py.values import IntArray, PerRank, values_of

__all__ = ["ahc_all_reduce", "ahc_broke_all_reduce", "ahc_peers"]

RING_UP_TO = 3
"""Groups up to which a ring runs between them."""


def ahc_all_reduce(stream: Stream, plane: Plane, work: Region, groups: tuple[int, ...]) -> None:
    """Leave the reduction of all ranks' `work` in it; `groups` are sizes of consecutive members."""
    _all_reduce(stream, plane, work, _layout(groups, False, int(plane.size)))


def ahc_broke_all_reduce(
    stream: Stream, plane: Plane, work: Region, groups: tuple[int, ...]
) -> None:
    """The same with as many cards as the smallest group has members."""
    _all_reduce(stream, plane, work, _layout(groups, True, int(plane.size)))


def ahc_peers(groups: tuple[int, ...], broke: bool = False) -> Callable[[int, int], Iterable[int]]:
    """Return the link pattern: NHR's peers in the own group, and in each card its neighbours."""
    return lambda index, size: _layout(groups, broke, size).peers[index]


class _Layout:
    """Who has which part of the data: cuts in units of 1/`units`, and the cards between them."""

    def __init__(self, groups: tuple[int, ...], broke: bool) -> None:
        ends = np.cumsum(groups).tolist()
        self.groups = [range(end - size, end) for end, size in zip(ends, groups, strict=True)]
        self.smallest = min(groups)
        self.broke = broke
        shares = [self.smallest] * len(groups) if broke else list(groups)
        self.units = lcm(*shares)
        cuts = sorted({unit for n in set(shares) for unit in range(0, self.units, self.units // n)})
        part = self.units // self.smallest
        self.starts = sorted(cuts, key=lambda cut: cut % part)  # as they run
        following = dict(zip(cuts, [*cuts[1:], self.units], strict=True))
        self.stops = [following[cut] for cut in self.starts]
        self.cards = [
            [group[cut * n // self.units] for group, n in zip(self.groups, shares, strict=True)]
            for cut in self.starts
        ]
        self.turns, self.counts = self._turns(sum(groups))
        self.peers = self._peers()

    def _turns(self, total: int) -> tuple[IntArray, IntArray]:
        """Return the cards of every member in the order in which they run, and how many."""
        mine: list[list[int]] = [[] for _ in range(total)]
        for number, card in enumerate(self.cards):
            for member in card:
                mine[member].append(number)
        counts = np.array([len(numbers) for numbers in mine], np.int64)
        table = np.full((total, max(1, int(counts.max()))), -1, np.int64)
        for member, numbers in enumerate(mine):
            table[member, : len(numbers)] = numbers
        return table, counts

    @property
    def is_ring(self) -> bool:
        """Whether a ring runs between the groups."""
        return len(self.groups) <= RING_UP_TO

    def pieces(self, work: Region) -> Chunks:
        """Return the data of every card."""
        return self._cut(work, self.starts, self.stops)

    def shares(self, work: Region, members: int) -> Chunks:
        """Return what each of the members of one group reduces; nothing for those left out."""
        parts = self.smallest if self.broke else members
        cuts = [self.units // parts * k for k in range(parts + 1)] + [self.units] * members
        return self._cut(work, cuts[:members], cuts[1 : members + 1])

    def _cut(self, work: Region, starts: Sequence[int], stops: Sequence[int]) -> Chunks:
        whole = work.split(1)

        def places(cuts: Sequence[int]) -> IntArray:
            exact = [-(-whole.sizes * cut // self.units) for cut in cuts]
            aligned = -(-np.concatenate(exact, axis=1) // SLICE_ALIGN) * SLICE_ALIGN
            return np.minimum(aligned, whole.sizes)

        first = places(starts)
        return Chunks(work.buffer, whole.offsets + first, places(stops) - first, whole.row)

    def _peers(self) -> list[list[int]]:
        """Return the members that every member talks to."""
        found: list[set[int]] = [set() for group in self.groups for _ in group]
        for group in self.groups:
            _join(found, group, _nhr_distances(len(group)))
        distances = [1] if self.is_ring else _nhr_distances(len(self.groups))
        for card in self.cards:
            _join(found, card, distances)
        return [sorted(peers) for peers in found]


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


@lru_cache(maxsize=64)
def _layout(groups: tuple[int, ...], broke: bool, size: int) -> _Layout:
    if not groups or min(groups) < 1 or sum(groups) != size:
        raise ParameterError(
            f"Groups of {', '.join(map(str, groups)) or 'no'} members do not make up a plane "
            f"of {size}.",
            "Give the number of consecutive members of each group, at least one.",
        )
    return _Layout(groups, broke)


def _all_reduce(stream: Stream, plane: Plane, work: Region, layout: _Layout) -> None:
    inside = Subplane(plane, layout.groups)
    shares, pieces = layout.shares(work, int(inside.size)), layout.pieces(work)
    me = values_of(plane.id)
    reduce = ring_all_reduce if layout.is_ring else nhr_all_reduce
    nhr_reduce_scatter(stream, inside, shares)
    for turn in range(int(PerRank.of(layout.counts[me]))):
        card = PerRank.of(layout.turns[me, turn])
        reduce(stream, Subplane(plane, layout.cards, card), pieces[card])
    nhr_all_gather(stream, inside, shares)
