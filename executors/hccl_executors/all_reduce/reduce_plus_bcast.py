"""AllReduceReducePlusBcast: device 0 of every server has the sum before it goes between servers."""

from hccl_executors.levels import choices, fidelities
from hccl_executors.outer_levels import OuterLevel, all_servers, links
from hccl_executors.sources import like_newest
from hccl_executors.staging import delivered, request, staged
from hccl_executors.templates import nhr
from hccl_executors.templates.rhd import rhd_reduce
from hccl_executors.templates.ring import ring_broadcast
from hccl_py.orchestration import Region
from hccl_py.plugins.executor import (
    AnyRank,
    BaseExecutor,
    OpParam,
    RankView,
    ResourceRequest,
    Topology,
    Unsuitable,
    require,
)


class AllReduceReducePlusBcast(BaseExecutor):
    """AllReduce of whole buffers: reduced to device 0 by halving, summed between the devices 0 of
    all servers, broadcast along a ring; on main alone.

    So one device of a server uses its network card. One server of n = 2^k devices takes (3k + n +
    1)α + 5(n-1)/n·Nβ + (n-1)/n·Nγ for N bytes (n of at least 3).
    """

    op = "all_reduce"
    algorithm = f"level0:H-D_R;level1:{choices('all_reduce')}"
    fidelity = like_newest(
        "coll_all_reduce_reduce_plus_bcast_executor",
        "reduce_recursive_hd",
        "reduce_scatter_halving_doubling",
        "broadcast_ring",
    ).with_cases(fidelities("all_reduce"))

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs a power of two devices in every server: with others, pairs wait forever in HCCL."""
        devices = topology.servers[0]
        return require(
            (topology.has_equal_servers, "needs servers alike, and ranks numbered by server"),
            (not devices & (devices - 1), f"needs a power of two devices, there are {devices}"),
        )

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """A mesh inside the servers, links between them of all devices; a round fills CCL_In."""
        between = links(op.name, [(rank.plane(all_servers(rank)), op.level1)], 0)
        return request(op, rank, ("level0", "mesh"), *between)

    def orchestrate(self, op: OpParam, rank: AnyRank) -> None:
        """Stage, reduce, go between servers, broadcast, deliver."""
        work = staged(op, rank)
        rhd_reduce(rank.main, rank.level0, work, root=0, answered=False)
        if rank.level0.id == 0:
            _between(op, rank, work)
        ring_broadcast(rank.main, rank.level0, work, root=0)
        delivered(op, rank, work)


def _between(op: OpParam, rank: AnyRank, work: Region) -> None:
    """Sum between servers; NHR takes a tree up to as much data for every device of a server."""
    plane = rank.plane(all_servers(rank))
    if op.level1 != "NHR":
        OuterLevel(rank.main, plane, op.level1).run("all_reduce", work)
    elif work.size <= nhr.ONE_SHOT_ALL_REDUCE * int(rank.level0.size):
        nhr.nhr_all_reduce_one_shot(rank.main, plane, work)
    else:
        nhr.nhr_all_reduce(rank.main, plane, work)
