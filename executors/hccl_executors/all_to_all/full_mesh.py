"""RunAlltoAllVFullMesh: HCCL's pairwise all-to-all over all ranks."""

from __future__ import annotations

from hccl_executors.all_to_all.layout import extents_fit, layout_of
from hccl_executors.all_to_all.parts import Direct
from hccl_executors.sources import like_april
from hccl_executors.templates.pairwise import pairwise_all_to_all, pairwise_in_pieces
from hccl_py.call.ops import ALL_TO_ALL
from hccl_py.plugins.executor import (
    AnyRank,
    BaseExecutor,
    Mode,
    OpParam,
    PlaneRequest,
    RankView,
    ResourceRequest,
    Topology,
)

SMALL = 32
"""Ranks of a superpod up to which HCCL asks for a sub stream for every peer."""


class RunAlltoAllVFullMesh(BaseExecutor):
    """AlltoAll, AlltoAllV and AlltoAllVC between all ranks, over links of any kind: pairwise on
    main, p - 1 steps.

    In graph mode, and where all inputs and outputs fit the CCL buffers as they are, data goes
    straight from place to place (ZCopy), in op-base mode between copies of all input and all
    output; else through the buffers, piece by piece (BCopy).

    In one superpod of up to 32 ranks HCCL asks for p - 1 sub streams in op-base mode, which a
    template had that it no longer has; they stay idle.
    """

    op = ALL_TO_ALL
    algorithm = "level0:NA;level1:pairwise"
    fidelity = like_april(
        "coll_all_to_all_v_fullmesh_executor", "temp_alltoallv/alltoallv_pairwise"
    )

    def suits(self, op: OpParam, topology: Topology) -> bool:
        return True

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """Links to everyone, all by RDMA where some have to be; HCCL cuts every part by itself, so
        there are no rounds.
        """
        return ResourceRequest(
            planes=(PlaneRequest("flat", "mesh", rdma=rank.topology.has_rdma),),
            sub_streams=_subs(op, rank.topology),
        )

    def orchestrate(self, op: OpParam, rank: AnyRank) -> None:
        """Exchange with everyone, one after the other."""
        graph, user = op.mode is Mode.GRAPH, layout_of(op, rank.size)
        fits = graph or extents_fit(op, rank)
        parts = Direct(rank, user, staged=fits and not graph)
        if not fits:
            pairwise_in_pieces(rank, rank.flat, parts)
            return
        if not graph:
            parts.stage()
        pairwise_all_to_all(rank, rank.flat, parts)
        if not graph:
            parts.deliver()


def _subs(op: OpParam, topology: Topology) -> int:
    one_pod = topology.joins_servers and len(topology.superpods) == 1
    return (
        topology.size - 1 if op.mode is Mode.OP_BASE and one_pod and topology.size <= SMALL else 0
    )
