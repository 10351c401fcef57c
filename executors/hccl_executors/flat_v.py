"""AllGatherV and ReduceScatterV on the flat plane: one algorithm over all ranks, over links of any
kind.

Templates take chunks of any sizes, so this is flat.py with blocks that differ. They lie packed,
each at a multiple of 128 bytes, in a CCL buffer; in graph mode ReduceScatterV takes scratch, and
AllGatherV works in the output. HCCL has such executors for 310P only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hccl_executors.levels import LEVELS, Level, choices
from hccl_executors.sources import april, like_april
from hccl_executors.staging import aligned
from hccl_executors.templates.direct_ring import HelpedRing
from hccl_py.enums import Buffer
from hccl_py.operators.parts import blocks_of
from hccl_py.orchestration import Chunks, Region
from hccl_py.orchestration.region import SLICE_ALIGN
from hccl_py.plugins.executor import (
    AnyRank,
    BaseExecutor,
    Mode,
    OpParam,
    PlaneRequest,
    RankView,
    ResourceRequest,
    Topology,
    Unsuitable,
    ours,
    require,
    steps,
)

_HELPED_FROM = 4 << 20
"""Bytes of all blocks above which a helper delivers them."""


def packed(memory: Region, like: Chunks, align: int = SLICE_ALIGN) -> Chunks:
    """Return chunks of the same sizes, one after the other in `memory`, each at a multiple of so
    many bytes.
    """
    room = (like.sizes + align - 1) // align * align
    return Chunks(memory.buffer, np.cumsum(room, axis=1) - room, like.sizes, like.row)


def packed_bytes(op: OpParam, rank: RankView) -> int:
    """Return the scratch for all blocks of a reduction, twice as much where raw data has to land
    beside.
    """
    lands = not rank.inline_reduce and rank.size > 1
    counts, _ = blocks_of(op, rank.size)
    return sum(aligned(count * op.unit) for count in counts.tolist()) * (1 + lands)


class FlatV(BaseExecutor):
    """Stage the blocks, run the template of `op.level1` over all ranks on one stream, deliver."""

    op: str

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        return True

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """The template's links; the largest block of a round fills its part of a CCL buffer."""
        in_scratch = op.mode is Mode.GRAPH and self.op == "reduce_scatter_v"
        links = _template(op).peers(rank.flat)
        pair = (Buffer.USER_IN, Buffer.SCRATCH) if in_scratch else (None, None)
        return ResourceRequest(
            planes=(PlaneRequest("flat", links, *pair),),
            scratch_bytes=packed_bytes(op, rank) if in_scratch else 0,
            max_count=rank.ccl_bytes // rank.size // SLICE_ALIGN * SLICE_ALIGN // op.unit,
        )

    def orchestrate(self, op: OpParam, rank: AnyRank) -> None:
        if self.op == "all_gather_v":
            graph = op.mode is Mode.GRAPH
            chunks = rank.user_out if graph else packed(rank.ccl_out, rank.user_out)
            rank.main.copy(chunks[rank.id], rank.user_in)
            _template(op).run(rank.main, rank.flat, chunks)
            rank.deliver(chunks)
        else:
            chunks = packed(rank.scratch if op.mode is Mode.GRAPH else rank.ccl_in, rank.user_in)
            rank.main.copy(chunks, rank.user_in)
            _template(op).run(rank.main, rank.flat, chunks)
            rank.main.copy(rank.user_out, chunks[rank.id])


def _template(op: OpParam) -> Level:
    return LEVELS[op.name.removesuffix("_v")][op.level1]


class AllGatherVComm(FlatV):
    """AllGatherV over all ranks: by default a ring, p - 1 steps; not one of HCCL's."""

    op = "all_gather_v"
    algorithm = f"level0:NA;level1:{choices('all_gather')}"
    fidelity = ours("HCCL has no executor of this kind: it runs where HCCL refuses the call.")


class DirectV(FlatV):
    """One ring from and to user memory, which may take a sub stream; over SDMA."""

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs one server, and SDMA inside."""
        two = op.in_place and op.name == "reduce_scatter_v" and topology.size == 2
        return require(
            (topology.is_single_server, f"needs one server, there are {len(topology.servers)}"),
            (topology.has_sdma_inside, "needs SDMA between all devices of a server"),
            (
                not (two and op.mode is Mode.OP_BASE),
                "two devices fetch what they send while they fetch what they keep: not in place",
            ),
        )

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """The ring's links and one sub stream."""
        return replace(super().resources(op, rank), sub_streams=1)


class AllGatherVFor310PExecutor(DirectV):
    """AllGatherV on Atlas 300I: a ring through all devices, from and to user memory. Above 4 MiB of
    all blocks a helper stream delivers. Blocks lie packed, without gaps.
    """

    op = "all_gather_v"
    algorithm = "level0:NA;level1:ring"
    fidelity = like_april(
        "coll_all_gather_v/310P/coll_all_gatherv_for_310p_executor",
        "all_gather_ring_direct",
        "all_gather_ring_concurrent_direct",
    )

    def orchestrate(self, op: OpParam, rank: AnyRank) -> None:
        """Stage the own block, go round."""
        out = rank.user_out
        graph = op.mode is Mode.GRAPH
        work = out if graph else packed(rank.ccl_out, out, align=1)
        ring = HelpedRing(rank, rank.flat, rank.main, 0)
        is_large = bool(int(out.sizes[0].sum()) > _HELPED_FROM)
        (ring.all_gather if is_large else ring.all_gather_alone)(work, out, rank.user_in)


class ReduceScatterVComm(FlatV):
    """ReduceScatterV over all ranks: by default a ring, p - 1 steps; not one of HCCL's."""

    op = "reduce_scatter_v"
    algorithm = f"level0:NA;level1:{choices('reduce_scatter')}"
    fidelity = ours("HCCL has no executor of this kind: it runs where HCCL refuses the call.")


class ReduceScatterVFor310PRing(DirectV):
    """ReduceScatterV on Atlas 300I: a ring through all devices, from and to user memory, helped by
    a stream. Blocks lie packed, without gaps; a round takes so much of each block as leaves all of
    them room in the CCL buffer, and more of large ones when small ones are done.
    """

    op = "reduce_scatter_v"
    algorithm = "level0:NA;level1:ring"
    fidelity = like_april(
        "310P/coll_reduce_scatter_v_for_310p_ring_executor", "reduce_scatter_ring_concurrent_direct"
    ).with_cases(
        {
            "graph": steps(
                "HCCL's reads no block that is larger than the first one, which its own checker "
                "rejects: coll_reduce_scatter_v_for_310p_ring_executor.cc:142-145 has the ring work"
                " in the output. Here it works in scratch.",
                *april("310P/coll_reduce_scatter_v_for_310p_ring_executor"),
            )
        }
    )

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """The same, round by round for as much of every block as they all have room for."""
        return sharing_rounds(super().resources(op, rank), op, rank, align=1)

    def orchestrate(self, op: OpParam, rank: AnyRank) -> None:
        """Go round."""
        memory = rank.scratch if op.mode is Mode.GRAPH else rank.ccl_in
        work = packed(memory, rank.user_in, align=1)
        HelpedRing(rank, rank.flat, rank.main, 0).reduce_scatter(rank.user_in, work, rank.user_out)


def sharing_rounds(
    asked: ResourceRequest,
    op: OpParam,
    rank: RankView,
    align: int = SLICE_ALIGN,
    *,
    ends_empty: bool = True,
) -> ResourceRequest:
    """Return the request with rounds in which all blocks share a CCL buffer; `ends_empty` as in
    `shared_rounds`.
    """
    counts, _ = blocks_of(op, rank.size)
    room = rank.ccl_bytes // SLICE_ALIGN * SLICE_ALIGN // op.unit
    rounds = shared_rounds(counts.tolist(), room, max(align // op.unit, 1), ends_empty=ends_empty)
    most = max(rounds, default=room // rank.size)
    return replace(asked, max_count=most, first_rounds=rounds)


def shared_rounds(
    counts: Sequence[int], room: int, align: int = 1, *, ends_empty: bool = True
) -> tuple[int, ...]:
    """Return the most elements of every block in each round, in multiples of `align`, where all
    blocks share the room; none if it does not hold one element of each.

    With `ends_empty`, blocks that fill the last round's room to the last element are followed by a
    round without data, as in HCCL but for its meshes.
    """
    found, left, free = [], list(counts), room
    while any(left):
        level, free = 0, room
        while each := _even_share(left, level, free, align, is_first=not level):
            free -= sum(min(count - level, each) for count in left if count > level)
            level += each
        if not level:
            return ()
        found.append(level)
        left = [max(count - level, 0) for count in left]
    return (*found, 0) if ends_empty and found and not free else tuple(found)


def _even_share(left: Sequence[int], level: int, free: int, align: int, *, is_first: bool) -> int:
    """Return the elements to add to each block that has more than `level` left; less than `align`
    only of an empty buffer.
    """
    blocks = sum(count > level for count in left)
    each = free // blocks if blocks else 0
    if each > align:
        return each // align * align
    return each if each == align or is_first else 0
