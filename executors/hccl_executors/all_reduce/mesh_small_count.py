"""AllReduceMeshSmallCountExecutor: one step, everybody gets everything and reduces alone."""

from hccl_executors.all_reduce.mesh_oneshot_loop import chunk_mesh
from hccl_executors.one_mesh import in_one_mesh, mesh_request
from hccl_executors.templates.local_reduce import local_tree
from hccl_executors.templates.mesh_push import aligned, beside, mesh_push
from hccl_py.enums import Buffer
from hccl_py.executor import Mode, OpParam, Rank, RankView, ResourceRequest, Topology, Unsuitable
from hccl_py.orchestration import Region

__all__ = ["AllReduceMeshSmallCountExecutor"]

MOST_IN_SCRATCH = 7
"""Ranks that gather in scratch in graph mode."""


class AllReduceMeshSmallCountExecutor:
    """AllReduce of small data inside one full mesh: every rank writes its input to all others, who
    add what they have got in a tree in rank order. So all have the same bits, in every run.

    p - 1 whole inputs must fit: in both CCL buffers, in scratch of so many inputs up to 7 ranks in
    graph mode. Where they do not, the chunk mesh does it. Like HCCL's, a round takes as much as a
    CCL buffer; HCCL takes other forms for more ranks in graph mode, with ⌊log2(2p - 1)⌋ inputs of
    scratch.
    """

    op = "all_reduce"
    algorithm = "level0:mesh"
    order = "fixed"

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs one server with a full mesh."""
        return in_one_mesh(topology)

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """A stream and a link per peer; in graph mode scratch for the peers' inputs."""
        peers = rank.size - 1
        is_beside = peers < MOST_IN_SCRATCH
        lands = int(not rank.inline_reduce and peers > 0)
        return mesh_request(
            op,
            rank,
            max_bytes=rank.ccl_bytes,
            scratch_bytes=aligned(op.size) * peers if is_beside else op.size * lands,
            memories=(Buffer.USER_OUT, Buffer.SCRATCH)
            if peers and (is_beside or lands)
            else (None, None),
        )

    def orchestrate(self, op: OpParam, rank: Rank[Region, Region]) -> None:
        """Write to all and add; by the chunk mesh where there is no room."""
        places = _places(op, rank)
        if not places and rank.size > 1:
            chunk_mesh(rank)
            return
        with rank.main.phase("write to all"):
            inputs = [rank.user_in] * len(places)
            mesh_push(rank, rank.level0, inputs, [*reversed(places)])
        if not op.in_place:
            rank.main.copy(rank.user_out, rank.user_in)
        me = int(rank.id)
        pieces = [
            rank.user_out if i == me else places[(me - i - 1) % rank.size] for i in range(rank.size)
        ]
        local_tree(rank, pieces)
        if me:
            rank.main.copy(rank.user_out, pieces[0])


def _places(op: OpParam, rank: Rank[Region, Region]) -> list[Region]:
    """Return a place for the input of every peer, by distance; none where they do not fit."""
    memories = [rank.scratch] if op.mode is Mode.GRAPH else [rank.ccl_in, rank.ccl_out]
    size, peers = int(rank.user_in.size), rank.size - 1
    needed = aligned(size) * -(-peers // len(memories))
    return beside(memories, size, peers) if 0 < needed <= int(memories[0].size) else []
