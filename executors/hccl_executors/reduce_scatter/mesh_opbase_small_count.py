"""ReduceScatterMeshOpbaseSmallCountDeterministicExecutor: HCCL's choice for small data over several
servers of Atlas A2.
"""

from hccl_executors.levels import LEVELS, fidelities
from hccl_executors.one_mesh import require_even_meshes, require_inline_reduce
from hccl_executors.sources import april, newest
from hccl_executors.templates.nhr import nhr_reduce_scatter
from hccl_executors.templates.recursive_halving import recursive_halving_reduce_scatter
from hccl_py.orchestration import Chunks, Region
from hccl_py.plugins.executor import (
    BaseExecutor,
    OpParam,
    PlaneRequest,
    Rank,
    RankView,
    ResourceRequest,
    Topology,
    Unsuitable,
    same,
)

LEAST = 4
"""Devices of a server from which on it halves, where they are a power of two."""


class ReduceScatterMeshOpbaseSmallCountDeterministicExecutor(BaseExecutor):
    """ReduceScatter between the servers by `op.level1`, then inside them, in a fixed order: halving
    with reads where a server has 4, 8, .. devices, otherwise NHR.
    """

    op = "reduce_scatter"
    algorithm = "level0:mesh;level1:H-D_R|ring|NHR|NB"
    fidelity = same(
        *newest("coll_reduce_scatter_mesh_opbase_small_count_deterministic_executor"),
        *april("reduce_scatter_hd_stage", "reduce_scatter_nhr"),
    ).with_cases(fidelities("reduce_scatter"))

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs servers alike, full meshes of SDMA links that reduce, and op-base mode."""
        return require_even_meshes(op, topology) and require_inline_reduce(op, topology)

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """Links of the templates, a sub stream where devices are a power of two; a round fills a
        CCL buffer with the slots of all ranks.
        """
        devices = int(rank.level0.size)
        between = LEVELS["reduce_scatter"][op.level1].peers(rank.level12)
        return ResourceRequest(
            planes=(
                PlaneRequest("level0", "rhd" if _halves(devices) else "nhr"),
                PlaneRequest("level12", between),
            ),
            sub_streams=int(not devices & (devices - 1)),
            max_count=rank.ccl_bytes // (rank.size * op.unit),
        )

    def orchestrate(self, op: OpParam, rank: Rank[Chunks, Region]) -> None:
        """Reduce the slots of whole servers, then this server's."""
        main, inside, between = rank.main, rank.level0, rank.level12
        slots, devices = rank.slots(rank.user_out.size), int(inside.size)
        main.copy(slots, rank.user_in)
        LEVELS["reduce_scatter"][op.level1].run(main, between, slots.joined(devices))
        own = slots.taken(between.id * devices, devices)
        if _halves(devices):
            recursive_halving_reduce_scatter(rank, inside, own, rank.ccl_out, rank.user_out)
            return
        nhr_reduce_scatter(main, inside, own)
        main.copy(rank.user_out, own[inside.id])


def _halves(devices: int) -> bool:
    return devices >= LEAST and devices & (devices - 1) == 0
