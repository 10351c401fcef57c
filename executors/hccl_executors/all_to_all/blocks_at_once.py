"""The two-level all-to-all where all blocks fit: every server's block has a place of its own.

A rank's block for a server is what it sends to the ranks there, as it lies in its input, from the
first part to the last. `landed` of rank (s, d) has the blocks of devices d of all servers for
server s, its own in its place, one after the other. Other devices of s read their parts from there.
"""

from __future__ import annotations

import numpy as np

from hccl_executors.all_to_all.layout import PartTable, UserParts, packed
from hccl_executors.all_to_all.pipelined import Pipelined
from hccl_executors.all_to_all.two_levels import ServerGrid
from hccl_executors.templates.pairwise import Received, Sent
from hccl_py.enums import Buffer, Mode
from hccl_py.orchestration import Region
from hccl_py.plugins.executor import AnyRank
from hccl_py.values import PerRank, RankInt, values_of


def blocks_at_once(rank: AnyRank, shape: ServerGrid, user: UserParts) -> None:
    """Record the exchange; in graph mode from the input to scratch, else from CCL_In to CCL_Out."""
    call, blocks = Pipelined(rank, shape), _ServerBlocks(rank, shape, user)
    main, steps = rank.main, shape.servers - 1
    main.copy(*blocks.staged(1))
    call.start_between()
    main.copy(*blocks.kept())
    call.start_inside()
    call.read_inside(blocks.inside(0, call.peers))
    for step in main.steps("pipeline", steps):
        call.between(step, *blocks.between(step))
        main.copy(*blocks.staged(step + 2))
        call.wait_between()
        call.wait_inside()
        if step < steps - 1:
            call.start_between()
        call.start_inside()
        call.read_inside(blocks.inside(step + 1, call.peers))
        main.copy(*blocks.own(step + 1))
    main.copy(*blocks.own(0))
    call.wait_inside()


class _ServerBlocks:
    """Places of blocks and parts in the memory of one rank.

    Blocks whose parts do not follow each other are packed in CCL_In, or go part by part.
    """

    def __init__(self, rank: AnyRank, shape: ServerGrid, user: UserParts) -> None:
        graph = rank.mode is Mode.GRAPH
        into, room = (
            (Buffer.SCRATCH, int(rank.scratch.size)) if graph else (Buffer.CCL_OUT, rank.ccl_bytes)
        )
        self._shape, self._user = shape, user
        self._source = user.sends._replace(buffer=Buffer.USER_IN if graph else Buffer.CCL_IN)
        self._landed = _landed(self._source, shape, into)
        self._as_they_lie = _is_in_order(user.sends, shape) and _end(self._landed) <= room
        self._whole = self._as_they_lie or not graph
        if not self._as_they_lie:
            dense = packed(Buffer.CCL_IN, user.sends.sizes)
            self._landed = _landed(dense, shape, into)
            self._source = self._source if graph else dense
        self._graph = graph

    def staged(self, ahead: int) -> tuple[list[Region], list[Region]]:
        """Return the staging place and the source of the block for the server so far ahead; nothing
        in graph mode.
        """
        if self._graph:
            return [], []
        first = (self._shape.s + ahead) % self._shape.servers * self._shape.devices
        return self._copied(self._source, first)

    def kept(self) -> tuple[list[Region], list[Region]]:
        """Return the landing place and the source of the block for this server."""
        return self._copied(self._landed, self._shape.s * self._shape.devices)

    def between(self, step: int) -> tuple[Sent, Received]:
        """Return the blocks that go to a server and come from one."""
        shape, n = self._shape, self._shape.devices
        to, frm = (shape.s + 1 + step) % shape.servers, (shape.s - 1 - step) % shape.servers
        sender, receiver = shape.rank(frm, shape.d), shape.rank(to, shape.d)
        mine, theirs, whole = to * n, shape.s * n, self._whole
        return (
            Sent(
                _block(self._source, shape.me, mine, n, whole),
                _block(self._landed, receiver, theirs, n, whole),
            ),
            Received(
                _block(self._source, sender, theirs, n, whole),
                _block(self._landed, shape.me, frm * n, n, whole),
            ),
        )

    def inside(self, behind: int, peers: list[int]) -> list[tuple[Region, Region]]:
        """Return, for every peer of the server, where it has the part of the server so far behind
        for this rank, and where that belongs.
        """
        shape, frm = self._shape, (self._shape.s - behind) % self._shape.servers
        return [
            (
                self._landed.at(shape.rank(shape.s, peer), shape.rank(frm, shape.d)),
                self._user.receives.at(shape.me, shape.rank(frm, peer)),
            )
            for peer in peers
        ]

    def own(self, behind: int) -> tuple[Region, Region]:
        """Return the destination and the landing place of the part from the equal device of a
        server.
        """
        shape = self._shape
        sender = shape.rank((shape.s - behind) % shape.servers, shape.d)
        return self._user.receives.at(shape.me, sender), self._landed.at(shape.me, sender)

    def _copied(self, into: PartTable, first: RankInt) -> tuple[list[Region], list[Region]]:
        """Return a block's places, in `into` and in the input."""
        me, n, whole = self._shape.me, self._shape.devices, self._as_they_lie
        return _block(into, me, first, n, whole), _block(self._user.sends, me, first, n, whole)


def _block(table: PartTable, owner: RankInt, first: RankInt, n: int, whole: bool) -> list[Region]:
    """Return n parts, as one region from the beginning of the first to the end of the last."""
    if not whole:
        return table.run(owner, first, n, merge=False)
    row, column = values_of(owner), values_of(first)
    start, last = table.offsets[row, column], column + n - 1
    end = table.offsets[row, last] + table.sizes[row, last]
    return [Region(table.buffer, PerRank.of(start), PerRank.of(end - start))]


def _landed(source: PartTable, shape: ServerGrid, buffer: Buffer) -> PartTable:
    """Return the landing places of blocks: at (s, d), for each server t and device e, the part of
    (t, d) for (s, e).
    """
    servers, n = shape.servers, shape.devices
    axes = (servers, n, servers, n)
    offsets, sizes = (a.reshape(axes).transpose(2, 1, 0, 3) for a in source[1:3])  # s, d, t, e
    extents = offsets[..., -1] + sizes[..., -1] - offsets[..., 0]
    starts = np.cumsum(extents, axis=2) - extents
    places = starts[..., None] + offsets - offsets[..., :1]
    flat = (servers * n, servers * n)
    return PartTable(buffer, places.reshape(flat), sizes.reshape(flat), False)


def _is_in_order(table: PartTable, shape: ServerGrid) -> bool:
    """True if the parts of each block follow each other, with or without gaps."""
    n = shape.devices
    starts = table.offsets.reshape(-1, n)
    ends = starts + table.sizes.reshape(-1, n)
    return bool((starts[:, 1:] >= ends[:, :-1]).all())


def _end(table: PartTable) -> int:
    return int((table.offsets + table.sizes).max())
