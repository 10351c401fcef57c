"""ReduceScatterVMeshExecutor: all ranks' blocks staged in scratch, added by their owners."""

from hccl_executors.flat_v import packed, packed_bytes
from hccl_executors.one_mesh import mesh_request, require_mesh
from hccl_executors.sources import like_april
from hccl_executors.templates.mesh_reduce import (
    mesh_reduce_scatter_atomic,
    mesh_reduce_scatter_in_turn,
)
from hccl_py.enums import Buffer
from hccl_py.orchestration import Chunks, Region
from hccl_py.plugins.executor import (
    BaseExecutor,
    Mode,
    OpParam,
    Rank,
    RankView,
    ResourceRequest,
    Topology,
    Unsuitable,
    ours,
    require,
)


class ReduceScatterVMeshExecutor(BaseExecutor):
    """ReduceScatterV inside one full mesh, in graph mode: α + nβ/p.

    Blocks are copied to scratch, side by side; rank r adds the block r of every peer to its own as
    they arrive, or in turn, in a fixed order, where the call asks for that. Where links cannot
    reduce, it takes them in turn, too, and scratch is twice as large.
    """

    op = "reduce_scatter_v"
    algorithm = "level0:mesh"
    fidelity = like_april(
        "coll_reduce_scatter_v_mesh_executor", "reduce_scatter_mesh_atomic"
    ).with_cases(
        {
            "deterministic": ours("HCCL's adds as data arrives in any case; this one in turn."),
            "local_reduce": ours("HCCL's is for links that reduce on their way only."),
        }
    )

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs one server with a full mesh, and graph mode."""
        return require_mesh(topology) and require(
            (op.mode is Mode.GRAPH, "works in scratch as large as the input: graph mode only")
        )

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """A stream and a link per peer; scratch for all blocks."""
        return mesh_request(
            op,
            rank,
            max_bytes=rank.ccl_bytes,
            scratch_bytes=packed_bytes(op, rank),
            memories=(Buffer.USER_IN, Buffer.SCRATCH),
        )

    def orchestrate(self, op: OpParam, rank: Rank[Chunks, Region]) -> None:
        """Stage, reduce, deliver."""
        chunks = packed(rank.scratch, rank.user_in, align=1)
        rank.main.copy(chunks, rank.user_in)
        if rank.inline_reduce and not op.deterministic:
            mesh_reduce_scatter_atomic(rank, rank.level0, chunks)
        else:
            mesh_reduce_scatter_in_turn(rank, rank.level0, chunks)
        rank.main.copy(rank.user_out, chunks[rank.id])
