"""Pipelines of Atlas A2: while a block is shared inside the servers, the one before goes between.

One template, `templates/pipeline.py`, does both levels at once, so there is no order of levels and
no choice between servers: a ring. Blocks lie in the CCL buffers:

    all_gather       two, one in each buffer
    reduce_scatter   three in CCL_In, so that the own part of the next one is copied meanwhile; what
                     comes from the next server lands in CCL_Out
    all_reduce       as many, two in each buffer; the data has a slot per rank

Rounds take what HCCL's do, which keeps 16 KiB of a buffer free. Where the CCL buffer is so small
that nothing would be left for three blocks (below 96 KiB), blocks are cut without (ours). Slots of
an all-reduce that fill more than half of a buffer go in two parts, one after the other (ours).

Source: HCCL's public documents.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from hccl_executors.outer_levels import all_servers
from hccl_executors.templates.pipeline import (
    pipeline_all_gather,
    pipeline_all_reduce,
    pipeline_reduce_scatter,
)
from hccl_py.executor import (
    Mode,
    OpParam,
    PlaneRequest,
    Rank,
    RankView,
    ResourceRequest,
    Topology,
    Unsuitable,
    require,
)
from hccl_py.orchestration import Chunks, Region
from hccl_py.orchestration.region import SLICE_ALIGN

__all__ = [
    "AllGatherMeshOpbasePipelineExecutor",
    "AllReduceMeshOpbasePipelineExecutor",
    "ReduceScatterMeshOpbasePipelineExecutor",
]

FREE = 16384
"""Bytes of a buffer that HCCL leaves free, and to multiples of which it cuts three blocks."""

DEPTH = 3
"""Blocks that are reduced in turn: HCCL's PIPELINE_DEPTH."""


class Pipeline(ABC):
    """A mesh inside the servers and a ring between them, in op-base mode.

    There is a sub stream for every device of a server: its peers and the ring. With one server
    nothing goes between, so the ring's is not requested.
    """

    op: str
    algorithm = "level0:mesh;level1:pipeline"

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs meshes of as many devices in every server, CCL buffers, and links that reduce."""
        inline = op.reduce is None or topology.reduces_inline(op.dtype, op.reduce)
        return require(
            (op.mode is Mode.OP_BASE, "works through CCL buffers: op-base mode only"),
            (topology.has_mesh, "needs every device linked to every other one"),
            (topology.has_sdma_inside, "needs SDMA between all devices of a server"),
            (topology.has_equal_servers, "needs servers alike, and ranks numbered by server"),
            (inline, "needs links that reduce this data type on their way"),
        )

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """Links inside and between, a sub stream for each, and the bytes of a block."""
        devices, servers = int(rank.level0.size), int(rank.level12.size)
        return ResourceRequest(
            planes=(PlaneRequest("level0", "mesh"), PlaneRequest(all_servers(rank), "ring")),
            sub_streams=devices if servers > 1 else devices - 1,
            max_count=max(self.block_bytes(rank), 0) // op.unit,
        )

    def block_bytes(self, rank: RankView | Rank[Any, Any]) -> int:
        """Return the bytes of a round: of one block, where ops have a slot per rank."""
        return rank.ccl_bytes - FREE

    @abstractmethod
    def orchestrate(self, op: OpParam, rank: Rank[Any, Any]) -> None:
        """Record both levels."""


class AllGatherMeshOpbasePipelineExecutor(Pipeline):
    """AllGather straight into the user's output."""

    op = "all_gather"

    def orchestrate(self, op: OpParam, rank: Rank[Region, Chunks]) -> None:
        """Stage the own slot, then hand blocks round."""
        blocks = [buffer.head(rank.user_out.largest) for buffer in (rank.ccl_in, rank.ccl_out)]
        rank.main.copy(blocks[0].head(rank.user_in.size), rank.user_in)
        ring = rank.plane(all_servers(rank))
        pipeline_all_gather(rank, rank.level0, ring, rank.user_out, blocks)


class ReduceScatterMeshOpbasePipelineExecutor(Pipeline):
    """ReduceScatter straight from the user's input."""

    op = "reduce_scatter"
    order = "arrival"

    def block_bytes(self, rank: RankView | Rank[Any, Any]) -> int:
        """Return a third of CCL_In."""
        each = rank.ccl_bytes // (DEPTH * FREE) * FREE - FREE
        return each if each > 0 else rank.ccl_bytes // DEPTH // SLICE_ALIGN * SLICE_ALIGN

    def orchestrate(self, op: OpParam, rank: Rank[Chunks, Region]) -> None:
        """Hand partial sums round, then copy the own one."""
        each = rank.ccl_bytes // DEPTH // SLICE_ALIGN * SLICE_ALIGN
        size = rank.user_in.largest
        blocks = [rank.ccl_in[k * each : k * each + size] for k in range(DEPTH)]
        ring = rank.plane(all_servers(rank))
        land = rank.ccl_out.head(size)
        done = pipeline_reduce_scatter(rank, rank.level0, ring, rank.user_in, blocks, land)
        rank.main.copy(rank.user_out, done)


class AllReduceMeshOpbasePipelineExecutor(Pipeline):
    """AllReduce: the reduce-scatter of a slot per rank, then the all-gather backwards."""

    op = "all_reduce"
    order = "arrival"

    def block_bytes(self, rank: RankView | Rank[Any, Any]) -> int:
        """Return the bytes of all slots."""
        return (rank.ccl_bytes - FREE) * rank.size

    def orchestrate(self, op: OpParam, rank: Rank[Region, Region]) -> None:
        """Hand partial sums round, then results."""
        inputs, outputs = rank.user_in.split(rank.size), rank.user_out.split(rank.size)
        half = rank.ccl_bytes // 2 // SLICE_ALIGN * SLICE_ALIGN
        buffers = rank.ccl_in.head(2 * half), rank.ccl_out.head(2 * half)
        places = [place for buffer in buffers for place in buffer.split(2)]
        ring, parts = rank.plane(all_servers(rank)), 1 if inputs.largest <= half else 2
        for part, result in zip(inputs.parts(parts), outputs.parts(parts), strict=True):
            *blocks, land = [place.head(part.largest) for place in places]
            pipeline_all_reduce(rank, rank.level0, ring, part, result, blocks, land)
