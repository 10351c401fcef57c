"""ReduceScatterVMeshOpbaseExecutor: in meshes, and between servers by another algorithm."""

from hccl_executors.flat_v import packed, sharing_rounds
from hccl_executors.levels import fidelities
from hccl_executors.one_mesh import require_even_meshes, require_inline_reduce
from hccl_executors.outer_levels import OuterLevel, all_servers, links
from hccl_executors.reduce_scatter.mesh_dma_elimination import DmaElimination
from hccl_executors.rings.places import blocks
from hccl_executors.sources import april, newest
from hccl_executors.staging import request
from hccl_executors.templates.mesh_reduce import mesh_reduce_scatter_atomic
from hccl_py.plugins.executor import (
    AnyRank,
    OpParam,
    RankView,
    ResourceRequest,
    Topology,
    Unsuitable,
    ours,
    same,
)


class ReduceScatterVMeshOpbaseExecutor(DmaElimination):
    """ReduceScatterV inside one full mesh, in op-base mode, or over several servers alike: devices
    of one number reduce the blocks of servers, then every server its own ones.

    In one mesh blocks lie apart in user memory only. Over servers they lie side by side in CCL_In,
    and a round takes as much of every block as leaves all of them room.
    """

    op = "reduce_scatter_v"
    algorithm = "level0:mesh;level1:NHR|ring|NB"
    fidelity = same(
        *newest("coll_reduce_scatter_v_mesh_opbase_executor", "coll_reduce_scatter_v_executor"),
        *april("reduce_scatter_mesh_atomic"),
    ).with_cases(
        {
            "local_reduce": ours("HCCL's is for links that reduce on their way only."),
            **{word: fidelities("reduce_scatter")[word] for word in ("ring", "NHR", "NB")},
        }
    )

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs one full mesh, or servers alike that are full meshes of links that reduce; CCL
        buffers.
        """
        if topology.is_single_server:
            return super().suits(op, topology)
        return require_even_meshes(op, topology) and require_inline_reduce(op, topology)

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """Over several servers: links inside and between them, and a sub stream per peer."""
        if rank.topology.is_single_server:
            return super().resources(op, rank)
        between = links("reduce_scatter", [(rank.plane(all_servers(rank)), op.level1)], 0)
        subs = int(rank.level0.size) - 1
        asked = request(op, rank, ("level0", "mesh"), *between, sub_streams=subs)
        return sharing_rounds(asked, op, rank, align=1, ends_empty=False)

    def orchestrate(self, op: OpParam, rank: AnyRank) -> None:
        """Over several servers: stage, reduce between, reduce inside, deliver."""
        if rank.topology.is_single_server:
            super().orchestrate(op, rank)
            return
        main, planes = rank.main, (rank.level0, rank.plane(all_servers(rank)))
        work = packed(rank.ccl_in, rank.user_in, 1)
        main.copy(work, rank.user_in)
        OuterLevel(main, planes[1], op.level1).run("reduce_scatter", blocks(work, planes, 1))
        mesh_reduce_scatter_atomic(rank, rank.level0, blocks(work, planes, 0))
        done = rank.ccl_out.head(rank.user_out.size)
        main.copy(done, work[rank.id])
        main.copy(rank.user_out, done)
