"""Pipelines of Atlas A2 in graph mode, where peers reach user memory.

    all_gather, all_gather_v   in the output
    reduce_scatter             peers read each other's input; partial sums lie in scratch
    all_reduce                 peers add to scratch; results go through the output

HCCL's reductions keep partial sums in the caller's input. Here that stays as it is: its image in
scratch takes their place, of which a rank fills the slots that it reduces, one in every server.

Sources: coll_*_mesh_graph_pipeline_executor.cc of HCCL (hcomm b5f3e5b).
"""

from __future__ import annotations

from hccl_executors.outer_levels import all_servers
from hccl_executors.pipelines import OVER_SDMA, Pipeline, equal_slots
from hccl_executors.sources import like_april
from hccl_executors.templates.pipeline import (
    pipeline_all_gather,
    pipeline_all_reduce,
    pipeline_reduce_scatter,
)
from hccl_py.enums import Buffer
from hccl_py.orchestration import Chunks, Region
from hccl_py.plugins.executor import (
    AnyRank,
    Mode,
    OpParam,
    PlaneRequest,
    Rank,
    RankView,
    ResourceRequest,
)


class GraphPipeline(Pipeline):
    """The memory that peers reach, and the bytes of scratch."""

    mode = (Mode.GRAPH, "works in user memory that peers reach: graph mode only")
    memories: tuple[Buffer | None, Buffer | None] = (None, None)
    idle_subs = 0
    """Sub streams that the op can do without."""

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """Links inside and between, a sub stream for every peer in the server and for the ring."""
        return ResourceRequest(
            planes=(
                PlaneRequest("level0", "mesh", *self.memories),
                PlaneRequest(all_servers(rank), "ring", *self.memories),
            ),
            sub_streams=int(rank.level0.size) - self.idle_subs,
            scratch_bytes=self.scratch_bytes(op, rank),
        )

    def scratch_bytes(self, op: OpParam, rank: RankView) -> int:
        """Return the bytes of scratch: none."""
        return 0


class AllGatherMeshGraphPipelineExecutor(GraphPipeline):
    """AllGather in the output."""

    op = "all_gather"
    fidelity = like_april(
        "coll_all_gather_mesh_graph_pipeline_executor", "all_gather_graph_pipeline"
    ).with_cases(OVER_SDMA)

    def orchestrate(self, op: OpParam, rank: Rank[Region, Chunks]) -> None:
        """Put the own slot in its place, then hand blocks round."""
        rank.main.copy(rank.user_out[rank.id], rank.user_in)
        pipeline_all_gather(rank, rank.level0, rank.plane(all_servers(rank)), rank.user_out)


class AllGatherVMeshGraphPipelineExecutor(AllGatherMeshGraphPipelineExecutor):
    """AllGatherV in the output."""

    op = "all_gather_v"
    fidelity = like_april(
        "coll_all_gather_v_mesh_graph_pipeline_executor", "all_gather_v_graph_pipeline"
    ).with_cases(OVER_SDMA)


class ReduceScatterMeshGraphPipelineExecutor(GraphPipeline):
    """ReduceScatter whose ranks read what they add inside the server."""

    op = "reduce_scatter"
    order = "arrival"
    memories = (Buffer.USER_IN, Buffer.SCRATCH)
    fidelity = like_april(
        "coll_reduce_scatter_mesh_graph_pipeline_executor",
        "reduce_scatter_graph_pipeline",
        "component/sender",
        "component/reducer",
    ).with_cases(OVER_SDMA)

    def scratch_bytes(self, op: OpParam, rank: RankView) -> int:
        """Return the bytes of the input."""
        return op.size * rank.size

    def orchestrate(self, op: OpParam, rank: Rank[Chunks, Region]) -> None:
        """Hand partial sums round, then copy the own one."""
        images, ring = [_image(rank, rank.user_in)], rank.plane(all_servers(rank))
        done = pipeline_reduce_scatter(rank, rank.level0, ring, rank.user_in, images, pull=True)
        rank.main.copy(rank.user_out, done)


class AllReduceMeshGraphPipelineExecutor(GraphPipeline):
    """AllReduce: partial sums in scratch, results in the output; main serves the ring."""

    op = "all_reduce"
    order = "arrival"
    memories = (Buffer.SCRATCH, Buffer.USER_OUT)
    idle_subs = 1
    fidelity = like_april(
        "coll_all_reduce_mesh_graph_pipeline_executor",
        "all_reduce_graph_pipeline",
        "component/sender",
        "component/reducer",
    ).with_cases(OVER_SDMA)

    def scratch_bytes(self, op: OpParam, rank: RankView) -> int:
        """Return the bytes of the data."""
        return op.size

    def orchestrate(self, op: OpParam, rank: Rank[Region, Region]) -> None:
        """Hand partial sums round, then results."""
        inputs = equal_slots(rank.user_in, rank.size, op.unit)
        outputs = equal_slots(rank.user_out, rank.size, op.unit)
        images, ring = [_image(rank, inputs)], rank.plane(all_servers(rank))
        pipeline_all_reduce(rank, rank.level0, ring, inputs, outputs, images)


def _image(rank: AnyRank, slots: Chunks) -> Chunks:
    """Return the slots of the input as they lie in scratch."""
    return Chunks(Buffer.SCRATCH, slots.offsets, slots.sizes, slots.row)
