"""ReduceScatterVDeterExecutor: blocks are collected and added server by server."""

from hccl_executors.outer_levels import all_servers
from hccl_executors.sources import like_april
from hccl_executors.templates.mesh_collect_by_server import (
    collect_between,
    collect_inside,
    streams_needed,
)
from hccl_executors.two_levels import column
from hccl_py.enums import Buffer
from hccl_py.orchestration import Chunks, Region
from hccl_py.orchestration.region import SLICE_ALIGN
from hccl_py.plugins.executor import (
    BaseExecutor,
    Mode,
    OpParam,
    PlaneRequest,
    Rank,
    RankView,
    ResourceRequest,
    Topology,
    Unsuitable,
    require,
)
from hccl_py.values import RankInt

LARGEST_MESH = 8
"""Devices of a server for which HCCL's streams are enough."""


class ReduceScatterVDeterExecutor(BaseExecutor):
    """ReduceScatterV whose sums do not depend on timing: block r of every rank goes to rank r of
    its server, side by side, and is added there while the next server's blocks come; then the
    servers exchange what they have. Links need not reduce.

    In op-base mode it works in CCL_Out, in graph mode in scratch as large as all blocks, if they
    were as large as the largest. HCCL has a form for servers of one device besides.
    """

    op = "reduce_scatter_v"
    algorithm = "level0:mesh"
    fidelity = like_april(
        "coll_reduce_scatter_v_deter_executor",
        "reduce_scatter_plant_local_reduce",
        "reduce_scatter_plant_local_reduce_combine",
    )

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs servers alike, each a mesh of SDMA links between 2 to 8 devices."""
        devices = topology.servers[0]
        return require(
            (topology.has_mesh, "needs every device linked to every other one"),
            (topology.has_sdma_inside, "needs SDMA between all devices of a server"),
            (topology.has_equal_servers, "needs servers alike, and ranks numbered by server"),
            (1 < devices <= LARGEST_MESH, f"needs 2 to 8 devices in a server, there is {devices}"),
        )

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """Links to all peers in the server and on the plane between servers."""
        graph = op.mode is Mode.GRAPH
        pair = (Buffer.USER_IN, Buffer.SCRATCH) if graph else (None, None)
        n = int(rank.level0.size)
        levels = ["level0"] + [all_servers(rank)] * (rank.size > n)
        return ResourceRequest(
            planes=tuple(PlaneRequest(level, "mesh", *pair) for level in levels),
            sub_streams=streams_needed(n, rank.size // n),
            scratch_bytes=op.extent * op.unit * rank.size if graph else 0,
            max_count=rank.ccl_bytes // rank.size // SLICE_ALIGN * SLICE_ALIGN // op.unit,
        )

    def orchestrate(self, op: OpParam, rank: Rank[Chunks, Region]) -> None:
        """Collect and add in the servers, then between them; copy the own block."""
        memory = rank.scratch if op.mode is Mode.GRAPH else rank.ccl_out
        mesh, ring = rank.level0, rank.plane(all_servers(rank))
        n, servers, size = int(mesh.size), int(ring.size), rank.user_in.largest
        shift = int(servers > 1)

        def place(server: RankInt, number: RankInt) -> Region:
            start = (server * n + number) * size
            return memory[start : start + size]

        chunks = [rank.user_in.taken(g * n, n) for g in range(servers)]
        collect_inside(rank, mesh, chunks, place, shift)
        if servers > 1:
            mine = column(rank.user_in, mesh.id, n)
            collect_between(rank, ring, mesh.id, mine, place, (mesh.id + shift) % n)
        rank.main.copy(rank.user_out, place(ring.id, mesh.id).head(rank.user_out.size))
