"""AllGatherV and ReduceScatterV on the flat plane: one algorithm over all ranks, whatever connects
them.

Templates take chunks of any sizes, so this is flat.py with blocks that differ. They lie packed,
each at a multiple of 128 bytes, in a CCL buffer; in graph mode ReduceScatterV takes scratch, and
AllGatherV works in the output. HCCL has such executors for 310P and for Atlas A3 only, and refuses
these ops over several servers elsewhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hccl_executors.levels import LEVELS, Level, choices
from hccl_executors.templates.mesh_push import aligned
from hccl_py.enums import Buffer
from hccl_py.executor import Mode, OpParam, PlaneRequest, Rank, RankView, ResourceRequest, Topology
from hccl_py.operators.parts import blocks_of
from hccl_py.orchestration import Chunks, Region

__all__ = [
    "AllGatherVComm",
    "AllGatherVFor310PExecutor",
    "ReduceScatterVComm",
    "ReduceScatterVFor310PRing",
    "packed",
    "packed_bytes",
]


def packed(memory: Region, like: Chunks) -> Chunks:
    """Return chunks of the same sizes, one after the other in `memory`, each at a multiple of 128
    bytes.
    """
    room = (like.sizes + 127) // 128 * 128
    return Chunks(memory.buffer, np.cumsum(room, axis=1) - room, like.sizes, like.row)


def packed_bytes(op: OpParam, rank: RankView) -> int:
    """Return the scratch for all blocks of a reduction, twice as much where raw data has to land
    beside.
    """
    lands = not rank.inline_reduce and rank.size > 1
    counts, _ = blocks_of(op, rank.size)
    return sum(aligned(count * op.unit) for count in counts.tolist()) * (1 + lands)


class FlatV:
    """Stage the blocks, run the template of `op.level1` over all ranks on one stream, deliver."""

    op: str
    order = "fixed"

    def suits(self, op: OpParam, topology: Topology) -> bool:
        """Runs everywhere, uneven servers included."""
        return True

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """The template's links; the largest block of a round fills its part of a CCL buffer."""
        in_scratch = op.mode is Mode.GRAPH and self.op == "reduce_scatter_v"
        links = _level(op).peers(rank.flat)
        pair = (Buffer.USER_IN, Buffer.SCRATCH) if in_scratch else (None, None)
        return ResourceRequest(
            planes=(PlaneRequest("flat", links, *pair),),
            scratch_bytes=packed_bytes(op, rank) if in_scratch else 0,
            max_count=rank.ccl_bytes // rank.size // 128 * 128 // op.unit,
        )

    def orchestrate(self, op: OpParam, rank: Rank[Any, Any]) -> None:
        """Stage, run, deliver."""
        if self.op == "all_gather_v":
            graph = op.mode is Mode.GRAPH
            chunks = rank.user_out if graph else packed(rank.ccl_out, rank.user_out)
            rank.main.copy(chunks[rank.id], rank.user_in)
            _level(op).run(rank.main, rank.flat, chunks)
            rank.deliver(chunks)
        else:
            chunks = packed(rank.scratch if op.mode is Mode.GRAPH else rank.ccl_in, rank.user_in)
            rank.main.copy(chunks, rank.user_in)
            _level(op).run(rank.main, rank.flat, chunks)
            rank.main.copy(rank.user_out, chunks[rank.id])


def _level(op: OpParam) -> Level:
    return LEVELS[op.name.removesuffix("_v")][op.level1]


class AllGatherVComm(FlatV):
    """AllGatherV over all ranks: by default a ring, p - 1 steps; not one of HCCL's."""

    op = "all_gather_v"
    algorithm = f"level0:NA;level1:{choices('all_gather')}"


class AllGatherVFor310PExecutor(FlatV):
    """AllGatherV on Atlas 300I: a ring through all devices."""

    op = "all_gather_v"
    algorithm = "level0:NA;level1:ring"


class ReduceScatterVComm(FlatV):
    """ReduceScatterV over all ranks: by default a ring, p - 1 steps; not one of HCCL's."""

    op = "reduce_scatter_v"
    algorithm = f"level0:NA;level1:{choices('reduce_scatter')}"


class ReduceScatterVFor310PRing(FlatV):
    """ReduceScatterV on Atlas 300I: a ring through all devices."""

    op = "reduce_scatter_v"
    algorithm = "level0:NA;level1:ring"
