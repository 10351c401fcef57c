"""Pipelines of Atlas A2: while a block is shared inside the servers, the one before goes between.
These are those of op-base mode; graph_pipelines.py has those of graph mode.

One template, `templates/pipeline.py`, does both levels at once, so there is no order of levels and
no choice between servers: a ring. Blocks lie in the CCL buffers:

    all_gather       two, one in each buffer; all_gather_v, too
    reduce_scatter   three in CCL_In; reduce_scatter_v, too
    all_reduce       two, one in each buffer; the data has a slot per rank, the last of which has
                     what remains of elements

A slot lies as far behind a multiple of 16 KiB in its block as it does in user memory, so that
source and destination of a transfer are aligned alike; rounds leave 16 KiB free for that. Where the
CCL buffer is so small that nothing would be left for three blocks (below 96 KiB), they are cut
without (ours), and a last slot that would not fit where it should lie begins as far back as it must
(ours). In a round of a V-op every slot has as much as a block holds, or what is left of it.

Sources: coll_*_mesh_opbase_pipeline_executor.cc of HCCL (hcomm b5f3e5b).
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from hccl_executors.outer_levels import all_servers
from hccl_executors.sources import april, like_april
from hccl_executors.templates.mesh_collect import ALIGN
from hccl_executors.templates.pipeline import (
    pipeline_all_gather,
    pipeline_all_reduce,
    pipeline_reduce_scatter,
)
from hccl_py.orchestration import Chunks, Region
from hccl_py.orchestration.region import SLICE_ALIGN
from hccl_py.plugins.executor import (
    AnyRank,
    BaseExecutor,
    Mode,
    OpParam,
    PlaneRequest,
    Rank,
    RankView,
    ResourceRequest,
    Topology,
    Unsuitable,
    require,
    steps,
)
from hccl_py.values import IntArray

FREE = ALIGN
"""Bytes of a buffer that HCCL leaves free, and to multiples of which it cuts three blocks."""

DEPTH = 3
"""Blocks of a reduce_scatter: HCCL's PIPELINE_DEPTH."""


_ANSWERED = steps(
    "Between servers of a superpod, a rank also says that it has read what it got; HCCL's "
    "pipelines are for RDMA, and would write a block anew that is still read.",
    *april("all_reduce_opbase_pipeline"),
)
OVER_SDMA = {"910_93": _ANSWERED}


class Pipeline(BaseExecutor):
    """A mesh inside the servers and a ring between them, in one mode."""

    op: str
    algorithm = "level0:mesh;level1:pipeline"
    mode: tuple[Mode, str]
    """Which, and why."""

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs meshes of as many devices in every server, the mode, and links that reduce."""
        inline = op.reduce is None or topology.reduces_inline(op.dtype, op.reduce)
        mode, why = self.mode
        return require(
            (op.mode is mode, why),
            (topology.has_mesh, "needs every device linked to every other one"),
            (topology.has_sdma_inside, "needs SDMA between all devices of a server"),
            (topology.has_equal_servers, "needs servers alike, and ranks numbered by server"),
            (inline, "needs links that reduce this data type on their way"),
        )

    @abstractmethod
    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """Links inside and between, sub streams, and memory."""

    @abstractmethod
    def orchestrate(self, op: OpParam, rank: AnyRank) -> None:
        """Record both levels."""


class OpbasePipeline(Pipeline):
    """Blocks in the CCL buffers; there is a sub stream for every device of a server: its peers and
    the ring.
    """

    mode = (Mode.OP_BASE, "works through CCL buffers: op-base mode only")

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """Links inside and between, a sub stream for each, and the bytes of a block."""
        return ResourceRequest(
            planes=(PlaneRequest("level0", "mesh"), PlaneRequest(all_servers(rank), "ring")),
            sub_streams=int(rank.level0.size),
            max_count=max(self.block_bytes(op, rank), 0) // op.unit,
        )

    def block_bytes(self, op: OpParam, rank: RankView | AnyRank) -> int:
        """Return the bytes of a round: of one block, where ops have a slot per rank."""
        return rank.ccl_bytes - FREE


class AllGatherMeshOpbasePipelineExecutor(OpbasePipeline):
    """AllGather straight into the user's output."""

    op = "all_gather"
    fidelity = like_april(
        "coll_all_gather_mesh_opbase_pipeline_executor", "all_gather_pipeline"
    ).with_cases(OVER_SDMA)

    def orchestrate(self, op: OpParam, rank: Rank[Region, Chunks]) -> None:
        """Stage the own slot, then hand blocks round."""
        starts = self.starts(op, rank)
        images = [_image(block, rank.user_out, starts) for block in (rank.ccl_in, rank.ccl_out)]
        ring = rank.plane(all_servers(rank))
        rank.main.copy(images[0][ring.id * rank.level0.size + rank.level0.id], rank.user_in)
        pipeline_all_gather(rank, rank.level0, ring, rank.user_out, images)

    def starts(self, op: OpParam, rank: Rank[Region, Chunks]) -> IntArray:
        """Return the offset of every slot in its block, as if there were one round."""
        return np.arange(rank.size) * op.size % ALIGN


class AllGatherVMeshOpbasePipelineExecutor(AllGatherMeshOpbasePipelineExecutor):
    """AllGatherV straight into the user's output."""

    op = "all_gather_v"
    fidelity = like_april(
        "coll_all_gather_v_mesh_opbase_pipeline_executor", "all_gather_v_pipeline"
    ).with_cases(OVER_SDMA)

    def block_bytes(self, op: OpParam, rank: RankView | AnyRank) -> int:
        """Return a multiple of 128 bytes."""
        return super().block_bytes(op, rank) // SLICE_ALIGN * SLICE_ALIGN

    def starts(self, op: OpParam, rank: Rank[Region, Chunks]) -> IntArray:
        """Return the same of slots where they lie in user memory."""
        return rank.user_out.offsets % ALIGN


class ReduceScatterMeshOpbasePipelineExecutor(OpbasePipeline):
    """ReduceScatter straight from the user's input."""

    op = "reduce_scatter"
    order = "arrival"
    fidelity = like_april(
        "coll_reduce_scatter_mesh_opbase_pipeline_executor",
        "reduce_scatter_pipeline",
        "component/sender",
        "component/reducer",
    ).with_cases(OVER_SDMA)

    def block_bytes(self, op: OpParam, rank: RankView | AnyRank) -> int:
        """Return a third of CCL_In."""
        each = _third(rank) - FREE
        return each if each > 0 else rank.ccl_bytes // DEPTH // SLICE_ALIGN * SLICE_ALIGN

    def orchestrate(self, op: OpParam, rank: Rank[Chunks, Region]) -> None:
        """Hand partial sums round, then copy the own one."""
        slots, room = rank.user_in, _third(rank)
        starts = slots.offsets % ALIGN
        if room <= FREE:
            room, starts = rank.ccl_bytes // DEPTH // SLICE_ALIGN * SLICE_ALIGN, starts * 0
        blocks = [rank.ccl_in[k * room : (k + 1) * room] for k in range(DEPTH)]
        images = [_image(block, slots, starts) for block in blocks]
        ring = rank.plane(all_servers(rank))
        done = pipeline_reduce_scatter(rank, rank.level0, ring, slots, images)
        rank.main.copy(rank.user_out, done)


class ReduceScatterVMeshOpbasePipelineExecutor(ReduceScatterMeshOpbasePipelineExecutor):
    """ReduceScatterV straight from the user's input."""

    op = "reduce_scatter_v"
    fidelity = like_april(
        "Coll_reduce_scatter_v_mesh_opbase_pipeline_executor",
        "reduce_scatter_v_pipeline",
        "component/sender",
        "component/reducer",
    ).with_cases(OVER_SDMA)


class AllReduceMeshOpbasePipelineExecutor(OpbasePipeline):
    """AllReduce: the reduce-scatter of a slot per rank, then the all-gather backwards."""

    op = "all_reduce"
    order = "arrival"
    fidelity = like_april(
        "coll_all_reduce_mesh_opbase_pipeline_executor",
        "all_reduce_opbase_pipeline",
        "component/sender",
        "component/reducer",
    ).with_cases(OVER_SDMA)

    def block_bytes(self, op: OpParam, rank: RankView | AnyRank) -> int:
        """Return the bytes of all slots; the last one may have an element of every rank more."""
        return (rank.ccl_bytes - max(FREE, rank.size * op.unit)) * rank.size

    def orchestrate(self, op: OpParam, rank: Rank[Region, Region]) -> None:
        """Hand partial sums round, then results."""
        inputs = equal_slots(rank.user_in, rank.size, op.unit)
        outputs = equal_slots(rank.user_out, rank.size, op.unit)
        starts = np.minimum(
            (inputs.offsets - inputs.offsets[:, :1]) % ALIGN, rank.ccl_bytes - inputs.sizes
        )
        images = [_image(block, inputs, starts) for block in (rank.ccl_in, rank.ccl_out)]
        ring = rank.plane(all_servers(rank))
        pipeline_all_reduce(rank, rank.level0, ring, inputs, outputs, images)


def _third(rank: RankView | AnyRank) -> int:
    """Return the bytes of one of three blocks, with what is left free."""
    return rank.ccl_bytes // (DEPTH * ALIGN) * ALIGN


def _image(block: Region, slots: Chunks, starts: IntArray) -> Chunks:
    """Return the slots as they lie, one at a time, at `starts` of a block."""
    offsets = np.broadcast_to(int(block.offset) + starts, slots.sizes.shape)
    return Chunks(block.buffer, offsets, slots.sizes, slots.row)


def equal_slots(region: Region, n: int, unit: int) -> Chunks:
    """Cut into n chunks of as many elements, but for the last one, which has the rest, too."""
    each = int(region.size) // unit // n * unit
    starts = np.arange(n) * each
    sizes = np.append(np.full(n - 1, each), int(region.size) - (n - 1) * each)
    return Chunks(region.buffer, int(region.offset) + starts[None], sizes[None])
