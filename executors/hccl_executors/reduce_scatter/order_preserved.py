"""ReduceScatterOrderPreservedExecutor: sums like those of a loop over the ranks, to the last
bit.
"""

from hccl_executors.templates.local_reduce import local_fold
from hccl_executors.templates.mesh_push import aligned, collect_in_order, in_order
from hccl_py.enums import Buffer
from hccl_py.executor import (
    Mode,
    OpParam,
    PlaneRequest,
    Rank,
    RankView,
    ResourceRequest,
    Topology,
)
from hccl_py.orchestration import Chunks, Region

__all__ = [
    "ReduceScatterInRankOrder",
    "ReduceScatterOrderPreservedExecutor",
    "ReduceScatterOrderPreservedFor91093Executor",
]


class ReduceScatterInRankOrder:
    """ReduceScatter whose every sum is ((x0 + x1) + x2) + ... in rank order; runs everywhere.

    Rank r collects everybody's chunk r, side by side in CCL_Out, or in graph mode in scratch, and
    adds them one after the other. Streams for the peers of a server are shared by all peers. HCCL
    says nothing of what it requests.
    """

    op = "reduce_scatter"
    algorithm = "level0:mesh;level1:mesh"
    order = "rank"

    def suits(self, op: OpParam, topology: Topology) -> bool:
        """Runs everywhere, uneven servers included."""
        return True

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """Links to everybody, streams as for the server's mesh; CCL_Out holds a chunk per rank."""
        graph = op.mode is Mode.GRAPH
        pair = (Buffer.USER_IN, Buffer.SCRATCH) if graph else (None, None)
        return ResourceRequest(
            planes=(PlaneRequest("flat", "mesh", *pair),),
            sub_streams=max(int(rank.level0.size) - (2 if graph else 1), 0),
            scratch_bytes=aligned(op.size) * rank.size if graph else 0,
            max_count=rank.ccl_bytes // rank.size // 128 * 128 // op.unit,
        )

    def orchestrate(self, op: OpParam, rank: Rank[Chunks, Region]) -> None:
        """Collect, add in order, copy to the output."""
        memory = rank.scratch if op.mode is Mode.GRAPH else rank.ccl_out
        places = in_order(memory, rank.user_in.largest, rank.size)
        pieces = collect_in_order(rank, rank.flat, rank.user_in, places)
        local_fold(rank, pieces)
        rank.main.copy(rank.user_out, pieces[0])


class ReduceScatterOrderPreservedExecutor(ReduceScatterInRankOrder):
    """ReduceScatter in rank order."""


class ReduceScatterOrderPreservedFor91093Executor(ReduceScatterInRankOrder):
    """ReduceScatter in rank order, as HCCL calls it on Atlas A3."""
