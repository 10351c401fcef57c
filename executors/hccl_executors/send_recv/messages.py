"""The messages of a call as an executor sends and receives them: peers, places, links."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from hccl_executors.templates.pairwise import Received, Sent
from hccl_py.enums import Buffer
from hccl_py.executor import Mode, OpParam, Rank
from hccl_py.operators.parts import MessageTables, messages_of
from hccl_py.orchestration import Region
from hccl_py.values import IntArray, PerRank, RankInt, values_of

__all__ = ["Mailbox", "Queue", "peers_of"]


class Queue(NamedTuple):
    """One rank's messages in one direction, in the order in which they are worked off: the k-th is
    message `order[rank, k]` of those in `ends`; there are `number[rank]` with peers, those of a
    rank to itself come after them, `own[rank]` in all.
    """

    ends: MessageTables
    order: IntArray
    number: IntArray
    own: IntArray

    @staticmethod
    def of(ends: MessageTables, decreasing: bool) -> Queue:
        """Order by peer; messages with the same peer keep their order."""
        ranks = len(ends.peers)
        to_self = ends.peers == np.arange(ranks)[:, None]
        away = (ends.peers >= 0) & ~to_self
        key = np.where(away, -ends.peers if decreasing else ends.peers, ranks)
        key[ends.peers < 0] = ranks + 1
        order = np.argsort(key, axis=1, kind="stable")
        return Queue(ends, order, away.sum(axis=1), to_self.sum(axis=1))


class Mailbox:
    """What a rank sends and receives in a round.

    Op-base mode: from CCL_In of the sender; a pull reads it into the output, a push lands in
    CCL_Out. Graph mode: from input to output.
    """

    def __init__(self, op: OpParam, rank: Rank[Any, Any]) -> None:
        self.sends, self.receives = _queues(op, rank.size)
        self._op = op
        self._rank = rank

    def count(self, queue: Queue) -> int:
        """Return how many messages there are with peers; splits the batch where ranks differ."""
        return int(PerRank.of(queue.number[self._me]))

    def copy_own(self) -> None:
        """Copy what the rank sends to itself, on main."""
        rank = self._rank
        for k in range(int(PerRank.of(self.sends.own[self._me]))):
            to, frm = (
                PerRank.of(queue.order[self._me, queue.number[self._me] + k])
                for queue in (self.receives, self.sends)
            )
            rank.main.copy(rank.user_out[to], rank.user_in[frm])

    def sent(self, k: int) -> tuple[RankInt, Sent]:
        """Return the receiver and the places of the k-th message that goes out."""
        peer, index, place = self._look_up(self.sends, k)
        data = self._rank.user_in[index]
        if self._op.mode is Mode.GRAPH:
            here = [data]
            return peer, Sent(here, here, [Region(Buffer.USER_OUT, place, data.size)])
        ccl = self._rank.ccl_in.head(data.size), self._rank.ccl_out.head(data.size)
        return peer, Sent([data], [ccl[0]], [ccl[1]])

    def received(self, k: int) -> tuple[RankInt, Received]:
        """Return the sender and the places of the k-th message that comes in."""
        peer, index, place = self._look_up(self.receives, k)
        data = self._rank.user_out[index]
        if self._op.mode is Mode.GRAPH:
            here = [data]
            return peer, Received([Region(Buffer.USER_IN, place, data.size)], here, here)
        ccl = self._rank.ccl_in.head(data.size), self._rank.ccl_out.head(data.size)
        return peer, Received([ccl[0]], [ccl[1]], [data])

    @property
    def _me(self) -> Any:
        return values_of(self._rank.id)

    def _look_up(self, queue: Queue, k: int) -> tuple[RankInt, RankInt, RankInt]:
        at = queue.order[self._me, k]
        peers, places = queue.ends.peers[self._me, at], queue.ends.places[self._me, at]
        return PerRank.of(peers), PerRank.of(at), PerRank.of(places * self._op.unit)


@lru_cache(maxsize=16)
def _queues(op: OpParam, ranks: int) -> tuple[Queue, Queue]:
    """Return what is sent and what is received, of all ranks."""
    found = messages_of(op, ranks)
    return Queue.of(found.by_sender, True), Queue.of(found.by_receiver, False)


def peers_of(op: OpParam, ranks: int, *ways: int) -> Callable[[int, int], Iterable[int]]:
    """Return the link pattern of a call: exactly those who have a message for each other, to a
    higher rank (1), to a lower one (-1) or either way.
    """
    found = messages_of(op, ranks)
    listed = np.isin(np.sign(found.dst - found.src), ways)
    src, dst = found.src[listed], found.dst[listed]
    keys = np.unique(np.concatenate([src * ranks + dst, dst * ranks + src]))
    owners, peers = np.divmod(keys, ranks)
    first = np.searchsorted(owners, np.arange(ranks + 1)).tolist()

    def peers_of_member(index: int, size: int) -> list[int]:
        mine: list[int] = peers[first[index] : first[index + 1]].tolist()
        return mine

    return peers_of_member
