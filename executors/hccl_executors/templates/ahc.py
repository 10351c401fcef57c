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

Groups of which some have several times as many members as the smallest one, or all a multiple of
it, are first cut (`cut_groups`): no group has twice as many as another one then.

Inside NHR, between the groups a ring, NHR where there are more than 3 groups. For G groups of m to
m + d members, all-reduce of n bytes with NHR between takes about 2(⌈log2(m+d)⌉ + ⌈log2 G⌉)α +
2((m+d-1)/(m+d) + (G-1)/(Gm))n·β + ((m+d-1)/(m+d) + (G-1)/(Gm))n·γ with one card a member.

Cuts are made in units of bytes: of G times a part (BROKE: of a part) that is n/(lcm·G) (n/m)
rounded up to 128 KiB, or to 128 bytes where it is more than 128 KiB. So of small data the first
members have all. Every card is cut for its ring or NHR likewise: with BROKE in multiples of 128
KiB, else in G parts alike or in multiples of 128 bytes. Parts alike of no whole 8 bytes, which HCCL
makes where G is a multiple of 32, are rounded up, too: they may cut elements. Source:
asymmetric_hierarchical_concatenate_base.cc and *_alg_template_base.cc of hcomm (8958adb).
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from math import lcm

import numpy as np

from hccl_executors.templates.ahc_cards import Cards, ranges_of
from hccl_executors.templates.nhr import nhr_all_gather, nhr_all_reduce_chunks, nhr_reduce_scatter
from hccl_executors.templates.ring import ring_all_reduce_chunks
from hccl_py.orchestration import Chunks, Plane, Region, Stream
from hccl_py.orchestration.region import SLICE_ALIGN
from hccl_py.orchestration.subplane import Subplane
from hccl_py.values import IntArray, PerRank, RankInt, values_of

WHOLE = 128 << 10
"""Bytes of data that is not worth cutting."""

ELEMENT = 8
"""Bytes of the largest element that anything reduces."""


def ahc_all_reduce(stream: Stream, plane: Plane, work: Region, groups: tuple[int, ...]) -> None:
    """Leave the reduction of all ranks' `work` in it; `groups` are sizes of consecutive members."""
    _all_reduce(stream, plane, work, _layout(groups, False, int(plane.size)))


def ahc_broke_all_reduce(
    stream: Stream, plane: Plane, work: Region, groups: tuple[int, ...]
) -> None:
    """The same with as many cards as the smallest group has members."""
    _all_reduce(stream, plane, work, _layout(groups, True, int(plane.size)))


def ahc_peers_inside(
    groups: tuple[int, ...], broke: bool = False
) -> Callable[[int, int], Iterable[int]]:
    """Return the link pattern inside groups: NHR's."""
    return lambda index, size: _layout(groups, broke, size).inside[index]


def ahc_peers_between(
    groups: tuple[int, ...], broke: bool = False
) -> Callable[[int, int], Iterable[int]]:
    """Return the link pattern between groups: in each card a member's neighbours, or NHR's."""
    return lambda index, size: _layout(groups, broke, size).between[index]


def cut_groups(groups: tuple[int, ...]) -> tuple[int, ...]:
    """Cut groups that are not alike into such as the smallest one, where all are a multiple of it
    or the largest is twice as large at least; what is left over stays with the last.
    """
    least = min(groups)
    if any(size % least for size in groups) and max(groups) < 2 * least:
        return groups
    return tuple(
        size
        for group in groups
        for size in (*[least] * (group // least - 1), least + group % least)
    )


class _Layout(Cards):
    """The owner of every part of the data: cuts in units, of which data has `parts` at most, and
    the cards between them. A unit is `times` parts of data that is cut in `parts` · `times`.
    """

    def __init__(self, groups: list[range], broke: bool) -> None:
        self.smallest = min(map(len, groups))
        self.broke = broke
        shares = [self.smallest if broke else len(group) for group in groups]
        self.parts, self.times = lcm(*shares), 1 if broke else len(groups)
        cuts = sorted({cut for n in set(shares) for cut in range(0, self.parts, self.parts // n)})
        part = self.parts // self.smallest
        self.starts = sorted(cuts, key=lambda cut: cut % part)  # as they run
        following = dict(zip(cuts, [*cuts[1:], self.parts], strict=True))
        self.stops = [following[cut] for cut in self.starts]
        cards = [
            [group[cut * n // self.parts] for group, n in zip(groups, shares, strict=True)]
            for cut in self.starts
        ]
        super().__init__(groups, cards)

    def shares(self, work: Region, members: int) -> Chunks:
        """Return the parts that each member of one group reduces; none for members left out."""
        shared = self.smallest if self.broke else members
        cuts = [self.parts // shared * k for k in range(shared + 1)] + [self.parts] * members
        whole = work.split(1)
        first, last = self._places(whole, cuts[:members]), self._places(whole, cuts[1:])
        return Chunks(work.buffer, whole.offsets + first, last[:, :members] - first, whole.row)

    def pieces(self, work: Region, card: RankInt) -> Chunks:
        """Return the data of every rank's card, cut for its holders."""
        n, whole = len(self.groups), work.split(1)
        first, last = self._places(whole, self.starts), self._places(whole, self.stops)
        sizes = (last - first).reshape(-1, 1)
        each = self._part(sizes, n) if self.broke else _alike(sizes, n)
        cuts = np.minimum(np.arange(n + 1) * each, sizes)
        offsets = (whole.offsets + first).reshape(-1, 1) + cuts[:, :-1]
        rows = values_of(whole.row) * len(self.cards) + values_of(card)
        return Chunks(work.buffer, offsets, np.diff(cuts), PerRank.of(rows))

    def _places(self, whole: Chunks, cuts: Sequence[int]) -> IntArray:
        """Return the bytes before cuts, of shape [rows of `whole`, cuts]."""
        unit = self._part(whole.sizes, min(self.parts * self.times, 1 << 62)) * self.times
        beyond = int(whole.largest) + 1  # units that no data has
        units = np.array([min(cut, beyond) for cut in cuts], np.int64)
        places: IntArray = np.minimum(units * unit, whole.sizes)
        return places

    @staticmethod
    def _part(sizes: IntArray, n: int) -> IntArray:
        """Return the n-th part rounded up: small ones to WHOLE, others to whole slices."""
        exact = -(-sizes // n)
        align = np.where(exact > WHOLE, SLICE_ALIGN, WHOLE)
        return -(-exact // align) * align


def _alike(sizes: IntArray, n: int) -> IntArray:
    """Return the n-th part: exact, if that is of whole elements and all are whole slices."""
    exact = (sizes % (n * ELEMENT) == 0) & (sizes % SLICE_ALIGN == 0)
    return np.where(exact, sizes // n, -(-sizes // (n * SLICE_ALIGN)) * SLICE_ALIGN)


@lru_cache(maxsize=64)
def _layout(groups: tuple[int, ...], broke: bool, size: int) -> _Layout:
    return _Layout(ranges_of(groups, size), broke)


def _all_reduce(stream: Stream, plane: Plane, work: Region, layout: _Layout) -> None:
    if bool(work.size == 0):
        return
    inside = Subplane(plane, layout.groups)
    shares = layout.shares(work, int(inside.size))
    nhr_reduce_scatter(stream, inside, shares, meeting=True)
    for card, between in layout.own(plane):
        pieces = layout.pieces(work, card)
        if layout.is_ring:
            ring_all_reduce_chunks(stream, between, pieces)
        else:
            nhr_all_reduce_chunks(stream, between, pieces, meeting=True)
    nhr_all_gather(stream, inside, shares)
