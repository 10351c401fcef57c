"""AllGatherV in a mesh, and in meshes and then between the servers."""

from __future__ import annotations

from itertools import pairwise

from hccl_executors.flat_v import packed, sharing_rounds
from hccl_executors.hierarchical import Mesh
from hccl_executors.levels import fidelities
from hccl_executors.one_mesh import mesh_request, require_mesh, require_mesh_op_base
from hccl_executors.outer_levels import OuterLevel, all_servers, links
from hccl_executors.sources import like_april, like_newest
from hccl_executors.staging import request
from hccl_executors.templates.mesh import mesh_all_gather
from hccl_executors.templates.mesh_in_place import mesh_all_gather_meeting
from hccl_executors.two_levels import COMPOSITIONS, TwoLevels
from hccl_py.operators.parts import blocks_of
from hccl_py.orchestration import Chunks, Region
from hccl_py.plugins.executor import (
    BaseExecutor,
    Mode,
    OpParam,
    Rank,
    RankView,
    ResourceRequest,
    Topology,
    Unsuitable,
    require,
)


class AllGatherVMeshExecutor(BaseExecutor):
    """AllGatherV inside every server, then of whole servers' blocks between them, side by side in
    CCL_Out, or in the output in graph mode. Rounds share a CCL buffer among all blocks.

    In one server it is AllGatherVMeshOpbaseExecutor; in graph mode AllGatherVMeshGraphExecutor,
    which until 2025 had this name.
    """

    op = "all_gather_v"
    algorithm = "level0:mesh;level1:NHR|ring|NB"
    fidelity = like_newest(
        "coll_all_gather_v_mesh_executor", "all_gather_mesh_direct", "all_gather_mesh_atomic"
    ).with_cases(fidelities("all_gather"))

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs meshes of as many devices in every server, and there, in graph mode, no gaps."""
        alone = topology.is_single_server or op.mode is Mode.OP_BASE
        return require(
            (topology.has_mesh, "needs every device linked to every other one"),
            (topology.has_sdma_inside, "needs SDMA between all devices of a server"),
            (topology.has_equal_servers, "needs servers alike, and ranks numbered by server"),
            (
                alone or _side_by_side(op, topology.size),
                "needs blocks side by side, in order: servers exchange theirs as one",
            ),
        )

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """Links inside the servers and between them, a sub stream per peer but one."""
        if rank.size == rank.level0.size:
            return _in_one_server(op).resources(op, rank)
        between = links("all_gather", [(rank.plane(all_servers(rank)), op.level1)], 0)
        subs = max(int(rank.level0.size) - 2, 0)
        asked = request(op, rank, ("level0", "mesh"), *between, sub_streams=subs)
        return sharing_rounds(asked, op, rank, align=1, ends_empty=False)

    def orchestrate(self, op: OpParam, rank: Rank[Region, Chunks]) -> None:
        """Put the own block beside the others', gather inside, then between."""
        if rank.size == rank.level0.size:
            _in_one_server(op).orchestrate(op, rank)
            return
        graph, out = op.mode is Mode.GRAPH, rank.user_out
        blocks = out if graph else packed(rank.ccl_out, out, align=1)
        staged = rank.user_in if graph else rank.ccl_in.head(rank.user_in.size)
        if not graph:
            rank.main.copy(staged, rank.user_in)
        rank.main.copy(blocks[rank.id], staged)
        between = OuterLevel(rank.main, rank.plane(all_servers(rank)), op.level1)
        levels = TwoLevels(rank.level0, Mesh(rank, deterministic=False), between)
        COMPOSITIONS["all_gather"](levels, blocks, 0)
        rank.deliver(blocks)


def _in_one_server(op: OpParam) -> AllGatherVMeshOpbaseExecutor | AllGatherVMeshGraphExecutor:
    graph = op.mode is Mode.GRAPH
    return AllGatherVMeshGraphExecutor() if graph else AllGatherVMeshOpbaseExecutor()


def _side_by_side(op: OpParam, ranks: int) -> bool:
    counts, displs = (amounts.tolist() for amounts in blocks_of(op, ranks))
    return all(a + n == b for (a, b), n in zip(pairwise(displs), counts, strict=False))


class AllGatherVMeshGraphExecutor(BaseExecutor):
    """AllGatherV inside one full mesh, in graph mode: α + nβ for the largest block, no staging."""

    op = "all_gather_v"
    algorithm = "level0:mesh"
    fidelity = like_april("coll_all_gather_v_mesh_graph_executor")

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs one server with a full mesh, and outputs that peers can read."""
        return require_mesh(topology) and require(
            (op.mode is Mode.GRAPH, "reads from peers' outputs: graph mode only")
        )

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """A stream and a link per peer."""
        return mesh_request(op, rank, max_bytes=rank.ccl_bytes)

    def orchestrate(self, op: OpParam, rank: Rank[Region, Chunks]) -> None:
        """Put the own block in its place, then read from everyone."""
        rank.main.copy(rank.user_out[rank.id], rank.user_in)
        mesh_all_gather_meeting(rank, rank.level0, rank.user_out)


class AllGatherVMeshOpbaseExecutor(BaseExecutor):
    """AllGatherV inside one full mesh, in op-base mode: α + nβ for the largest block.

    A block lies at the beginning of its rank's CCL_Out; blocks lie apart in user memory only.
    """

    op = "all_gather_v"
    algorithm = "level0:mesh"
    fidelity = like_april("coll_all_gather_v_mesh_executor")

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs one server with a full mesh, and CCL buffers."""
        return require_mesh_op_base(op, topology)

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """A stream and a link per peer; a round's largest block fills CCL_Out but for one block of
        alignment.
        """
        return mesh_request(op, rank, max_bytes=(rank.ccl_bytes - 16384) // 128 * 128)

    def orchestrate(self, op: OpParam, rank: Rank[Region, Chunks]) -> None:
        """Stage, then read from everyone."""
        rank.main.copy(rank.ccl_out.head(rank.user_in.size), rank.user_in)
        mesh_all_gather(rank, rank.level0, rank.user_out, rank.ccl_out)
