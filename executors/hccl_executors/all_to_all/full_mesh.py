"""RunAlltoAllVFullMesh: HCCL's pairwise all-to-all over all ranks."""

from __future__ import annotations

from hccl_executors.all_to_all.layout import UserParts, extents_fit, layout_of
from hccl_executors.sources import like_april
from hccl_executors.templates.pairwise import (
    Received,
    Sent,
    pairwise_all_to_all,
    pairwise_in_pieces,
)
from hccl_py.call.ops import ALL_TO_ALL
from hccl_py.enums import Buffer
from hccl_py.orchestration import Stream
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
from hccl_py.values import RankInt


class Direct:
    """Parts at known offsets, so that they go from place to place: in user memory, or, staged, at
    the same places in the CCL buffers.
    """

    def __init__(self, rank: AnyRank, user: UserParts, *, staged: bool) -> None:
        self._rank = rank
        self._user = user
        self._in, self._out = user
        if staged:
            self._in = user.sends._replace(buffer=Buffer.CCL_IN)
            self._out = user.receives._replace(buffer=Buffer.CCL_OUT)

    def stage(self) -> None:
        """Copy the input to CCL_In, all at once where it has no gaps."""
        me, size = self._rank.id, self._rank.size
        self._rank.main.copy(self._in.at_once(me, size), self._user.sends.at_once(me, size))

    def deliver(self) -> None:
        """Copy CCL_Out to the output, all at once where it has no gaps."""
        table, me, size = self._user.receives, self._rank.id, self._rank.size
        self._rank.main.copy(table.at_once(me, size), self._out.at_once(me, size))

    def sent(self, to: RankInt) -> Sent:
        return Sent([self._in.at(self._rank.id, to)], [self._out.at(to, self._rank.id)])

    def received(self, frm: RankInt) -> Received:
        return Received([self._in.at(frm, self._rank.id)], [self._out.at(self._rank.id, frm)])

    def keep(self, stream: Stream) -> None:
        me = self._rank.id
        stream.copy(self._out.at(me, me), self._in.at(me, me))


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
