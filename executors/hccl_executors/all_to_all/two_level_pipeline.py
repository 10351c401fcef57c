"""RunAlltoAllVTwoLevelPipeline: the exchange inside servers while blocks travel between them."""

from __future__ import annotations

from hccl_executors.all_to_all.blocks_at_once import blocks_at_once
from hccl_executors.all_to_all.blocks_in_halves import blocks_in_halves
from hccl_executors.all_to_all.layout import TINY, layout_of
from hccl_executors.all_to_all.two_levels import even, levels_of, shape_of
from hccl_executors.sources import april, like_april
from hccl_py.call.ops import ALL_TO_ALL
from hccl_py.enums import Buffer
from hccl_py.operators.parts import exchange_of, extents
from hccl_py.plugins.executor import (
    AnyRank,
    BaseExecutor,
    Mode,
    OpParam,
    PlaneRequest,
    RankView,
    ResourceRequest,
    Topology,
    Unsuitable,
    require,
    steps,
)


class RunAlltoAllVTwoLevelPipeline(BaseExecutor):
    """AlltoAll, AlltoAllV and AlltoAllVC with both levels at work.

    With S servers, in step i = 1 .. S - 1 a rank sends its block for server s + i there and gets
    one from server s - i, while the devices of its server read from it what came in step i - 1,
    first of all what was here. One sub stream per peer in the server, one for the other servers: n.
    Cost intra + (S - 1)·max(intra, inter), each of them for one block of n parts.

    Where all parts, each as large as the largest, fit a CCL buffer, every block has a place of its
    own (blocks_at_once.py), in graph mode in scratch. Else blocks go in pieces through two halves
    of the buffers (blocks_in_halves.py).
    """

    op = ALL_TO_ALL
    algorithm = "level0:mesh;level1:pipeline"
    fidelity = like_april(
        "coll_all_to_all_v_2level_pipeline_excecutor",
        "temp_alltoall/allltoall_pipeline_mesh_pairwise_ccl_enough",
        "temp_alltoall/allltoall_pipeline_mesh_pairwise_ping_pong",
    ).with_cases(
        {
            "graph": steps(
                "Copies what stays in the server to scratch first; HCCL's template for graph mode, "
                "which is never selected, reads it there without that.",
                *april("coll_all_to_all_v_2level_pipeline_excecutor"),
            ),
            "pieces": steps(
                "Sends the slots that hold data; HCCL's sends half of a CCL buffer each time, with "
                "memory that was never written between and behind these, which is not read "
                "(allltoall_pipeline_mesh_pairwise_ping_pong.cc:331-333).",
                *april("temp_alltoall/allltoall_pipeline_mesh_pairwise_ping_pong"),
            ),
        }
    )

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        return even(op, topology) and require((len(topology.servers) > 1, "needs several servers"))

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """In graph mode, scratch holds a block of each server; in op-base mode HCCL asks for some,
        too.
        """
        shape, graph = shape_of(rank), op.mode is Mode.GRAPH
        inner, outer = levels_of(rank)
        first = Buffer.USER_IN if graph else Buffer.CCL_IN
        last = Buffer.SCRATCH if graph else Buffer.CCL_OUT
        return ResourceRequest(
            planes=(
                PlaneRequest(inner, "mesh", last, last),
                PlaneRequest(outer, "mesh", first, last, rdma=rank.topology.has_rdma),
            ),
            sub_streams=shape.devices,
            scratch_bytes=_most(op, rank.size) if graph else TINY,
        )

    def orchestrate(self, op: OpParam, rank: AnyRank) -> None:
        """Go with whole blocks, or in pieces."""
        graph, user = op.mode is Mode.GRAPH, layout_of(op, rank.size)
        if graph or _most(op, rank.size) <= rank.ccl_bytes:
            blocks_at_once(rank, shape_of(rank), user)
        else:
            blocks_in_halves(rank, shape_of(rank), user, op.unit)


def _most(op: OpParam, ranks: int) -> int:
    """Return the bytes of as many parts as there are ranks, each as large as the largest, or of
    the largest input or output, if that is more.
    """
    parts = exchange_of(op, ranks)
    ends = extents(parts.send_displs, parts.sends), extents(parts.recv_displs, parts.receives)
    most = max(int(parts.sends.max()) * ranks, *(int(end.max()) for end in ends))
    return most * op.unit
