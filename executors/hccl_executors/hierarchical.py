"""Executors with two levels: a mesh inside the servers, any algorithm between them.

What they do in which order is in two_levels.py; here are the demands, the resources, and a row per
executor.

Superpods are no third level: HCCL's mesh executors know two, so servers of several superpods form
one plane (`level12`). Superpods may then have different numbers of servers, which is what AHC is
for.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hccl_executors.levels import choices
from hccl_executors.outer_levels import OuterLevel, all_servers, links
from hccl_executors.staging import delivered, request, staged
from hccl_executors.templates.mesh_in_place import (
    mesh_all_gather_in_place,
    mesh_gather,
    mesh_scatter,
)
from hccl_executors.templates.mesh_reduce import (
    mesh_reduce_scatter_atomic,
    mesh_reduce_scatter_in_turn,
)
from hccl_executors.two_levels import COMPOSITIONS, TwoLevels
from hccl_py.executor import (
    Mode,
    OpParam,
    Rank,
    RankView,
    ResourceRequest,
    Topology,
    Unsuitable,
    require,
)
from hccl_py.orchestration import Chunks

__all__ = [
    "AllGatherMeshExecutor",
    "AllGatherMeshGraphExecutor",
    "AllGatherMixExecutor",
    "AllReduceMeshExecutor",
    "AllReduceMixExecutor",
    "BroadCastMeshExecutor",
    "BroadCastMixExecutor",
    "GatherMeshExecutor",
    "ReduceMeshExecutor",
    "ReduceScatterMeshExecutor",
    "ReduceScatterMeshGraphExecutor",
    "ReduceScatterMixExecutor",
    "ScatterMeshExecutor",
]


class Mesh:
    """The mesh inside a server. It reduces as data arrives, atomically, or in turns."""

    def __init__(self, rank: Rank[Any, Any], *, atomic: bool) -> None:
        self.rank, self.plane, self.atomic = rank, rank.level0, atomic

    def all_gather(self, slots: Chunks) -> None:
        """Leave in every device all slots."""
        mesh_all_gather_in_place(self.rank, self.plane, slots)

    def reduce_scatter(self, slots: Chunks) -> None:
        """Leave in slot d of device d the reduction of all slots d."""
        template = mesh_reduce_scatter_atomic if self.atomic else mesh_reduce_scatter_in_turn
        template(self.rank, self.plane, slots)

    def scatter(self, slots: Chunks, root: int) -> None:
        """Leave slot d of the root's device in slot d of device d."""
        mesh_scatter(self.rank, self.plane, slots, self.plane.index_of(root))

    def gather(self, slots: Chunks, root: int) -> None:
        """Leave slot d of device d in slot d of the root's device."""
        mesh_gather(self.rank, self.plane, slots, self.plane.index_of(root))


class Hierarchical:
    """Stage the input, run both levels in the op's order, deliver.

    On Atlas A2 a mesh adds as data arrives, where links can and sums may depend on timing,
    otherwise in turns, as HCCL's does. Main serves `by_main` of the peers in a mesh, sub streams
    the others.
    """

    op: str
    by_main = 1
    modes: tuple[Mode, ...] = tuple(Mode)

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs meshes of as many devices in every server, and ranks numbered server by server."""
        devices = sorted(set(topology.servers))
        return require(
            (topology.has_mesh, "needs every device linked to every other one"),
            (len(devices) == 1, f"needs as many devices in every server, there are {devices}"),
            (topology.is_in_server_order, "needs ranks numbered server by server"),
            (op.mode in self.modes, f"runs in {self.modes[0].value} mode only"),
        )

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """Links inside the servers and between them, a sub stream per peer but one."""
        between = links(op.name, [(rank.plane(all_servers(rank)), op.level1)], op.root or 0)
        subs = max(int(rank.level0.size) - 1 - self.by_main, 0)
        return request(op, rank, ("level0", "mesh"), *between, sub_streams=subs)

    def orchestrate(self, op: OpParam, rank: Rank[Any, Any]) -> None:
        """Stage, run, deliver."""
        is_a2 = rank.topology.product.device == "910B"
        mesh = Mesh(rank, atomic=rank.inline_reduce and is_a2 and not op.deterministic)
        between = OuterLevel(rank.main, rank.plane(all_servers(rank)), op.level1)
        work = staged(op, rank)
        COMPOSITIONS[op.name](TwoLevels(rank.level0, mesh, between), work, op.root or 0)
        delivered(op, rank, work)


class AllReduceMeshExecutor(Hierarchical):
    """AllReduce in three phases. In graph mode, scratch where links cannot reduce inline."""

    op = "all_reduce"
    algorithm = f"level0:mesh;level1:{choices('all_reduce')}"


class AllGatherMeshExecutor(Hierarchical):
    """AllGather in two phases, in CCL_Out, or in the output in graph mode."""

    op = "all_gather"
    algorithm = f"level0:mesh;level1:{choices('all_gather')}"


class AllGatherMeshGraphExecutor(Hierarchical):
    """AllGather in two phases in the output: graph mode only."""

    op = "all_gather"
    algorithm = f"level0:mesh;level1:{choices('all_gather')}"
    modes = (Mode.GRAPH,)


class ReduceScatterMeshExecutor(Hierarchical):
    """ReduceScatter in two phases. Where links cannot reduce inline, data lands in CCL_Out (HCCL:
    in scratch), in graph mode in as much scratch again.
    """

    op = "reduce_scatter"
    algorithm = f"level0:mesh;level1:{choices('reduce_scatter')}"


class ReduceScatterMeshGraphExecutor(Hierarchical):
    """ReduceScatter in two phases in scratch: graph mode only."""

    op = "reduce_scatter"
    algorithm = f"level0:mesh;level1:{choices('reduce_scatter')}"
    modes = (Mode.GRAPH,)


class BroadCastMeshExecutor(Hierarchical):
    """Broadcast in three phases. One server has a sub stream per peer in op-base mode; with Atlas
    800 (model 9000), HCCL leaves one to main there, too.
    """

    op = "broadcast"
    algorithm = f"level0:mesh;level1:{choices('broadcast')}"

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """The same, with a sub stream for every peer where there is one server."""
        asked = super().resources(op, rank)
        if op.mode is Mode.GRAPH or rank.size > rank.level0.size:
            return asked
        return replace(asked, sub_streams=rank.size - 1)


class ReduceMeshExecutor(Hierarchical):
    """Reduce in three phases."""

    op = "reduce"
    algorithm = f"level0:mesh;level1:{choices('reduce')}"


class ScatterMeshExecutor(Hierarchical):
    """Scatter in two phases. Only the roots of meshes use their sub streams, only the root's plane
    its links between servers; HCCL requests both everywhere.
    """

    op = "scatter"
    algorithm = f"level0:mesh;level1:{choices('scatter')}"


class GatherMeshExecutor(Hierarchical):
    """Gather in two phases, a mirrored scatter; HCCL has no executor for it."""

    op = "gather"
    algorithm = f"level0:mesh;level1:{choices('gather')}"


class AllReduceMixExecutor(Hierarchical):
    """AllReduce with a sub stream per peer and NHR: HCCL's for servers of mixed devices."""

    op = "all_reduce"
    algorithm = "level0:mesh;level1:NHR"
    by_main = 0


class AllGatherMixExecutor(Hierarchical):
    """AllGather with a sub stream per peer and NHR: HCCL's for servers of mixed devices."""

    op = "all_gather"
    algorithm = "level0:mesh;level1:NHR"
    by_main = 0


class ReduceScatterMixExecutor(Hierarchical):
    """ReduceScatter with a sub stream per peer and NHR: HCCL's for servers of mixed devices."""

    op = "reduce_scatter"
    algorithm = "level0:mesh;level1:NHR"
    by_main = 0


class BroadCastMixExecutor(Hierarchical):
    """Broadcast with a sub stream per peer and NHR: HCCL's for servers of mixed devices."""

    op = "broadcast"
    algorithm = "level0:mesh;level1:NHR"
    by_main = 0
