"""AllReduce and Broadcast on registered user memory; see base.py.

    all_reduce   reduce-scatter in the servers' inputs; all-reduce between servers, slice by slice,
                 into the outputs; all-gather in the servers' outputs
    broadcast    scatter in the servers' buffers; broadcast between servers; all-gather

Each device takes its slice between servers, in rounds of a CCL buffer. Rings in a server are those
of `rings/superpods.py`, with their helpers, which have nothing to move; two rings halve a slice at
whole elements. HCCL calls a slice small by what one device of n would have of it once more, so data
goes over trees up to n times as many bytes as elsewhere.

Cost as that of `rings/superpods.py`.
"""

from __future__ import annotations

from abc import abstractmethod

from hccl_executors.outer_levels import OuterLevel, all_reduce, broadcast, holds_root
from hccl_executors.sources import newest
from hccl_executors.templates.aligned_rings import (
    aligned_all_gather,
    aligned_reduce_scatter,
    aligned_scatter,
)
from hccl_executors.templates.direct_ring import direct_all_gather, direct_reduce_scatter
from hccl_executors.templates.double_ring import elements_of_rings
from hccl_executors.templates.nb import nb_broadcast
from hccl_executors.templates.nhr import (
    ONE_SHOT_ALL_REDUCE,
    ONE_SHOT_BROADCAST,
    nhr_all_reduce,
    nhr_all_reduce_one_shot,
    nhr_broadcast,
)
from hccl_executors.templates.ring import ring_scatter
from hccl_executors.zero_copy.base import REGISTERED, RegisteredRings, like_hccl, outer_levels
from hccl_py.orchestration import Chunks, Region
from hccl_py.plugins.executor import AnyRank, OpParam, PlaneRequest, RankView, steps


class _Whole(RegisteredRings):
    """Base of both ops: a slice for every device, rings with helpers, an all-gather at the end."""

    def sub_streams(self, rank: RankView) -> int:
        """One for every ring but main's, and a helper for each."""
        return 2 * len(rank.rings) - 1

    def inside(self, rank: RankView) -> list[PlaneRequest]:
        """The rings' links."""
        return [PlaneRequest(ring.name, "ring", *REGISTERED) for ring in rank.rings]

    def most(self, op: OpParam, rank: RankView | AnyRank) -> int:
        """A CCL buffer."""
        return rank.ccl_bytes // op.unit

    def through(self, op: OpParam, rank: AnyRank, given: Region, taking: Region) -> None:
        """Take a slice of `given` through all servers into the same slice of `taking`, in place in
        CCL_In.
        """
        levels = outer_levels(op, rank)
        for start, size in self.rounds(op, rank, int(given.size) // op.unit):
            work = rank.ccl_in.head(size)
            rank.main.copy(work, given[start : start + size])
            self.between(op, rank, levels, work)
            rank.main.copy(taking[start : start + size], work)

    @abstractmethod
    def between(self, op: OpParam, rank: AnyRank, levels: list[OuterLevel], work: Region) -> None:
        """Run the op between servers."""


def _gather_inside(op: OpParam, rank: AnyRank, slots: Chunks) -> None:
    if len(rank.rings) > 1:
        aligned_all_gather(rank, rank.rings, slots, slots, cut=elements_of_rings(op.unit))
    else:
        direct_all_gather(rank, rank.rings, slots, slots)


class AllReduceRingZerocopyExecutor(_Whole):
    """AllReduce over all levels. With AHC, level1 and level2 are one plane."""

    op = "all_reduce"
    algorithm = "level0:ring;level1:NHR|NB|ring|AHC|AHC_BROKE;level2:NHR|NB|ring|H-D_R"
    fidelity = like_hccl("all_reduce", "coll_all_reduce_ring_zerocopy_executor")

    def orchestrate(self, op: OpParam, rank: AnyRank) -> None:
        """Reduce in the server, all-reduce between, gather in the server."""
        n, me = rank.level0.size, rank.level0.id
        slots, out = rank.user_in.split(n), rank.user_out.split(n)
        if len(rank.rings) > 1:
            aligned_reduce_scatter(rank, rank.rings, slots, slots, cut=elements_of_rings(op.unit))
        else:
            direct_reduce_scatter(rank, rank.rings, slots, slots)
        if len(rank.topology.servers) == 1 and not op.in_place:
            rank.main.copy(out[me], slots[me])
        self.through(op, rank, slots[me], out[me])
        _gather_inside(op, rank, out)

    def between(self, op: OpParam, rank: AnyRank, levels: list[OuterLevel], work: Region) -> None:
        """All-reduce; a small slice of one superpod as a whole."""
        first = levels[0]
        if first.plane.name == "level1" and first.word == "NHR" and len(levels) == 1:
            is_small = int(work.size) // int(rank.level0.size) <= ONE_SHOT_ALL_REDUCE
            template = nhr_all_reduce_one_shot if is_small else nhr_all_reduce
            template(rank.main, first.plane, work, meeting=True)
        else:
            all_reduce(levels, work)


class BroadCastRingZerocopyExecutor(_Whole):
    """Broadcast over all levels. All servers scatter, though only the root's result is read; in the
    others the first device scatters its own buffer.
    """

    op = "broadcast"
    algorithm = "level0:ring;level1:NHR|NB;level2:NHR|NB|H-D_R"
    fidelity = like_hccl(
        "broadcast",
        "coll_broadcast_ring_zerocopy_executor",
        double_ring=steps(
            "HCCL's root reads, too, to leave memory bandwidth to those who read from it, and with "
            "more than 4 MiB for a device all ranks read before there is data. Both are left out, "
            "as they would read unwritten memory.",
            *newest("scatter_double_ring_direct"),
        ),
    )

    def orchestrate(self, op: OpParam, rank: AnyRank) -> None:
        """Scatter in the server, broadcast between, gather in the server: in the output."""
        root, me, rings = op.root or 0, rank.level0.id, rank.rings
        slots = rank.user_out.split(rank.level0.size)
        has_root = holds_root([level.plane for level in outer_levels(op, rank)], root)
        at = rank.level0.index_of(root) if has_root else 0
        if me == at and not op.in_place:
            rank.main.copy(rank.user_out, rank.user_in)
        if len(rings) > 1:
            aligned_scatter(rank, rings, slots, slots, at, cut=elements_of_rings(op.unit))
        else:
            ring_scatter(rank.main, rings[0], slots, at)
        self.through(op, rank, slots[me], slots[me])
        _gather_inside(op, rank, slots)

    def between(self, op: OpParam, rank: AnyRank, levels: list[OuterLevel], work: Region) -> None:
        """Broadcast; a small slice of one superpod as a whole."""
        first, root, n = levels[0], op.root or 0, int(rank.level0.size)
        at = first.plane.index_of(root)
        if first.plane.name != "level1" or len(levels) > 1:
            broadcast(levels, work, root)
        elif first.word == "NHR":
            nhr_broadcast(rank.main, first.plane, work, at, (ONE_SHOT_BROADCAST + 1) * n - 1)
        else:
            nb_broadcast(rank.main, first.plane, work, at, share=n)
