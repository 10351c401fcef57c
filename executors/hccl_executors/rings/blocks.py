"""Rings of blocks of neighbouring ranks: ARS, HCCL's way over servers of different sizes of A3.

The ranks of a superpod are numbered through and cut to blocks of n, across servers. A block has two
rings, the two ways round, where n > 2, one where n = 2, none where n = 1; between blocks, ranks of
the same place run `op.level1`, between superpods `op.level2`:

    all_gather       superpods, blocks, rings
    reduce_scatter   rings, blocks, superpods
    all_reduce       reduce-scatter in rings (and between blocks), all-reduce, all-gathers back

How many ranks a block has, HCCL computes from the bytes (`hccl_py/topology/ring_sizes.py`). Data is
staged in CCL buffers, in graph mode as everywhere. Ring 0 has the links of plane `flat`, ring 1
those of plane `back`.

Cost as that of rings.py with n ranks in blocks for servers. Source: CollAllReduceARSFor91093-
Executor and its siblings (hcomm 8958adb), which are those of A3's rings on other planes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hccl_executors.levels import LEVELS, fidelities
from hccl_executors.outer_levels import OuterLevel, all_reduce
from hccl_executors.rings.places import sets
from hccl_executors.sources import like_newest
from hccl_executors.staging import delivered, request, staged
from hccl_executors.templates.double_ring import (
    reducible_parts_of_rings,
    rings_all_gather,
    rings_reduce_scatter,
)
from hccl_py.orchestration import Plane
from hccl_py.orchestration.subplane import Subplane
from hccl_py.plugins.executor import (
    AnyRank,
    BaseExecutor,
    Fidelity,
    OpParam,
    RankView,
    ResourceRequest,
    Topology,
    Unsuitable,
    require,
)
from hccl_py.plugins.resources import Pattern
from hccl_py.topology.ring_sizes import ring_size

PLANES = ("flat", "back")
"""Which links ring 0 and ring 1 have."""


@dataclass(frozen=True)
class RankBlocks:
    """The numbers of superpods, of blocks in each, and of ranks in a block."""

    pods: int
    count: int
    size: int

    @staticmethod
    def of(op: OpParam, topology: Topology) -> RankBlocks:
        """Cut the ranks as HCCL does for this call."""
        pods, whole = len(topology.superpods), topology.has_whole_packages
        ranks = topology.size // pods
        size = ring_size(op, ranks, op.level1, whole_packages=whole)
        return RankBlocks(pods, ranks // size, size)

    @property
    def orders(self) -> list[tuple[int, ...]]:
        """The order of the ranks of a block in each of its rings."""
        forward = tuple(range(self.size))
        if self.size == 1:
            return []
        return [forward, (0, *forward[:0:-1])] if self.size > 2 else [forward]

    def around(self, order: Sequence[int]) -> list[list[int]]:
        """Return the ranks of every ring that has this order."""
        starts = range(0, self.pods * self.count * self.size, self.size)
        return [[start + place for place in order] for start in starts]

    def across(self) -> list[range]:
        """Return the ranks of the same place in the blocks of a superpod."""
        pod = self.count * self.size
        return [
            range(start + place, start + pod, self.size)
            for start in range(0, self.pods * pod, pod)
            for place in range(self.size)
        ]


@dataclass(frozen=True)
class Neighbours:
    """The peers of a rank in its block's rings."""

    size: int

    def __call__(self, rank: int, ranks: int) -> list[int]:
        """Return the ranks before and behind it."""
        start = rank // self.size * self.size
        return sorted({start + (rank + way) % self.size for way in (1, -1)} - {rank})


@dataclass(frozen=True)
class Opposite:
    """The peers of a rank in other blocks of its superpod: neighbours, or all at 1, 2, 4, .."""

    blocks: RankBlocks
    word: str

    def __call__(self, rank: int, ranks: int) -> list[int]:
        """Return the ranks at these distances, both ways."""
        count, size = self.blocks.count, self.blocks.size
        start = rank // (count * size) * count * size
        most = 1 if self.word == "ring" else (count - 1).bit_length()
        ways = [way << k for k in range(most) for way in (1, -1)]
        found = {start + (rank - start + way * size) % (count * size) for way in ways}
        return sorted(found - {rank})


class BlockRing(Subplane):
    """A block's ranks in the order of one of its rings."""

    def __init__(self, parent: Plane, blocks: RankBlocks, order: tuple[int, ...]) -> None:
        super().__init__(parent, blocks.around(order))
        self._order = order

    @property
    def order(self) -> tuple[int, ...]:
        """The places in the block of the ring's members."""
        return self._order


def has_even_superpods(topology: Topology) -> bool | Unsuitable:
    """Demand superpods of as many ranks, numbered superpod by superpod."""
    ranks = sorted(set(np.bincount(topology.superpod).tolist()))
    return require(
        (len(ranks) == 1, f"needs as many devices in every superpod, there are {ranks}"),
        (
            bool((np.diff(topology.superpod) >= 0).all()),
            "needs ranks numbered superpod by superpod",
        ),
    )


class BlockRings(BaseExecutor):
    """Stage the input, go through the planes in the op's order, deliver."""

    op: str

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs superpods of as many ranks, numbered superpod by superpod."""
        return has_even_superpods(topology)

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """Links in the blocks, between them and between superpods; a sub stream where there are
        two rings.
        """
        blocks = RankBlocks.of(op, rank.topology)
        rings = len(blocks.orders)
        planes: list[tuple[str, Pattern]] = [
            (plane, Neighbours(blocks.size)) for plane in PLANES[:rings]
        ]
        if blocks.count > 1:
            planes.append(("flat", Opposite(blocks, op.level1)))
        if blocks.pods > 1:
            planes.append(("level2", LEVELS[op.name][op.level2].pattern))
        return request(op, rank, *planes, sub_streams=max(rings - 1, 0))

    def orchestrate(self, op: OpParam, rank: AnyRank) -> None:
        blocks = RankBlocks.of(op, rank.topology)
        work = staged(op, rank)
        _ORDERS[op.name](_Levels(op, rank, blocks), work)
        delivered(op, rank, work)


class _Levels:
    """A rank's rings, and the planes outside of its block."""

    def __init__(self, op: OpParam, rank: AnyRank, blocks: RankBlocks) -> None:
        self.rank = rank
        whole = Subplane(rank.flat, blocks.around(range(blocks.size)))
        across = Subplane(rank.flat, blocks.across())
        self.planes = (whole, across, rank.level2)
        self.rings = [
            BlockRing(rank.plane(name), blocks, order)
            for name, order in zip(PLANES, blocks.orders, strict=False)
        ]
        found = (
            OuterLevel(rank.main, across, op.level1, meeting=True),
            OuterLevel(rank.main, rank.level2, op.level2, meeting=True),
        )
        self.outer = [(at, level) for at, level in enumerate(found, 1) if level.plane.size > 1]


def _all_gather(levels: _Levels, slots: Any) -> None:
    for at, outer in reversed(levels.outer):
        outer.run("all_gather", sets(slots, levels.planes, at))
    if levels.rings:
        rings_all_gather(levels.rank, levels.rings, sets(slots, levels.planes, 0))


def _reduce_scatter(levels: _Levels, slots: Any) -> None:
    if levels.rings:
        cut = reducible_parts_of_rings
        rings_reduce_scatter(levels.rank, levels.rings, sets(slots, levels.planes, 0), cut)
    for at, outer in levels.outer:
        outer.run("reduce_scatter", sets(slots, levels.planes, at))


def _all_reduce(levels: _Levels, work: Any) -> None:
    slots = work.split(levels.planes[0].size)
    if levels.rings:
        rings_reduce_scatter(levels.rank, levels.rings, slots)
    all_reduce([outer for _, outer in levels.outer], slots[levels.planes[0].id])
    if levels.rings:
        rings_all_gather(levels.rank, levels.rings, slots)


_ORDERS: dict[str, Callable[[_Levels, Any], None]] = {
    "all_gather": _all_gather,
    "reduce_scatter": _reduce_scatter,
    "all_reduce": _all_reduce,
}


def _as_hccl(op: str) -> Fidelity:
    """Return the fidelity of an op's executor: HCCL's, its base, and how long a ring is."""
    own, base = f"coll_{op}_ars_for_910_93_executor", f"coll_{op}_ring_for_910_93_executor"
    return like_newest(own, base, "coll_comm_executor").with_cases(fidelities(op))


class AllReduceARSFor91093Executor(BlockRings):
    """AllReduce over servers of different sizes."""

    op = "all_reduce"
    algorithm = "level0:ring;level1:NHR|NB|ring;level2:NHR|NB|ring|H-D_R"
    fidelity = _as_hccl("all_reduce")


class AllGatherARSFor91093Executor(BlockRings):
    """AllGather over servers of different sizes."""

    op = "all_gather"
    algorithm = "level0:ring;level1:NHR|ring|NB;level2:NHR|ring|NB"
    fidelity = _as_hccl("all_gather")


class ReduceScatterARSFor91093Executor(BlockRings):
    """ReduceScatter over servers of different sizes."""

    op = "reduce_scatter"
    algorithm = "level0:ring;level1:NHR|ring|NB;level2:NHR|ring|NB"
    fidelity = _as_hccl("reduce_scatter")
