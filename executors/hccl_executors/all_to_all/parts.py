"""Places of the parts of a pairwise all-to-all over all ranks."""

from __future__ import annotations

from hccl_executors.all_to_all.layout import UserParts
from hccl_executors.templates.pairwise import Received, Sent
from hccl_py.enums import Buffer
from hccl_py.orchestration import Stream
from hccl_py.plugins.executor import AnyRank
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
