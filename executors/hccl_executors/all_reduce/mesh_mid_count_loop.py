"""AllReduceMeshMidCountLoopExecutor: two steps over a mesh, whose sums do not depend on timing."""

from hccl_executors.one_mesh import mesh_request, require_inline_reduce, require_mesh
from hccl_executors.sources import april, like_april
from hccl_executors.templates.mesh_collect_all_reduce import collected_all_reduce, fits
from hccl_py.enums import Buffer
from hccl_py.orchestration import Region
from hccl_py.plugins.executor import (
    BaseExecutor,
    Mode,
    OpParam,
    Rank,
    RankView,
    ResourceRequest,
    Topology,
    Unsuitable,
    require,
    steps,
)


class AllReduceMeshMidCountLoopExecutor(BaseExecutor):
    """AllReduce inside one full mesh: chunk r of every rank goes to rank r, side by side, is
    reduced there by halves, and goes to all ranks.

    User memory is written to peers and read into directly. Chunks come to lie in CCL_Out, in graph
    mode in the output; there in scratch where the output is the input, or has no room for them.
    """

    op = "all_reduce"
    algorithm = "level0:mesh"
    fidelity = like_april(
        "coll_all_reduce_mesh_mid_count_executor", "all_reduce_local_reduce"
    ).with_cases(
        {
            "graph": steps(
                "In place, and for data too small for their slots, peers write to scratch; HCCL's "
                "overwrite the input there, and memory behind the output.",
                *april("all_reduce_local_reduce"),
            )
        }
    )

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs one server with a full mesh that reduces, and a power of two ranks."""
        ranks = topology.size
        power = require((not ranks & (ranks - 1), f"needs a power of two ranks, there are {ranks}"))
        return require_mesh(topology) and power and require_inline_reduce(op, topology)

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """A stream and a link per peer; a round fills CCL_Out."""
        beside = rank.size > 1 and not _in_output(op, rank.size)
        return mesh_request(
            op,
            rank,
            max_bytes=rank.ccl_bytes,
            scratch_bytes=(op.size + rank.size * op.unit) * beside,
            memories=(Buffer.USER_IN, Buffer.SCRATCH) if beside else (None, None),
        )

    def orchestrate(self, op: OpParam, rank: Rank[Region, Region]) -> None:
        """Collect, reduce, read."""
        if rank.size == 1:
            if not op.in_place:
                rank.main.copy(rank.user_out, rank.user_in)
            return
        memory = rank.ccl_out
        if op.mode is Mode.GRAPH:
            memory = rank.user_out if _in_output(op, rank.size) else rank.scratch
        collected_all_reduce(rank, rank.level0, memory, op.unit)


def _in_output(op: OpParam, ranks: int) -> bool:
    """True if the slots of graph mode lie in the output."""
    return not op.in_place and fits(op.size, ranks, op.unit)
