"""Staging: the place of the data while templates work on it, in memory that peers can reach.

                          op-base mode         graph mode
    all_gather            slots in CCL_Out     the output itself
    all_reduce, reduce    CCL_In               the output itself
    broadcast             CCL_In               the output itself
    reduce_scatter        slots in CCL_In      slots in scratch: the input is the caller's
    scatter               slots in CCL_In      slots in scratch: only the root has an input
    gather                slots in CCL_In      slots in scratch: only the root has an output

There is one slot per rank, packed. Where links cannot reduce on their way, what arrives lands
beside (`Rank.landing`): in the other CCL buffer, or in scratch in graph mode.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from hccl_py.call.ops import OPS
from hccl_py.enums import Buffer
from hccl_py.orchestration import Chunks, Region
from hccl_py.orchestration.region import SLICE_ALIGN
from hccl_py.plugins.executor import AnyRank, Mode, OpParam, PlaneRequest, RankView, ResourceRequest
from hccl_py.plugins.resources import Pattern

_IN_SCRATCH = ("reduce_scatter", "scatter", "gather")


class PlaneLinks(NamedTuple):
    """Links on a plane; all by RDMA if `rdma`."""

    level: str
    pattern: Pattern
    rdma: bool = False


def request(
    op: OpParam, rank: RankView, *planes: PlaneLinks | tuple[str, Pattern], sub_streams: int = 0
) -> ResourceRequest:
    """Ask for links on planes, (level, pattern) each, with the memories that staging uses."""
    parts = _scratch_parts(op, rank)
    memories: tuple[Buffer | None, Buffer | None] = (None, None)
    if parts:
        own = Buffer.USER_IN if op.name in _IN_SCRATCH else Buffer.USER_OUT
        memories = (own, Buffer.SCRATCH)
    limit = rank.ccl_bytes // op.unit
    if OPS[op.name].has_slots:
        limit = rank.ccl_bytes // rank.size // 128 * 128 // op.unit
    return ResourceRequest(
        planes=tuple(
            PlaneRequest(asked.level, asked.pattern, *memories, rdma=asked.rdma)
            for asked in (PlaneLinks(*plane) for plane in planes)
        ),
        sub_streams=sub_streams,
        scratch_bytes=parts * op.size,
        max_count=limit,
    )


def staged(op: OpParam, rank: AnyRank) -> Any:
    """Put this round's input where templates work: a Region, or one slot per rank."""
    if op.name == "all_gather":
        slots = rank.stage_out()
        rank.main.copy(slots[rank.id], rank.user_in)
        return slots
    if op.name == "gather":
        slots = rank.slots(rank.user_in.size)
        rank.main.copy(slots[rank.id], rank.user_in)
        return slots
    if op.name == "scatter":
        slots = rank.slots(rank.user_out.size)
        if rank.id == op.root:
            rank.main.copy(slots, rank.user_in)
        return slots
    if op.name == "reduce_scatter":
        slots = rank.slots(rank.user_out.size)
        rank.main.copy(slots, rank.user_in)
        return slots
    if op.name == "broadcast":
        return _broadcast_work(op, rank)
    return rank.stage_in()


def delivered(op: OpParam, rank: AnyRank, work: Region | Chunks) -> None:
    """Copy the result of this round to the output."""
    if op.name in ("reduce", "gather") and rank.id != op.root:
        return
    if op.name in ("reduce_scatter", "scatter"):
        assert isinstance(work, Chunks)
        rank.main.copy(rank.user_out, work[rank.id])
    else:
        rank.deliver(work)


def _broadcast_work(op: OpParam, rank: AnyRank) -> Region:
    graph = op.mode is Mode.GRAPH
    work: Region = rank.user_out if graph else rank.ccl_in.head(rank.user_in.size)
    if rank.id == op.root and not (graph and op.in_place):
        rank.main.copy(work, rank.user_in)
    return work


def _scratch_parts(op: OpParam, rank: RankView) -> int:
    """Return the size of scratch in multiples of the op's count: the slots of graph mode, and as
    much again where raw data has to land.
    """
    if op.mode is Mode.OP_BASE:
        return 0
    lands = op.reduce is not None and not rank.inline_reduce and rank.size > 1
    if op.name in _IN_SCRATCH:
        return rank.size * (1 + lands)
    return int(lands)


def aligned(size: int) -> int:
    """Return bytes rounded up to a multiple of 128."""
    return -(-size // SLICE_ALIGN) * SLICE_ALIGN
