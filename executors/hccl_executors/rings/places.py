"""Sets of slots that go together on a plane, with one slot per rank.

Slots are numbered superpod by superpod, server by server, device by device; a rank is (p, s, d). On
the plane between servers, say, one step may hand on

    blocks   (p, s', *): the slots of a server, side by side, where planes outside have been
    sets     (*, s', d): one slot from every superpod, where planes inside come later

`planes` are a rank's, from inside to outside, and `at` is the number of one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import cast

from hccl_py.orchestration import Chunks, Plane
from hccl_py.orchestration.bundles import Bundles
from hccl_py.values import RankInt


def blocks(slots: Chunks, planes: Sequence[Plane], at: int) -> Chunks:
    """Return for every member of plane `at` the slots of all ranks inside of it, as one chunk.

    All that goes inward from the whole, or outward from single slots: of the planes outside, a rank
    keeps to its own member.
    """
    width = _stride(planes, at)
    outside = _own(planes, range(at + 1, len(planes)))
    total = width * int(planes[at].size)
    mine = slots if total == len(slots) else slots.taken(outside, total)
    return mine.joined(width)


def sets(slots: Chunks, planes: Sequence[Plane], at: int, *, inside: bool = False) -> Chunks:
    """Return for every member of plane `at` the slots of all ranks outside of it, as a bundle; of
    the planes inside, a rank keeps to its own member. With `inside` it is the other way round:
    blocks, where slots do not lie side by side.
    """
    if len(slots) == planes[at].size:
        return slots
    whole, own = range(at + 1, len(planes)), range(at)
    if inside:
        whole, own = own, whole
    steps = [[index * _stride(planes, k) for index in range(int(planes[k].size))] for k in whole]
    offsets = sorted(map(sum, product(*steps)))
    width = _stride(planes, at)
    found = Bundles(slots, _own(planes, own), width, int(planes[at].size), offsets)
    return cast(Chunks, found)  # templates take bundles for chunks


def _stride(planes: Sequence[Plane], at: int) -> int:
    """Return the distance, in slots, between neighbours on a plane."""
    return prod(int(plane.size) for plane in planes[:at])


def _own(planes: Sequence[Plane], which: range) -> RankInt:
    first: RankInt = 0
    for k in which:
        first = first + planes[k].id * _stride(planes, k)
    return first
