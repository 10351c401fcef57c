"""BroadcastPlusBroadcast: device 0 of every server has the data before the others do."""

from hccl_executors.levels import choices, fidelities
from hccl_executors.outer_levels import OuterLevel, all_servers, links
from hccl_executors.sources import newest
from hccl_executors.staging import delivered, request, staged
from hccl_executors.templates.nb import nb_broadcast
from hccl_executors.templates.nhr import ONE_SHOT_BROADCAST, nhr_broadcast
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
    steps,
)


class BroadcastPlusBroadcast(BaseExecutor):
    """Broadcast of whole buffers: along a ring to device 0 of the root's server, unless that is the
    root, between the devices 0 of all servers, along rings in the servers; on main alone.

    So one device of a server uses its network card. One server of n devices takes (n + 1)α + 3(n -
    1)/n·Nβ for N bytes (n of at least 3), twice that where the root is not device 0.
    """

    op = "broadcast"
    algorithm = f"level0:ring;level1:{choices('broadcast', 'ring')}"
    fidelity = steps(
        "HCCL's cannot run: it asks for no links between servers, takes places in a server for "
        "ranks, and where the root is device 0 only the root leaves the first ring out. This does "
        "what its comments say.",
        *newest("310P/coll_broadcast_plus_broadcast", "broadcast_ring"),
    ).with_cases(fidelities("broadcast"))

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs as many devices in every server, and ranks numbered server by server."""
        return require(
            (topology.has_equal_servers, "needs servers alike, and ranks numbered by server")
        )

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """A mesh inside the servers, links between them of all devices; a round fills CCL_In."""
        plane = rank.plane(all_servers(rank))
        between = links(op.name, [(plane, op.level1)], _first(op, rank))
        return request(op, rank, ("level0", "mesh"), *between)

    def orchestrate(self, op: OpParam, rank: AnyRank) -> None:
        """Stage, broadcast three times, deliver."""
        root, first = op.root or 0, _first(op, rank)
        work, server = staged(op, rank), rank.level0
        if root != first and rank.id - server.id == first:
            ring_broadcast(rank.main, server, work, root - first)
        if server.id == 0:
            _between(op, rank, work, first)
        ring_broadcast(rank.main, server, work, 0)
        delivered(op, rank, work)


def _first(op: OpParam, rank: RankView | AnyRank) -> int:
    """Return device 0 of the root's server."""
    devices = int(rank.level0.size)
    return (op.root or 0) // devices * devices


def _between(op: OpParam, rank: AnyRank, work: Region, first: int) -> None:
    """Broadcast between servers; NHR and NB weigh the bytes per device of a server."""
    plane, devices = rank.plane(all_servers(rank)), int(rank.level0.size)
    root = plane.index_of(first)
    if op.level1 == "NHR":
        nhr_broadcast(rank.main, plane, work, root, ONE_SHOT_BROADCAST * devices)
    elif op.level1 == "NB":
        nb_broadcast(rank.main, plane, work, root, share=devices)
    else:
        OuterLevel(rank.main, plane, op.level1).run("broadcast", work, first)
