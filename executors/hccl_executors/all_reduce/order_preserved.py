"""AllReduceOrderPreservedExecutor: sums like those of a loop over the ranks, to the last bit."""

from hccl_executors.templates.local_reduce import local_fold
from hccl_executors.templates.mesh_push import aligned, collect_in_order, in_order, mesh_push
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
from hccl_py.orchestration import Region

__all__ = ["AllReduceOrderPreservedExecutor", "AllReduceOrderPreservedFor91093Executor"]


class AllReduceInRankOrder:
    """AllReduce whose every sum is ((x0 + x1) + x2) + ... in rank order; runs everywhere.

    Rank r collects everybody's chunk r, side by side, adds them one after the other, and gives the
    sum to everybody: two steps in which all write to all, and (p - 1)/p·nγ. Streams for the peers
    of a server are shared by all peers. HCCL says nothing of what it requests; here a round fills
    CCL_In, chunks are collected in CCL_Out or in scratch as large as the data.
    """

    op = "all_reduce"
    algorithm = "level0:mesh;level1:mesh"
    order = "rank"

    def suits(self, op: OpParam, topology: Topology) -> bool:
        """Runs everywhere, uneven servers included."""
        return True

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """Links to everybody, streams as for the server's mesh."""
        graph = op.mode is Mode.GRAPH
        pair = (Buffer.USER_OUT, Buffer.SCRATCH) if graph else (None, None)
        chunk = aligned(-(-op.size // rank.size))
        return ResourceRequest(
            planes=(PlaneRequest("flat", "mesh", *pair),),
            sub_streams=max(int(rank.level0.size) - (2 if graph else 1), 0),
            scratch_bytes=chunk * rank.size if graph else 0,
            max_count=rank.ccl_bytes // rank.size // 128 * 128 * rank.size // op.unit,
        )

    def orchestrate(self, op: OpParam, rank: Rank[Region, Region]) -> None:
        """Collect, add in order, write to all, deliver."""
        graph, everybody = op.mode is Mode.GRAPH, rank.flat
        inputs = rank.user_in.split(rank.size)
        work = rank.user_out if graph else rank.ccl_in.head(rank.user_in.size)
        memory = rank.scratch if graph else rank.ccl_out
        pieces = collect_in_order(
            rank, everybody, inputs, in_order(memory, inputs.largest, rank.size)
        )
        local_fold(rank, pieces)
        mine = work.split(rank.size)[rank.id]
        with rank.main.phase("all-gather"):
            peers = rank.size - 1
            rank.main.copy(mine, pieces[0])
            mesh_push(rank, everybody, [pieces[0]] * peers, [mine] * peers)
        rank.deliver(work)


class AllReduceOrderPreservedExecutor(AllReduceInRankOrder):
    """AllReduce in rank order."""


class AllReduceOrderPreservedFor91093Executor(AllReduceInRankOrder):
    """AllReduce in rank order, as HCCL calls it on Atlas A3."""
