"""RunAlltoAllVStaged: HCCL's all-to-all in two steps, inside servers and between them."""

from __future__ import annotations

from typing import Any

import numpy as np

from hccl_executors.all_to_all.layout import (
    TINY,
    PartTable,
    UserParts,
    extents_fit,
    layout_of,
    packed,
    staging_scratch,
)
from hccl_executors.all_to_all.two_levels import (
    Blocks,
    ServerGrid,
    even,
    levels_of,
    regrouped,
    shape_of,
)
from hccl_executors.sources import like_april
from hccl_executors.templates.pairwise import (
    PeerParts,
    Received,
    Sent,
    mesh_all_to_all,
    pairwise_all_to_all,
    pairwise_in_pieces,
)
from hccl_py.call.ops import ALL_TO_ALL
from hccl_py.enums import Buffer
from hccl_py.operators.parts import exchange_of
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
    Unsuitable,
)
from hccl_py.values import RankInt


class RunAlltoAllVStaged(BaseExecutor):
    """AlltoAll, AlltoAllV and AlltoAllVC with fewer, larger messages between servers.

    First every rank of a server gets, from its neighbours, what they have for the ranks with its
    index anywhere; that regroups data by server, in scratch. Then pairwise between servers: one
    message to each instead of one to each of its n ranks. 2(n - 1)α₀ + 2(S - 1)α₁, instead of
    2(Sn - 1) such steps.

    Where all data fits the CCL buffers, and in graph mode, it goes from place to place (ZCopy), and
    the first exchange runs on main and n - 2 sub streams at once; where a switch joins the devices
    of a server (A3), and with `level0:pairwise`, it is pairwise. Else both are pairwise, through
    the buffers, piece by piece (BCopy). In one server, ZCopy in op-base mode needs no second step,
    and reads right to the output, which only RDMA does not reach.
    """

    op = ALL_TO_ALL
    algorithm = "level0:mesh|pairwise;level1:pairwise"
    fidelity = like_april(
        "coll_all_to_all_v_staged_executor",
        "temp_alltoallv/alltoallv_staged_mesh",
        "temp_alltoallv/alltoallv_staged_pairwise",
    )

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        return even(op, topology)

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """Scratch holds what a rank hands on, in op-base mode that of the busiest rank; there are
        no rounds, as HCCL cuts every message by itself.
        """
        graph, whole = op.mode is Mode.GRAPH, extents_fit(op, rank)
        first = Buffer.USER_IN if graph else Buffer.CCL_IN
        last = Buffer.USER_OUT if graph else Buffer.CCL_OUT
        inner, outer = levels_of(rank)
        if _is_one_step(op, rank):
            return ResourceRequest(
                planes=(PlaneRequest(inner, "mesh", first, last),), sub_streams=_subs(op, rank)
            )
        between, rdma = Buffer.SCRATCH if graph or whole else None, rank.topology.has_rdma
        return ResourceRequest(
            planes=(
                PlaneRequest(inner, "mesh", first, between or last),
                PlaneRequest(outer, "mesh", between or first, last, rdma=rdma),
            ),
            sub_streams=_subs(op, rank),
            scratch_bytes=_scratch(op, rank),
        )

    def orchestrate(self, op: OpParam, rank: AnyRank) -> None:
        """Stage, regroup inside the server, exchange between servers."""
        shape, graph = shape_of(rank), op.mode is Mode.GRAPH
        user = layout_of(op, rank.size)
        staged, landed = user
        whole = not graph and extents_fit(op, rank)
        if whole:
            staged = user.sends._replace(buffer=Buffer.CCL_IN)
            landed = user.receives._replace(buffer=Buffer.CCL_OUT)
            rank.main.copy(*(t.at_once(rank.id, rank.size) for t in (staged, user.sends)))
        if _is_one_step(op, rank):
            into = landed if rank.topology.has_rdma else user.receives
            _regroup(op, rank, _OneServer(shape, UserParts(staged, into)))
            if into is landed:
                rank.main.copy(*(t.at_once(rank.id, rank.size) for t in (user.receives, landed)))
            return
        between = packed(Buffer.SCRATCH, regrouped(user.sends.sizes, shape.servers))
        _regroup(op, rank, _Regrouping(shape, staged, between))
        blocks, outer = Blocks(shape, between, landed), rank.plane(levels_of(rank)[1])
        if graph or whole:
            pairwise_all_to_all(rank, outer, blocks)
        else:
            pairwise_in_pieces(rank, outer, blocks)
        if whole:
            rank.main.copy(*(t.at_once(rank.id, rank.size) for t in (user.receives, landed)))


def _regroup(op: OpParam, rank: AnyRank, parts: PeerParts) -> None:
    """Exchange inside the server."""
    plane = rank.plane(levels_of(rank)[0])
    if op.mode is not Mode.GRAPH and not extents_fit(op, rank):
        pairwise_in_pieces(rank, plane, parts)
    elif _is_mesh(op, rank):
        mesh_all_to_all(rank, plane, parts)
    else:
        pairwise_all_to_all(rank, plane, parts)


class _OneServer:
    """Parts that go right to where they belong."""

    def __init__(self, shape: ServerGrid, parts: UserParts) -> None:
        self._me = shape.me
        self._in, self._out = parts

    def sent(self, to: RankInt) -> Sent:
        return Sent([self._in.at(self._me, to)], [self._out.at(to, self._me)])

    def received(self, frm: RankInt) -> Received:
        return Received([self._in.at(frm, self._me)], [self._out.at(self._me, frm)])

    def keep(self, stream: Stream) -> None:
        stream.copy(self._out.at(self._me, self._me), self._in.at(self._me, self._me))


class _Regrouping:
    """Parts inside a server: to device e, those for the ranks (t, e) of all servers t."""

    def __init__(self, shape: ServerGrid, staged: PartTable, between: PartTable) -> None:
        self._shape = shape
        self._staged = staged
        self._between = between

    def sent(self, to: RankInt) -> Sent:
        shape = self._shape
        there = self._all(self._between, shape.rank(shape.s, to), shape.d)
        return Sent(self._all(self._staged, shape.me, to), there)

    def received(self, frm: RankInt) -> Received:
        shape = self._shape
        there = self._all(self._staged, shape.rank(shape.s, frm), shape.d)
        return Received(there, self._all(self._between, shape.me, frm))

    def keep(self, stream: Stream) -> None:
        shape = self._shape
        here = self._all(self._between, shape.me, shape.d)
        stream.copy(here, self._all(self._staged, shape.me, shape.d))

    def _all(self, table: PartTable, owner: RankInt, device: RankInt) -> list[Any]:
        return [table.at(owner, self._shape.rank(t, device)) for t in range(self._shape.servers)]


def _is_one_step(op: OpParam, rank: RankView | AnyRank) -> bool:
    fits = op.mode is Mode.OP_BASE and extents_fit(op, rank)
    return shape_of(rank).servers == 1 and fits


def _is_mesh(op: OpParam, rank: RankView | AnyRank) -> bool:
    """True if all links of a server work at once: without a switch, and unless the call asks for
    one after the other.
    """
    linked = not rank.topology.product.superpod_servers and shape_of(rank).devices > 1
    return linked and op.level0 != "pairwise"


def _subs(op: OpParam, rank: RankView | AnyRank) -> int:
    whole = op.mode is Mode.GRAPH or extents_fit(op, rank)
    return shape_of(rank).devices - 2 if whole and _is_mesh(op, rank) else 0


def _scratch(op: OpParam, rank: RankView) -> int:
    """Return the bytes that a rank hands on, in op-base mode what suits the busiest one."""
    shape = shape_of(rank)
    sizes = regrouped(exchange_of(op, shape.servers * shape.devices).sends, shape.servers)
    handed_on = sizes.sum(axis=1) * op.unit
    if op.mode is Mode.GRAPH:
        mine = np.where(handed_on > 0, handed_on, TINY)
        return int(mine.max())
    return staging_scratch(int(handed_on.max()), rank.ccl_bytes)
