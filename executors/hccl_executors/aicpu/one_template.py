"""The machinery of executors that run one template over all ranks, in rounds through the buffer.

HCCL: Ins...SoleExecutor.
"""

from __future__ import annotations

from typing import Any, ClassVar

from hccl_executors.aicpu.duplex import NOTIFIES
from hccl_executors.aicpu.on_aicpu import TRANSFER, OnAicpu
from hccl_executors.aicpu.seats import (
    ALIGN,
    AnyChannelRank,
    RankGroup,
    Seat,
    board_axes,
    flat,
    flat_over,
    has_boards,
    others,
    requests,
    seat,
    slots,
)
from hccl_py.orchestration import Chunks, Region
from hccl_py.plugins.executor import (
    ChannelRequest,
    ChannelResources,
    OpParam,
    RankView,
    Topology,
    Unsuitable,
)


class Sole(OnAicpu):
    """One template over all ranks. `most` bounds the bytes of a round beside the buffer, of which
    `reserve` bytes are left alone where it has more: HCCL refuses smaller buffers.
    """

    template: ClassVar[Any]
    most: ClassVar[int] = TRANSFER
    reserve: ClassVar[int] = 0

    def resources(self, op: OpParam, rank: RankView) -> ChannelResources:
        return ChannelResources(
            channels=requests(self._group(rank), self.template),
            threads=self.template.threads(rank.size),
            max_count=self.round_count(op, rank),
        )

    def round_count(self, op: OpParam, rank: RankView) -> int:
        """Return the elements of one round."""
        return self._round_bytes(rank.ccl_bytes, rank.size) // op.unit

    def orchestrate(self, op: OpParam, rank: AnyChannelRank) -> None:
        self.record(op, rank, seat(rank, self._group(rank), rank.threads, op))

    def record(self, op: OpParam, rank: AnyChannelRank, place: Seat) -> None:
        """Run the template on the memory that its op takes."""
        buffer = rank.buffer
        self.template.run(place, rank.user_in, rank.user_out, buffer, op.unit)

    def _group(self, rank: RankView | AnyChannelRank) -> RankGroup:
        if "NHR" in self.algorithm:
            return flat_over(rank, by_clos=self.template.by_clos)
        return flat(rank)

    def _round_bytes(self, ccl_bytes: int, n: int) -> int:
        """Return the bytes of a rank's part that one round takes."""
        times: int = max(self.template.scratch(n), 1)
        left = ccl_bytes - self.reserve if ccl_bytes > self.reserve else ccl_bytes
        return min(self.most, left // times // ALIGN * ALIGN)

    def _slot(self, op: OpParam, rank: AnyChannelRank) -> int:
        """Return the bytes of a slot that holds any round: whole elements."""
        return self._round_bytes(rank.ccl_bytes, rank.size) // op.unit * op.unit


class SoleAllReduce(Sole):
    """AllReduce takes any size in one transfer."""

    op = "all_reduce"
    most = 1 << 62


class SoleAllGather(Sole):
    """AllGather by a template that also serves parts of the ranks."""

    op = "all_gather"

    def record(self, op: OpParam, rank: AnyChannelRank, place: Seat) -> None:
        places = slots(rank.buffer, int(rank.user_in.size), rank.size)
        self.template.run(place, [rank.user_in], [rank.user_out], [places])


class SoleReduceScatter(Sole):
    """ReduceScatter leaves 1 MB of the buffer alone."""

    op = "reduce_scatter"
    reserve = 1 << 20


class SolePlacedReduceScatter(SoleReduceScatter):
    """ReduceScatter by a template that also serves parts of the ranks."""

    def record(self, op: OpParam, rank: AnyChannelRank, place: Seat) -> None:
        self.template.run(place, [rank.user_in], [rank.user_out], [self.places(rank)])

    def places(self, rank: AnyChannelRank) -> Region | Chunks:
        return slots(rank.buffer, int(rank.user_out.size), rank.size)


class SoleBroadcast(Sole):
    """Broadcast: HCCL works in the user's one memory; here the root copies it where it has two."""

    op = "broadcast"

    def record(self, op: OpParam, rank: AnyChannelRank, place: Seat) -> None:
        is_root = bool(place.me == op.root)
        data = rank.user_in if is_root else rank.user_out
        if is_root and not op.in_place:
            rank.main.copy(rank.user_out, rank.user_in)
        self.template.run(place, op.root, data, rank.buffer, op.unit)


class SoleReduce(Sole):
    """Reduce to the root."""

    op = "reduce"

    def record(self, op: OpParam, rank: AnyChannelRank, place: Seat) -> None:
        target = rank.user_out if place.me == op.root else rank.user_in
        self.template.run(place, op.root, rank.user_in, target, rank.buffer, op.unit)


class SoleScatter(Sole):
    """Scatter from the root; a slot holds its block alone where the template needs no more."""

    op = "scatter"

    def record(self, op: OpParam, rank: AnyChannelRank, place: Seat) -> None:
        block = int(rank.user_out.size)
        stride = block if self.template.scratch(rank.size) > 1 else 0
        places = slots(rank.buffer, block, rank.size, stride)
        self.template.run(place, op.root, [rank.user_in], [rank.user_out], [places])


class SoleInSlots(Sole):
    """Ops whose blocks differ in size: slots are as large as any round needs."""

    def record(self, op: OpParam, rank: AnyChannelRank, place: Seat) -> None:
        count = max(self.template.scratch(rank.size), rank.size)
        places = slots(rank.buffer, self._slot(op, rank), count)
        self.template.run(place, rank.user_in, rank.user_out, places)


class SoleOnBoards(SoleInSlots):
    """Ops on a UBX server whose template tells boards apart, and has several links across them."""

    cluster = "ascend950-ubx"

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        found = super().suits(op, topology)
        return found and has_boards(topology, least=1, widest=self.template.width)

    def resources(self, op: OpParam, rank: RankView) -> ChannelResources:
        """A channel to a rank of the board, several across; threads have a notify for each."""
        (board, boards), template = board_axes(rank), self.template
        links, width = template.links if boards.size > 1 else 1, board.size
        across = (
            (boards.me + d) % boards.size * width + i
            for d in others(boards.size)
            for i in range(width)
        )
        return ChannelResources(
            channels=(
                *requests(board, template),
                *(ChannelRequest(peer, NOTIFIES, 1) for peer in across for _ in range(links)),
            ),
            threads=(template.subs(rank.size), *[links] * template.subs(rank.size)),
            max_count=self.round_count(op, rank),
        )

    def record(self, op: OpParam, rank: AnyChannelRank, place: Seat) -> None:
        places, width = (
            slots(rank.buffer, self._slot(op, rank), rank.size),
            board_axes(rank)[0].size,
        )
        self.template.run(place, width, rank.user_in, rank.user_out, places)
