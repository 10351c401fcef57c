"""A3's rings as a pipeline: superpods exchange one round's data while servers work on another's.

Rounds take turns with the halves of the CCL buffers. Level2 has a sub stream of its own, the last
one, main and the rings have level1 and level0:

    all_gather       level2 of round k + 1 | level1, level0 of round k
    reduce_scatter   level0, level1 of round k + 1 | level2 of round k

Each half has a notify for either direction, which come with the two sub streams that HCCL requests
on top of those of superpods.py; it uses one of the two. A stream that wants a half back waits for
the other one, two rounds later: the first two rounds find it empty. What happens on a plane is that
of superpods.py, with the rings aligned where there are two.

With r rounds, t2 on level2 and t on the planes inside each: r·max(t2, t) + min(t2, t).
Source: CollAllGatherPipelineFor91093Executor and CollReduceScatterPipelineFor91093Executor (hcomm
8958adb).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hccl_executors.levels import fidelities
from hccl_executors.outer_levels import OuterLevel
from hccl_executors.rings.orders import JOINED, Superpods
from hccl_executors.rings.places import sets
from hccl_executors.rings.superpods import SuperpodRings
from hccl_executors.sources import like_newest
from hccl_py.orchestration import Chunks, Region
from hccl_py.orchestration.region import SLICE_ALIGN
from hccl_py.plugins.executor import (
    AnyRank,
    Fidelity,
    Mode,
    OpParam,
    RankView,
    ResourceRequest,
    Topology,
    Unsuitable,
    require,
)
from hccl_py.values import RankInt

HALVES = 2
"""Parts of a CCL buffer, which rounds take turns with."""

EXTRA = 2
"""Sub streams behind those of the rings; the last one has level2."""


class SuperpodPipeline(SuperpodRings):
    """Rings of several superpods, whose rounds overlap. A slot of a round has `most` bytes."""

    most: int | None = None

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs several superpods alike in op-base mode, and SDMA inside the servers."""
        wrong = require(
            (op.mode is Mode.OP_BASE, "op-base mode only"),
            (len(topology.superpods) > 1, "needs several superpods"),
            (op.level1 not in JOINED, f"{op.level1} joins superpods"),
        )
        return wrong if isinstance(wrong, Unsuitable) else super().suits(op, topology)

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """Those of the rings and two sub streams; a round takes half of the CCL buffers."""
        asked = super().resources(op, rank)
        limit = self._limit(op, rank.ccl_bytes, rank.size)
        return replace(asked, sub_streams=asked.sub_streams + EXTRA, max_count=limit)

    def _limit(self, op: OpParam, ccl_bytes: int, ranks: int) -> int:
        """Return the elements of a slot in a round."""
        room = ccl_bytes // HALVES // ranks // SLICE_ALIGN * SLICE_ALIGN
        return (room if self.most is None else min(room, self.most)) // op.unit

    def _round(self, op: OpParam, rank: AnyRank) -> _SuperpodRound:
        return _SuperpodRound(op, rank, self._limit(op, rank.ccl_bytes, rank.size))


class _SuperpodRound:
    """A round of a pipeline: its half of the CCL buffers, its streams and what is between them."""

    def __init__(self, op: OpParam, rank: AnyRank, limit: int) -> None:
        self.rank, self.unit = rank, op.unit
        self.number, self.count = rank.start // limit, -(-op.count // limit)
        self.levels = Superpods(op, rank, aligned=len(rank.rings) > 1)
        self.outer = OuterLevel(rank.subs[-1], rank.level2, op.level2, meeting=True)
        self.inner = [o for o in self.levels.outer_levels if o.plane.name == "level1"]

    @property
    def is_last(self) -> bool:
        """True if no round follows."""
        return self.number + 1 == self.count

    @property
    def has_been_used(self) -> bool:
        """True if an earlier round used this half."""
        return self.number >= HALVES

    @property
    def is_used_again(self) -> bool:
        """True if a later round uses this half."""
        return self.number + HALVES < self.count

    def half(self, memory: Region) -> Region:
        """Return this round's half of a CCL buffer."""
        size = self.rank.ccl_bytes // HALVES // self.unit * self.unit
        return memory[self.number % HALVES * size :].head(size)

    def slots(self, memory: Region, size: RankInt) -> Chunks:
        """Return a slot for every rank in this round's half."""
        return self.half(memory).head(size * self.rank.size).split(self.rank.size, align=1)

    def outward(self) -> Any:
        """Return the notify by which main gives a half to level2."""
        return self.rank.notifies[len(self.rank.subs) + self._place(self.number)]

    def inward(self, number: int | None = None) -> Any:
        """Return the notify by which level2 gives a half to main, in this round or another."""
        return self.rank.notifies[self._place(self.number if number is None else number)]

    def _place(self, number: int) -> int:
        return len(self.rank.subs) - EXTRA + number % HALVES

    def on_plane(self, slots: Chunks, at: int) -> Chunks:
        """Return the slots that go together on a plane."""
        return sets(slots, self.levels.planes, at)


def _as_hccl(op: str, *files: str) -> Fidelity:
    """Return the fidelity of an op's pipeline: HCCL's, and the rings inside."""
    own = f"coll_{op}_pipeline_for_910_93_executor"
    return like_newest(own, *files).with_cases(fidelities(op))


class AllGatherPipelineFor91093Executor(SuperpodPipeline):
    """AllGather whose superpods exchange the next round's slots meanwhile. HCCL also copies the
    input to CCL_In, where it is not read.
    """

    op = "all_gather"
    algorithm = "level0:ring;level1:NHR|ring|NB;level2:NHR|ring|NB"
    fidelity = _as_hccl(
        "all_gather", "all_gather_ring_concurrent_direct", "aligned_all_gather_double_ring"
    )

    def orchestrate(self, op: OpParam, rank: AnyRank) -> None:
        """Gather between superpods, then between servers and inside them."""
        if not op.count:
            return
        turn = self._round(op, rank)
        slots, stream = turn.slots(rank.ccl_out, rank.user_in.size), turn.outer.stream
        if turn.number == 0:
            rank.main.post(turn.outward())
        if turn.number == 0 or turn.has_been_used:
            stream.wait(turn.outward())
        stream.copy(turn.half(rank.ccl_in).head(rank.user_in.size), rank.user_in)
        stream.copy(slots[rank.id], rank.user_in)
        turn.outer.run("all_gather", turn.on_plane(slots, 2))
        stream.post(turn.inward())
        rank.main.wait(turn.inward())
        for inner in turn.inner:
            inner.run("all_gather", turn.on_plane(slots, 1))
        turn.levels.all_gather(turn.on_plane(slots, 0), turn.on_plane(rank.user_out, 0))
        if turn.is_used_again:
            rank.main.post(turn.outward())


class ReduceScatterPipelineFor91093Executor(SuperpodPipeline):
    """ReduceScatter whose superpods exchange the sums of the round before meanwhile. A round takes
    8 MiB of a slot at most.
    """

    op = "reduce_scatter"
    algorithm = "level0:ring;level1:NHR|ring|NB;level2:NHR|ring|NB"
    most = 8 << 20
    fidelity = _as_hccl(
        "reduce_scatter",
        "reduce_scatter_ring_concurrent_direct",
        "aligned_reduce_scatter_double_ring",
    )

    def orchestrate(self, op: OpParam, rank: AnyRank) -> None:
        """Reduce inside servers and between them, then between superpods."""
        if not op.count:
            return
        turn = self._round(op, rank)
        slots, stream = turn.slots(rank.ccl_in, rank.user_out.size), turn.outer.stream
        if turn.has_been_used:
            rank.main.wait(turn.inward())
        turn.levels.reduce_scatter(turn.on_plane(rank.user_in, 0), turn.on_plane(slots, 0))
        for inner in turn.inner:
            inner.run("reduce_scatter", turn.on_plane(slots, 1))
        rank.main.post(turn.outward())
        stream.wait(turn.outward())
        turn.outer.run("reduce_scatter", turn.on_plane(slots, 2))
        stream.copy(rank.user_out, slots[rank.id])
        stream.post(turn.inward())
        if turn.is_last:
            for number in range(max(turn.count - HALVES, 0), turn.count):
                rank.main.wait(turn.inward(number))
