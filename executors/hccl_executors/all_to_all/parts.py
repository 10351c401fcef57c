"""Where all-to-all parts lie: through slots of CCL memory (BCopy), or at known offsets (ZCopy)."""

from __future__ import annotations

from typing import Any

from hccl_executors.all_to_all.layout import PartTable, UserParts
from hccl_executors.templates.pairwise import Received, Sent
from hccl_py.enums import Buffer
from hccl_py.executor import Mode, Rank
from hccl_py.orchestration import Chunks, Region, Stream
from hccl_py.values import RankInt

__all__ = ["Direct", "Slots"]


class Slots:
    """BCopy: a part is copied to CCL_In before it goes and lands in CCL_Out where it is pushed.

    One slot for all parts, which go one after the other, or, with `each` bytes, one for each rank.
    """

    def __init__(self, rank: Rank[Chunks, Chunks], each: int | None = None) -> None:
        self._rank = rank
        self._each = each

    def sent(self, to: RankInt) -> Sent:
        data = self._rank.user_in[to]
        here, there = self._slot(Buffer.CCL_IN, to, data), self._slot(Buffer.CCL_OUT, None, data)
        return Sent([data], [here], [there])

    def received(self, frm: RankInt) -> Received:
        data = self._rank.user_out[frm]
        there, here = self._slot(Buffer.CCL_IN, None, data), self._slot(Buffer.CCL_OUT, frm, data)
        return Received([there], [here], [data])

    def keep(self, stream: Stream) -> None:
        stream.copy(self._rank.user_out[self._rank.id], self._rank.user_in[self._rank.id])

    def _slot(self, buffer: Buffer, peer: RankInt | None, data: Region) -> Region:
        """Return the slot of a peer, or of this rank in the memory of peers."""
        owner = self._rank.id if peer is None else peer
        return Region(buffer, 0 if self._each is None else owner * self._each, data.size)


class Direct:
    """ZCopy: parts lie as in user memory, so that they are copied together and offsets are known.

    Graph mode: user memory itself. Op-base mode: at the same places in the CCL buffers; what is
    pulled goes right to the output.
    """

    def __init__(self, rank: Rank[Any, Any], layout: UserParts) -> None:
        self._rank = rank
        self._user = layout
        self._graph = rank.mode is Mode.GRAPH
        self._in, self._out = layout
        if not self._graph:
            self._in = layout.sends._replace(buffer=Buffer.CCL_IN)
            self._out = layout.receives._replace(buffer=Buffer.CCL_OUT)

    def stage(self) -> None:
        """Copy the input to where peers reach it, all at once where it has no gaps."""
        if not self._graph and self._rank.size > 1:
            self._rank.main.copy(self._all(self._in), self._all(self._user.sends))

    def sent(self, to: RankInt) -> Sent:
        here = [self._in.at(self._rank.id, to)]
        return Sent(here, here, [self._out.at(to, self._rank.id)])

    def received(self, frm: RankInt) -> Received:
        data = [self._user.receives.at(self._rank.id, frm)]
        here = data if self._graph else [self._out.at(self._rank.id, frm)]
        return Received([self._in.at(frm, self._rank.id)], here, data)

    def keep(self, stream: Stream) -> None:
        me = self._rank.id
        stream.copy(self._user.receives.at(me, me), self._user.sends.at(me, me))

    def _all(self, table: PartTable) -> list[Region]:
        return table.run(self._rank.id, 0, self._rank.size, table.is_gapless)
