"""AllReduceMeshOpbaseSmallCountDeterministicExecutor: HCCL's choice for small data over several
servers of Atlas A2.
"""

from hccl_executors.levels import LEVELS, Level, fidelities
from hccl_executors.one_mesh import require_even_meshes, require_inline_reduce
from hccl_executors.sources import april, newest
from hccl_executors.templates.doubling import doubling_all_reduce_beside
from hccl_executors.templates.mesh_star import star_all_reduce_collected
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
    same,
)


class AllReduceMeshOpbaseSmallCountDeterministicExecutor(BaseExecutor):
    """AllReduce of whole buffers inside the servers, then between them, in a fixed order.

    Inside: doubling, where a server's devices are a power of two; otherwise device 0 collects and
    adds, and all devices read from it. Between: doubling, where servers are a power of two;
    otherwise `op.level1`, NHR without its trees for small data.
    """

    op = "all_reduce"
    algorithm = "level0:mesh;level1:NHR|ring|H-D_R"
    fidelity = same(
        *newest(
            "coll_all_reduce_mesh_opbase_small_count_deterministic_executor",
            "all_reduce_doubling_local_reduce",
        ),
        *april("all_reduce_local_reduce_bcast"),
    ).with_cases(fidelities("all_reduce"))

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs servers alike, full meshes of SDMA links that reduce, and op-base mode."""
        return require_even_meshes(op, topology) and require_inline_reduce(op, topology)

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """Links to partners, or to all peers in the server with a sub stream for each; there, a
        round leaves room for the data of all devices but one.
        """
        devices, servers = int(rank.level0.size), int(rank.level12.size)
        doubles = _is_power(devices)
        between = "rhd" if _is_power(servers) else _between(op).peers(rank.level12)
        return ResourceRequest(
            planes=(
                PlaneRequest("level0", "rhd" if doubles else "mesh"),
                PlaneRequest("level12", between),
            ),
            sub_streams=0 if doubles else devices - 1,
            max_count=rank.ccl_bytes // op.unit // (1 if doubles else devices - 1),
        )

    def orchestrate(self, op: OpParam, rank: Rank[Region, Region]) -> None:
        """Reduce inside, then between, and deliver."""
        main, inside, between = rank.main, rank.level0, rank.level12
        work = rank.ccl_in.head(rank.user_in.size)
        if _is_power(int(inside.size)):
            main.copy(work, rank.user_in)
            doubling_all_reduce_beside(main, inside, work)
        else:
            star_all_reduce_collected(rank, inside, rank.ccl_out, work)
        if _is_power(int(between.size)):
            doubling_all_reduce_beside(main, between, work)
        else:
            _between(op).run(main, between, work, meeting=True)
        main.copy(rank.user_out, work)


def _between(op: OpParam) -> Level:
    return LEVELS["all_reduce"][op.level1].in_parts()


def _is_power(number: int) -> bool:
    return number & (number - 1) == 0
