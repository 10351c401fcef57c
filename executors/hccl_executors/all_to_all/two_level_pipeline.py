"""RunAlltoAllVTwoLevelPipeline: the exchange inside servers while blocks travel between them."""

from __future__ import annotations

from typing import Any

import numpy as np

from hccl_executors.all_to_all.layout import PartTable, UserParts, aligned, layout_of
from hccl_executors.all_to_all.two_levels import (
    Blocks,
    ServerGrid,
    even,
    regrouped,
    shape_of,
)
from hccl_executors.outer_levels import all_servers
from hccl_executors.templates.pairwise import push, swap
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
from hccl_py.values import IntArray

__all__ = ["RunAlltoAllVTwoLevelPipeline"]


class RunAlltoAllVTwoLevelPipeline:
    """AlltoAll, AlltoAllV and AlltoAllVC with both levels at work.

    In step i = 1 .. S the ranks of a server write into each other's block for server s + i, while
    the block for server s + i - 1 goes there and one from server s - i + 1 comes. Blocks take turns
    in two places; the last one, i = S, is for this server itself. One sub stream per peer in the
    server, one for the other servers: n. Cost intra + (S - 1)·max(intra, inter), each of them for
    one block of n parts.

    Op-base mode: blocks in CCL_In, what RDMA brings lands in CCL_Out. Graph mode: blocks in
    scratch, it lands in the output.
    """

    op = ALL_TO_ALL
    algorithm = "level0:mesh;level1:pipeline"

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        """Needs servers of equal sizes."""
        return even(op, topology)

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """Two blocks of n parts fill CCL_In."""
        shape, graph = shape_of(rank), op.mode is Mode.GRAPH
        first = Buffer.SCRATCH if graph else Buffer.CCL_IN
        last = Buffer.USER_OUT if graph else Buffer.CCL_OUT
        return ResourceRequest(
            planes=(
                PlaneRequest("level0", "mesh", first, last),
                PlaneRequest(all_servers(rank), "mesh", first, last),
            ),
            sub_streams=shape.devices - 1 + (shape.servers > 1),
            scratch_bytes=2 * _largest_block(op, shape) if graph else 0,
            max_count=_each(op, rank),
        )

    def orchestrate(self, op: OpParam, rank: Rank[Any, Any]) -> None:
        """Collect, and pass on what was collected before."""
        shape, graph = shape_of(rank), op.mode is Mode.GRAPH
        user, outer = layout_of(op, rank, _each(op, rank)), rank.plane(all_servers(rank))
        room = int(rank.scratch.size) if graph else rank.ccl_bytes
        sizes = regrouped(user.sends.sizes, shape.servers)
        place = Buffer.SCRATCH if graph else Buffer.CCL_IN
        collected = _in_turns(place, sizes, shape.servers, room // 2)
        landed = user.receives
        if not graph:
            landed = _in_turns(Buffer.CCL_OUT, landed.sizes, shape.servers, 0)
        blocks = Blocks(shape, collected, landed, user)
        for i in rank.main.steps("pipeline", shape.servers):
            with rank.fork(shape.devices - 1 + (i > 0)) as subs:
                _collect(rank, shape, (i + 1) % shape.servers, subs, user, collected)
                if i:
                    to, frm = (shape.s + i) % shape.servers, (shape.s - i) % shape.servers
                    swap(subs[-1], outer[to], outer[frm], blocks.sent(to), blocks.received(frm))
        blocks.keep(rank.main)


def _collect(
    rank: Rank[Any, Any],
    shape: ServerGrid,
    ahead: int,
    subs: tuple[Stream, ...],
    user: UserParts,
    collected: PartTable,
) -> None:
    """Write into all ranks' blocks, of this server, for the server so far ahead."""
    target, n = (shape.s + ahead) % shape.servers, shape.devices
    own = collected.at(shape.me, shape.rank(target, shape.d))
    rank.main.copy(own, user.sends.at(shape.me, shape.rank(target, shape.d)))
    for sub, (peer, link) in zip(subs[: n - 1], rank.level0.others(), strict=True):
        there = collected.at(shape.rank(shape.s, peer), shape.rank(target, shape.d))
        push(sub, link, [user.sends.at(shape.me, shape.rank(target, peer))], [there])


def _in_turns(buffer: Buffer, sizes: IntArray, servers: int, half: int) -> PartTable:
    """Return one block a server, each at the beginning; in order of distance, every second one is
    `half` bytes further.
    """
    ranks, n = len(sizes), len(sizes) // servers
    blocks = sizes.reshape(ranks, servers, n)
    ahead = (np.arange(servers) - np.arange(ranks)[:, None] // n - 1) % servers
    offsets = np.cumsum(blocks, axis=2) - blocks + ahead[:, :, None] % 2 * half
    return PartTable(buffer, offsets.reshape(ranks, ranks), sizes, True)


def _each(op: OpParam, rank: RankView | Rank[Any, Any]) -> int:
    """Return the elements of a part in one round: a block has n parts."""
    return aligned(rank.ccl_bytes // 2 // int(rank.level0.size)) // op.unit


def _largest_block(op: OpParam, shape: ServerGrid) -> int:
    """Return the bytes of the largest block, in whole slices."""
    ranks = shape.servers * shape.devices
    sizes = regrouped(exchange_of(op, ranks).sends, shape.servers)
    largest = int(sizes.reshape(ranks, shape.servers, -1).sum(axis=2).max())
    return -(-largest * op.unit // 128) * 128
