"""Executors with two levels: a mesh inside the servers, any algorithm between them.

What they do in which order is in two_levels.py; here are the demands, the resources, and a row per
executor.

Superpods are no third level: HCCL's mesh executors know two, so servers of several superpods form
one plane (`level12`). Superpods may then have different numbers of servers, which is what AHC is
for.
"""

from __future__ import annotations

from dataclasses import replace

from hccl_executors.levels import GROUPED, choices, fidelities
from hccl_executors.outer_levels import OuterLevel, all_servers, links
from hccl_executors.sources import april, like_april
from hccl_executors.staging import delivered, request, staged
from hccl_executors.templates.mesh_in_place import (
    mesh_all_gather_in_place,
    mesh_all_gather_meeting,
    mesh_barrier,
    mesh_gather,
    mesh_scatter,
)
from hccl_executors.templates.mesh_reduce import (
    mesh_reduce_scatter_atomic,
    mesh_reduce_scatter_in_turn,
)
from hccl_executors.two_levels import COMPOSITIONS, TwoLevels
from hccl_py.orchestration import Chunks
from hccl_py.plugins.executor import (
    AnyRank,
    BaseExecutor,
    Mode,
    OpParam,
    RankView,
    ResourceRequest,
    Topology,
    Unsuitable,
    ours,
    require,
    steps,
)

_IN_TURN = steps(
    "In turns, main joins the streams after every round; HCCL's do not meet before the end, though "
    "they share the signals of a link, so that one may be posted anew before it is taken "
    "(NOTIFY_OVERRUN, DEADLOCK_CYCLE).",
    *april("reduce_scatter_mesh"),
)
ROOTLESS = steps(
    "In servers without the root, HCCL's device 0 scatters unwritten memory before the data "
    "comes; that is left out.",
    *april("coll_broadcast_mesh_executor", "coll_native_executor_base"),
)
_UNGROUPED = steps(
    "Since April 2026 HCCL's executor passes its template no groups, so that it cannot run; here "
    "it has them, as in July 2025.",
    *april("coll_all_reduce_mesh_executor", "coll_all_reduce_ring_executor"),
)
JOINING = {"AHC": _UNGROUPED, "AHC_BROKE": _UNGROUPED}
"""How the words stand that join servers of different superpods."""
REDUCING_IN_TURN = {"910A": _IN_TURN, "deterministic": _IN_TURN, "local_reduce": _IN_TURN}


class Mesh:
    """The mesh inside a server. It reduces as data arrives, atomically, or in turns. On Atlas A2
    streams meet between the Acks and the transfers. A scatter may end with a barrier.
    """

    def __init__(self, rank: AnyRank, *, deterministic: bool, barrier: bool = False) -> None:
        self.rank, self.plane, self.barrier = rank, rank.level0, barrier
        topology = rank.topology
        self.meets = topology.product.device == "910B" and topology.has_sdma_inside
        self.atomic = self.meets and rank.inline_reduce and not deterministic

    def all_gather(self, slots: Chunks) -> None:
        """Leave in every device all slots."""
        template = mesh_all_gather_meeting if self.meets else mesh_all_gather_in_place
        template(self.rank, self.plane, slots)

    def reduce_scatter(self, slots: Chunks) -> None:
        """Leave in slot d of device d the reduction of all slots d."""
        template = mesh_reduce_scatter_atomic if self.atomic else mesh_reduce_scatter_in_turn
        template(self.rank, self.plane, slots)

    def scatter(self, slots: Chunks, root: int) -> None:
        """Leave slot d of the root's device in slot d of device d."""
        mesh_scatter(self.rank, self.plane, slots, self.plane.index_of(root))
        if self.barrier:
            mesh_barrier(self.rank, self.plane)

    def gather(self, slots: Chunks, root: int) -> None:
        """Leave slot d of device d in slot d of the root's device."""
        mesh_gather(self.rank, self.plane, slots, self.plane.index_of(root))


class Hierarchical(BaseExecutor):
    """Stage the input, run both levels in the op's order, deliver.

    On Atlas A2 a mesh adds as data arrives, where links can and sums may depend on timing,
    otherwise in turns, as HCCL's does. Main serves one of the peers in a mesh, sub streams the
    others; `spare` streams are requested besides, as HCCL requests them, and not used. `meeting`:
    NHR's ranks meet after every step of a reduce-scatter over RDMA.
    """

    op: str
    spare = 0
    meeting = False
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
        subs = max(int(rank.level0.size) - 2 + self.spare, 0)
        return request(op, rank, ("level0", "mesh"), *between, sub_streams=subs)

    def orchestrate(self, op: OpParam, rank: AnyRank) -> None:
        work = staged(op, rank)
        COMPOSITIONS[op.name](self.levels(op, rank), work, op.root or 0)
        delivered(op, rank, work)

    def levels(self, op: OpParam, rank: AnyRank) -> TwoLevels:
        """Return the mesh of the rank's server and what goes on between servers."""
        mesh = Mesh(rank, deterministic=op.deterministic, barrier=op.name == "scatter")
        plane = rank.plane(all_servers(rank))
        between = OuterLevel(rank.main, plane, op.level1, meeting=self.meeting)
        return TwoLevels(rank.level0, mesh, between)


class AllReduceMeshExecutor(Hierarchical):
    """AllReduce in three phases. In graph mode, scratch where links cannot reduce inline."""

    op = "all_reduce"
    algorithm = f"level0:mesh;level1:{choices('all_reduce')}|{GROUPED}"
    fidelity = like_april(
        "coll_all_reduce_mesh_executor", "all_gather_mesh_atomic", "reduce_scatter_mesh_atomic"
    ).with_cases({**REDUCING_IN_TURN, **fidelities("all_reduce"), **JOINING})


class AllGatherMeshExecutor(Hierarchical):
    """AllGather in two phases, in CCL_Out, or in the output in graph mode."""

    op = "all_gather"
    algorithm = f"level0:mesh;level1:{choices('all_gather')}"
    fidelity = like_april(
        "coll_all_gather_mesh_executor", "all_gather_mesh_atomic", "all_gather_mesh"
    ).with_cases(fidelities("all_gather"))


class ReduceScatterMeshExecutor(Hierarchical):
    """ReduceScatter in two phases. Where links cannot reduce inline, data lands in CCL_Out (HCCL:
    in scratch), in graph mode in as much scratch again.
    """

    op = "reduce_scatter"
    algorithm = f"level0:mesh;level1:{choices('reduce_scatter')}"
    fidelity = like_april(
        "coll_reduce_scatter_mesh_executor", "reduce_scatter_mesh_atomic"
    ).with_cases({**REDUCING_IN_TURN, **fidelities("reduce_scatter")})


class BroadCastMeshExecutor(Hierarchical):
    """Broadcast in three phases. One server of Atlas A2 requests a stream more in op-base mode."""

    op = "broadcast"
    algorithm = f"level0:mesh;level1:{choices('broadcast')}"
    fidelity = like_april(
        "coll_broadcast_mesh_executor", "scatter_mesh", "all_gather_mesh_atomic", "all_gather_mesh"
    ).with_cases({"servers": ROOTLESS, **fidelities("broadcast")})

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """The same, and the stream more."""
        asked = super().resources(op, rank)
        is_one = bool(rank.size == rank.level0.size) and rank.topology.product.device == "910B"
        spare = int(op.mode is Mode.OP_BASE and is_one and rank.size > 1)
        return replace(asked, sub_streams=asked.sub_streams + spare)


class ReduceMeshExecutor(Hierarchical):
    """Reduce in three phases."""

    op = "reduce"
    algorithm = f"level0:mesh;level1:{choices('reduce')}"
    fidelity = like_april(
        "coll_reduce_mesh_executor", "reduce_scatter_mesh_atomic", "gather_mesh"
    ).with_cases({**REDUCING_IN_TURN, **fidelities("reduce")})


class ScatterMeshExecutor(Hierarchical):
    """Scatter in two phases, on main alone, though a stream for every peer but one is requested;
    only the root's plane uses its links between servers.
    """

    op = "scatter"
    algorithm = f"level0:mesh;level1:{choices('scatter')}"
    fidelity = like_april(
        "coll_scatter_mesh_executor", "coll_scatter_executor", "scatter_mesh"
    ).with_cases(fidelities("scatter"))


class GatherMeshExecutor(Hierarchical):
    """Gather in two phases, a mirrored scatter; HCCL has no executor for it."""

    op = "gather"
    algorithm = f"level0:mesh;level1:{choices('gather')}"
    fidelity = ours("HCCL has no gather in its API.")
