"""AllReduceMeshOpbaseMidCountDeterministicExecutor: HCCL's choice for larger sums in a fixed order
over several servers of Atlas A2.
"""

from hccl_executors.levels import LEVELS, choices, fidelities
from hccl_executors.one_mesh import require_even_meshes, require_inline_reduce
from hccl_executors.sources import like_newest
from hccl_executors.templates.by_rank import Slots, reduce_scatter_by_rank
from hccl_executors.templates.mesh_in_place import mesh_all_gather_by_main
from hccl_py.orchestration import Region
from hccl_py.plugins.executor import (
    BaseExecutor,
    OpParam,
    PlaneRequest,
    Rank,
    RankView,
    ResourceRequest,
    Topology,
    Unsuitable,
    require,
)


class AllReduceMeshOpbaseMidCountDeterministicExecutor(BaseExecutor):
    """AllReduce in three phases, with the same sums in every run: chunk r of every rank comes to
    device r of the server, which adds them by halves; chunks go between servers by `op.level1`,
    without trees; devices read each other's.

    Chunks are collected in CCL_In, but for what may have no room at its end, which CCL_Out takes.
    Where data is so small that some chunks are empty, they do not overlap as HCCL's would.
    """

    op = "all_reduce"
    algorithm = f"level0:mesh;level1:{choices('all_reduce')}"
    fidelity = like_newest(
        "coll_all_reduce_mesh_opbase_mid_count_deterministic_executor",
        "reduce_scatter_plant_local_reduce",
        "all_gather_mesh_atomic",
    ).with_cases(fidelities("all_reduce"))

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs servers alike of two devices or more, full meshes of SDMA links that reduce, and
        op-base mode.
        """
        alike = require_even_meshes(op, topology) and require_inline_reduce(op, topology)
        return alike and require((topology.servers[0] > 1, "needs two devices in every server"))

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """Links inside and between, and more streams than there is work for, as HCCL asks; a round
        fills CCL_In, as far as it has room for all chunks but one.
        """
        n = int(rank.level0.size)
        between = LEVELS["all_reduce"][op.level1].peers(rank.level12)
        chunks = rank.ccl_bytes // (n - 1) // 128 * 128 * n
        return ResourceRequest(
            planes=(PlaneRequest("level0", "mesh"), PlaneRequest("level12", between)),
            sub_streams=n - 1 + (1 << (n.bit_length() - 1)),
            max_count=min(rank.ccl_bytes, chunks) // op.unit,
        )

    def orchestrate(self, op: OpParam, rank: Rank[Region, Region]) -> None:
        """Reduce-scatter inside, all-reduce between, all-gather inside, copy to the output."""
        inside, work = rank.level0, rank.ccl_in.head(rank.user_in.size)
        inputs, chunks = rank.user_in.split(inside.size), work.split(inside.size)
        sizes = inputs.sizes[0]
        slots = Slots(rank.ccl_in, int(sizes[0]), int(inside.size), sizes, rank.ccl_out)
        reduce_scatter_by_rank(rank, inside, lambda peer: inputs[peer], slots, in_turns=False)
        between = LEVELS["all_reduce"][op.level1].in_parts()
        between.run(rank.main, rank.level12, chunks[inside.id])
        mesh_all_gather_by_main(rank, inside, chunks)
        rank.main.copy(rank.user_out, work)
