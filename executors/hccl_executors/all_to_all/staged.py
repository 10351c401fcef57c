"""RunAlltoAllVStaged: exchange inside servers first, then between them."""

from __future__ import annotations

from typing import Any

import numpy as np

from hccl_executors.all_to_all.layout import (
    PartTable,
    aligned,
    extents_fit,
    layout_of,
    packed,
)
from hccl_executors.all_to_all.two_levels import (
    Blocks,
    ServerGrid,
    even,
    regrouped,
    shape_of,
)
from hccl_executors.outer_levels import all_servers
from hccl_executors.templates.pairwise import (
    Received,
    Sent,
    mesh_all_to_all,
    pairwise_all_to_all,
)
from hccl_py.enums import Buffer
from hccl_py.executor import (
    Mode,
    OpParam,
    PlaneRequest,
    Rank,
    RankView,
    ResourceRequest,
    Topology,
    Unsuitable,
)
from hccl_py.operators.parts import exchange_of
from hccl_py.ops import ALL_TO_ALL
from hccl_py.orchestration import Stream
from hccl_py.values import RankInt

__all__ = ["RunAlltoAllVStaged"]


class RunAlltoAllVStaged:
    """AlltoAll, AlltoAllV and AlltoAllVC with fewer, larger messages between servers.

    First every rank of a server gets, from its neighbours, what they have for the ranks with its
    index anywhere; that regroups data by server, in scratch. Then pairwise between servers: one
    message to each instead of one to each of its n ranks. (n - 1)α₀ + (S - 1)α₁, instead of
    (Sn - 1) steps.

    The first exchange runs on main in rounds of BCopy, and on n - 2 sub streams (n - 1 in
    superpods) and main in graph mode and where all data fits the CCL buffers (ZCopy).
    """

    op = ALL_TO_ALL
    algorithm = "level0:mesh;level1:pairwise"

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs servers of equal sizes."""
        return even(op, topology)

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """Scratch holds what a rank hands on in a round; a round of BCopy fills a CCL buffer with
        parts for everyone.
        """
        graph, whole = op.mode is Mode.GRAPH, extents_fit(op, rank)
        first = Buffer.USER_IN if graph else Buffer.CCL_IN
        last = Buffer.USER_OUT if graph else Buffer.CCL_OUT
        each = None if whole else _each(op, rank)
        return ResourceRequest(
            planes=(
                PlaneRequest("level0", "mesh", first, Buffer.SCRATCH),
                PlaneRequest(all_servers(rank), "mesh", Buffer.SCRATCH, last),
            ),
            sub_streams=_subs(op, rank),
            scratch_bytes=_scratch(op, shape_of(rank), None if graph else each),
            max_count=each,
        )

    def orchestrate(self, op: OpParam, rank: Rank[Any, Any]) -> None:
        """Stage, regroup inside the server, exchange between servers."""
        shape, graph = shape_of(rank), op.mode is Mode.GRAPH
        user = layout_of(op, rank, None if extents_fit(op, rank) else _each(op, rank))
        staged, landed = user
        if not graph:
            staged = packed(Buffer.CCL_IN, user.sends.sizes)
            landed = packed(Buffer.CCL_OUT, user.receives.sizes)
            merge = user.sends.is_gapless
            rank.main.copy(*(t.run(rank.id, 0, rank.size, merge) for t in (staged, user.sends)))
        between = packed(Buffer.SCRATCH, regrouped(user.sends.sizes, shape.servers))
        regrouping = _Regrouping(shape, staged, between)
        if subs := _subs(op, rank):
            mesh_all_to_all(rank, rank.level0, regrouping, subs)
        else:
            pairwise_all_to_all(rank, rank.level0, regrouping)
        blocks = Blocks(shape, between, landed, user)
        pairwise_all_to_all(rank, rank.plane(all_servers(rank)), blocks)


class _Regrouping:
    """Parts inside a server: to device e, those for the ranks (t, e) of all servers t."""

    def __init__(self, shape: ServerGrid, staged: PartTable, between: PartTable) -> None:
        self._shape = shape
        self._staged = staged
        self._between = between

    def sent(self, to: RankInt) -> Sent:
        shape = self._shape
        here = self._all(self._staged, shape.me, to)
        return Sent(here, here, self._all(self._between, shape.rank(shape.s, to), shape.d))

    def received(self, frm: RankInt) -> Received:
        shape = self._shape
        here = self._all(self._between, shape.me, frm)
        there = self._all(self._staged, shape.rank(shape.s, frm), shape.d)
        return Received(there, here, here)

    def keep(self, stream: Stream) -> None:
        shape = self._shape
        here = self._all(self._between, shape.me, shape.d)
        stream.copy(here, self._all(self._staged, shape.me, shape.d))

    def _all(self, table: PartTable, owner: RankInt, device: RankInt) -> list[Any]:
        return [table.at(owner, self._shape.rank(t, device)) for t in range(self._shape.servers)]


def _each(op: OpParam, rank: RankView | Rank[Any, Any]) -> int:
    """Return the elements of a part in one round of BCopy."""
    return aligned(rank.ccl_bytes // rank.size) // op.unit


def _subs(op: OpParam, rank: RankView | Rank[Any, Any]) -> int:
    n = int(rank.level0.size)
    if rank.topology.product.superpod_servers:
        return n - 1
    return max(n - 2, 0) if op.mode is Mode.GRAPH or extents_fit(op, rank) else 0


def _scratch(op: OpParam, shape: ServerGrid, each: int | None) -> int:
    """Return the bytes that the busiest rank hands on in a round."""
    sizes = regrouped(exchange_of(op, shape.servers * shape.devices).sends, shape.servers)
    largest = np.minimum(sizes, op.extent if each is None else each)
    return int(largest.sum(axis=1).max()) * op.unit
