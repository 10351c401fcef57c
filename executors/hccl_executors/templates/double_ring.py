"""Several rings over the ranks of a server: every slot is cut, each part goes its own way round.

    ring 0:  0 → 1 → 2 → 3 → 0      first half of every slot, on sub stream 0
    ring 1:  0 → 3 → 2 → 1 → 0      second half, on main

Two rings the two ways round use both directions of every link (A3's `ring0`, `ring1`); four rings
use all links between the two meshes of an Atlas 800 (model 9000). One ring is the plain one. k
rings over p ranks take as many steps as one, p - 1, and each moves 1/k of the data: all-gather and
reduce-scatter cost (p-1)α + (p-1)/(pk)·n(β [+ γ]).

Work is in place, in exported memory, and each ring has a stream of its own: main runs the last one,
sub stream q ring q. What A3 does is in aligned_rings.py.
"""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from hccl_executors.templates.ring import ring_all_gather, ring_reduce_scatter
from hccl_py.orchestration import Chunks, Plane
from hccl_py.orchestration.region import Mask
from hccl_py.plugins.executor import AnyRank
from hccl_py.values import IntArray

REDUCE_ALIGN = 32
"""Bytes of which slots are multiples where ranks reduce parts of them."""

Cut = Callable[[Sequence[Plane], Chunks], list[Chunks]]
"""Returns each ring's part of every slot, numbered by the ring's members."""


def parts_of_rings(
    rings: Sequence[Plane], slots: Chunks, whole: Mask | None = None
) -> list[Chunks]:
    """Return each ring's part of every slot, numbered by the ring's members."""
    parts = zip(rings, slots.parts(len(rings), whole=whole), strict=True)
    return [part.renumbered(ring.order) for ring, part in parts]


def rings_all_gather(rank: AnyRank, rings: Sequence[Plane], slots: Chunks) -> None:
    """Leave in every rank all slots; member i of level0 starts with slot i."""
    with rank.fork(len(rings) - 1) as subs:
        streams = (*subs, rank.main)
        for stream, ring, part in zip(streams, rings, parts_of_rings(rings, slots), strict=True):
            ring_all_gather(stream, ring, part)


def rings_reduce_scatter(
    rank: AnyRank, rings: Sequence[Plane], slots: Chunks, cut: Cut = parts_of_rings
) -> None:
    """Leave in slot i of member i of level0 the reduction of all slots i; others are clobbered."""
    parts = cut(rings, slots)
    with rank.fork(len(rings) - 1) as subs:
        for stream, ring, part in zip((*subs, rank.main), rings, parts, strict=True):
            ring_reduce_scatter(stream, ring, part)


def reducible_parts_of_rings(rings: Sequence[Plane], slots: Chunks) -> list[Chunks]:
    """Return the same for a reduce-scatter of `slots`, server by server. Where SDMA cannot reduce
    on its way, the last ring has the slots of a server whole of which some are no multiples of 32
    bytes.
    """
    n = int(rings[0].size)
    if n == 1 or rings[0].left.rank.inline_reduces[0]:
        return parts_of_rings(rings, slots)

    def is_torn(sizes: IntArray) -> npt.NDArray[np.bool_]:
        torn = (sizes.reshape(len(sizes), -1, n) % REDUCE_ALIGN).any(axis=2)
        return torn.repeat(n, axis=1)

    return parts_of_rings(rings, slots, is_torn)


def elements_of_rings(unit: int) -> Cut:
    """Return a cut for two rings at whole elements of `unit` bytes; the second has the odd one."""

    def cut(rings: Sequence[Plane], slots: Chunks) -> list[Chunks]:
        first = slots.sizes // unit // 2 * unit
        parts = ((slots.offsets, first), (slots.offsets + first, slots.sizes - first))
        return [
            Chunks(slots.buffer, *part, slots.row, slots.link).renumbered(ring.order)
            for ring, part in zip(rings, parts, strict=True)
        ]

    return cut
