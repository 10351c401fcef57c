"""AHC_BROKE of slots, one per member: reduce-scatter, and all-gather the same way backwards.

    inside a group of s members   the slots of every group in turn, s at a time; the last time of
                                  each has what is left over, or nothing
    between the groups            card c: member c of every group that has so many hold a slot
                                  each; member c modulo its size of the others takes part with none

With groups alike, G of m members, that is m - 1 slots of each group inside, then G - 1 between, and
⌈log2 m⌉ steps without data for every group. Inside NHR, between the groups a ring, NHR where there
are more than 3 (`ahc.py`).

Cost for slots of s bytes: reduce-scatter 2G⌈log2 m⌉α + G(m-1)s(β+γ) inside and a ring's or NHR's of
G slots between; all-gather the same without γ. Source: asymmetric_hierarchical_concatenate_base.cc,
CommBrokeAlignInfo, of hcomm (8958adb).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from hccl_executors.templates.ahc_cards import Cards, ranges_of
from hccl_executors.templates.nhr import nhr_all_gather, nhr_reduce_scatter
from hccl_executors.templates.ring import ring_all_gather, ring_reduce_scatter
from hccl_py.orchestration import Chunks, Plane, Stream
from hccl_py.orchestration.subplane import Subplane
from hccl_py.values import IntArray, PerRank, RankInt, values_of


def ahc_broke_reduce_scatter(
    stream: Stream, plane: Plane, slots: Chunks, groups: tuple[int, ...]
) -> None:
    """Leave in slot r of rank r the reduction of all ranks' slot r; other slots hold partial
    results. `groups` are sizes of consecutive members.
    """
    found = _slots(groups, int(plane.size))
    inside = Subplane(plane, found.groups)
    for chunks in found.of_groups(slots, int(inside.size)):
        nhr_reduce_scatter(stream, inside, chunks, meeting=True)
    for card, between in found.own(plane):
        chunks = found.of_card(slots, card)
        if found.is_ring:
            ring_reduce_scatter(stream, between, chunks)
        else:
            nhr_reduce_scatter(stream, between, chunks, meeting=True)


def ahc_broke_all_gather(
    stream: Stream, plane: Plane, slots: Chunks, groups: tuple[int, ...]
) -> None:
    """Leave in every rank all slots; rank r starts with slot r."""
    found = _slots(groups, int(plane.size))
    for card, between in found.own(plane):
        gather = ring_all_gather if found.is_ring else nhr_all_gather
        gather(stream, between, found.of_card(slots, card))
    inside = Subplane(plane, found.groups)
    for chunks in found.of_groups(slots, int(inside.size)):
        nhr_all_gather(stream, inside, chunks)


def slot_peers_inside(groups: tuple[int, ...]) -> Callable[[int, int], Iterable[int]]:
    """Return the link pattern inside groups: NHR's."""
    return lambda index, size: _slots(groups, size).inside[index]


def slot_peers_between(groups: tuple[int, ...]) -> Callable[[int, int], Iterable[int]]:
    """Return the link pattern between groups: in each card a member's neighbours, or NHR's."""
    return lambda index, size: _slots(groups, size).between[index]


class _SlotCards(Cards):
    """A card for every member of the largest group; its slots are those of its first members."""

    def __init__(self, groups: list[range]) -> None:
        cards: list[list[int]] = []
        self._holders: list[int] = []
        for number in range(max(map(len, groups))):
            holding = [group[number] for group in groups if number < len(group)]
            without = [group[number % len(group)] for group in groups if number >= len(group)]
            cards.append(holding + without)
            self._holders.append(len(holding))
        super().__init__(groups, cards)

    def of_groups(self, slots: Chunks, members: int) -> Iterator[Chunks]:
        """Yield the slots that a group of so many members takes at a time."""
        for group in self.groups:
            for first in range(group.start, group.stop + 1, members):
                places = first + np.arange(members)
                yield _taken(slots, places[None], places[None] < group.stop, 0)

    def of_card(self, slots: Chunks, card: RankInt) -> Chunks:
        """Return the slots of every rank's card."""
        places = np.array(self.cards, np.int64)
        held = np.arange(len(self.groups)) < np.array(self._holders)[:, None]
        return _taken(slots, places, held, card)


def _taken(slots: Chunks, places: IntArray, held: npt.NDArray[np.bool_], which: RankInt) -> Chunks:
    """Return the slots at one row of `places`, empty where they are not `held`; `which` is the row
    of each rank.
    """
    at = np.minimum(places, len(slots) - 1)
    shape = (-1, places.shape[1])
    sizes = np.where(held, slots.sizes[:, at], 0)
    row = PerRank.of(values_of(slots.row) * len(places) + values_of(which))
    return Chunks(slots.buffer, slots.offsets[:, at].reshape(shape), sizes.reshape(shape), row)


@lru_cache(maxsize=64)
def _slots(groups: tuple[int, ...], size: int) -> _SlotCards:
    return _SlotCards(ranges_of(groups, size))
