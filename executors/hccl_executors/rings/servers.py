"""Rings inside the servers, any algorithm between them: Atlas training servers and Atlas A2.

What they do in which order is in two_levels.py; here are the demands, the resources, and a row per
executor.

There are as many rings inside as the product has, one sub stream for each but the last: four with
the eight devices of an Atlas 800 (model 9000), else one. Servers of several superpods form one
plane.

Inside, n devices in k rings take (n-1)(α + N/(nk)·β) each way. Source: HCCL's public documents.
"""

from __future__ import annotations

from dataclasses import replace

from hccl_executors.hierarchical import JOINING
from hccl_executors.levels import GROUPED, choices, fidelities
from hccl_executors.outer_levels import OuterLevel, all_servers, links
from hccl_executors.rings.inside import Rings
from hccl_executors.sources import adding_in_scratch, like_april
from hccl_executors.staging import delivered, request, staged
from hccl_executors.templates.double_ring import parts_of_rings, reducible_parts_of_rings
from hccl_executors.two_levels import COMPOSITIONS, TwoLevels
from hccl_py.call.ops import OPS
from hccl_py.plugins.executor import (
    AnyRank,
    BaseExecutor,
    Mode,
    OpParam,
    RankView,
    ResourceRequest,
    Topology,
    Unsuitable,
    require,
)


class ServerRings(BaseExecutor):
    """Stage the input, go through both levels in the op's order, deliver. A round fills the CCL
    buffer to the last element (`in_elements`), or in slots of whole 128 bytes.

    Without inline reduce, data lands in the other CCL buffer (HCCL: in scratch), or in scratch in
    graph mode.
    """

    op: str
    in_elements = True

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs as many devices in every server, and ranks numbered server by server."""
        return require(
            (topology.has_equal_servers, "needs servers alike, and ranks numbered by server")
        )

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """The rings' links, those between servers, and a sub stream for every ring but one."""
        between = rank.plane(all_servers(rank))
        inside = [(ring.name, "ring") for ring in rank.rings]
        asked = request(
            op,
            rank,
            *inside,
            *links(op.name, [(between, op.level1)], op.root or 0),
            sub_streams=len(inside) - 1,
        )
        parts = rank.size if OPS[op.name].has_slots else 1
        if not self.in_elements:
            return asked
        return replace(asked, max_count=rank.ccl_bytes // (parts * op.unit))

    def orchestrate(self, op: OpParam, rank: AnyRank) -> None:
        work = staged(op, rank)
        COMPOSITIONS[op.name](self.levels(op, rank), work, op.root or 0)
        delivered(op, rank, work)

    def levels(self, op: OpParam, rank: AnyRank) -> TwoLevels:
        """Return the rank's server, its rings, and the plane between servers."""
        between = OuterLevel(rank.main, rank.plane(all_servers(rank)), op.level1)
        scatters = op.name == "reduce_scatter"
        rings = Rings(rank, cut=reducible_parts_of_rings if scatters else parts_of_rings)
        return TwoLevels(rank.level0, rings, between)


class AllReduceRingExecutor(ServerRings):
    """AllReduce in three phases; every chunk is reduced in the order of its ring."""

    op = "all_reduce"
    algorithm = f"level0:ring;level1:{choices('all_reduce', first='H-D_R')}|{GROUPED}"
    fidelity = like_april("coll_all_reduce_ring_executor").with_cases(
        {**fidelities("all_reduce"), **JOINING}
    )


class AllGatherRingExecutor(ServerRings):
    """AllGather in two phases, in CCL_Out, or in the output in graph mode."""

    op = "all_gather"
    algorithm = f"level0:ring;level1:{choices('all_gather', first='H-D_R')}"
    fidelity = like_april("coll_all_gather_ring_executor").with_cases(fidelities("all_gather"))


class ReduceScatterRingExecutor(ServerRings):
    """ReduceScatter in two phases."""

    op = "reduce_scatter"
    algorithm = f"level0:ring;level1:{choices('reduce_scatter', first='H-D_R')}"
    fidelity = adding_in_scratch(
        like_april("coll_reduce_scatter_ring_executor").with_cases(fidelities("reduce_scatter"))
    )


class BroadCastRingExecutor(ServerRings):
    """Broadcast in three phases. As in HCCL all servers scatter, though only the result of the
    root's is read; in the others the first device scatters what it has staged.
    """

    op = "broadcast"
    algorithm = f"level0:ring;level1:{choices('broadcast', 'ring')}"
    fidelity = like_april("coll_broadcast_ring_executor", "scatter_ring").with_cases(
        fidelities("broadcast")
    )

    def orchestrate(self, op: OpParam, rank: AnyRank) -> None:
        levels, root = self.levels(op, rank), op.root or 0
        graph = op.mode is Mode.GRAPH
        work = rank.user_out if graph else rank.ccl_in.head(rank.user_in.size)
        source = root if levels.is_roots_server(root) else 0
        if rank.level0.id == rank.level0.index_of(source) and not (graph and op.in_place):
            rank.main.copy(work, rank.user_in)
        slots = levels.in_slots(work)
        levels.inside.scatter(slots, source)
        levels.between.run("broadcast", slots[rank.level0.id], root)
        levels.inside.all_gather(slots)
        delivered(op, rank, work)


class ReduceRingPlusHd(ServerRings):
    """Reduce in three phases, by default with H-D_R between servers, as its name says."""

    op = "reduce"
    algorithm = f"level0:ring;level1:{choices('reduce', 'NHR')}"
    fidelity = like_april("coll_reduce_ring_plus_hd_executor", "gather_ring").with_cases(
        fidelities("reduce")
    )


class ScatterRingExecutor(ServerRings):
    """Scatter in two phases. Inside a server one ring does, on main, though HCCL requests what all
    of them need.
    """

    op = "scatter"
    algorithm = f"level0:ring;level1:{choices('scatter')}"
    in_elements = False
    fidelity = like_april("coll_scatter_ring_executor", "scatter_ring").with_cases(
        fidelities("scatter")
    )

    def levels(self, op: OpParam, rank: AnyRank) -> TwoLevels:
        """The first ring only."""
        return replace(super().levels(op, rank), inside=Rings(rank, rank.rings[:1]))
