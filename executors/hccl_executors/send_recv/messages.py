"""The messages of a call as an executor sends and receives them: peers, places, links."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from hccl_executors.aicpu.seats import AnyChannelRank
from hccl_py.enums import Buffer
from hccl_py.operators.parts import MessageTables, messages_of
from hccl_py.orchestration import Chunks, Region
from hccl_py.plugins.executor import AnyRank, Mode, OpParam
from hccl_py.values import IntArray, PerRank, RankInt, values_of


class Outgoing(NamedTuple):
    """A message that goes out: the data, copied `here` first unless it lies there, where the peer
    reaches it, and the place `there`, in the peer's memory, that a push fills.
    """

    data: Region
    here: Region
    there: Region


class Incoming(NamedTuple):
    """A message that comes in: the place `there`, in the peer's memory, that a pull reads, the
    place `here` where it lands, and where the data belongs, copied unless it is `here` already.
    """

    there: Region
    here: Region
    data: Region


class Queue(NamedTuple):
    """All ranks' messages in one direction, in the order in which they are worked off, as tables
    [rank, k]: the peer, the number of the message, the elements of it that go, from which one on,
    and where the message begins at the peer. There are `number[rank]` of them. Those of a rank to
    itself are `own[rank, k]`, -1 where there are no more.
    """

    peers: IntArray
    messages: IntArray
    counts: IntArray
    starts: IntArray
    places: IntArray
    number: IntArray
    own: IntArray

    @staticmethod
    def of(
        ends: MessageTables, turn: int, limit: int | None, *, largest_first: bool = False
    ) -> Queue:
        """Order by the way to the peer, up (1) or down (-1) through the ranks, which are a circle;
        messages with the same peer keep their order, or the largest comes first. With a limit,
        messages come in slices of so many elements, and empty ones not at all.
        """
        ranks = len(ends.peers)
        to_self = ends.peers == np.arange(ranks)[:, None]
        rank, k = np.nonzero((ends.peers >= 0) & ~to_self)
        counts = ends.counts[rank, k]
        sizes = counts if largest_first else np.zeros_like(counts)
        if limit is not None:
            slices = -(-counts // limit)
            rank, k, sizes = (np.repeat(column, slices) for column in (rank, k, sizes))
            starts = limit * (np.arange(len(rank)) - np.repeat(np.cumsum(slices) - slices, slices))
            counts = np.minimum(np.repeat(counts, slices) - starts, limit)
        else:
            starts = np.zeros_like(counts)
        peers = ends.peers[rank, k]
        order = np.lexsort((-sizes, turn * (peers - rank) % ranks, rank))
        number = np.bincount(rank, minlength=ranks)

        owner, own = np.nonzero(to_self)
        if largest_first:
            own = own[np.lexsort((-ends.counts[owner, own], owner))]

        def table(column: IntArray) -> IntArray:
            return _table(column[order], number)

        return Queue(
            table(peers),
            table(k),
            table(counts),
            table(starts),
            table(ends.places[rank, k]),
            number,
            _table(own, to_self.sum(axis=1)),
        )


def _table(values: IntArray, number: IntArray) -> IntArray:
    """Return values, `number[rank]` of them of each rank, as a row per rank; the rest is -1."""
    table = np.full((len(number), int(number.max(initial=0))), -1, np.int64)
    table[np.arange(table.shape[1]) < number[:, None]] = values
    return table


Messenger = TypeVar("Messenger", bound=AnyRank | AnyChannelRank)


class Mail(Generic[Messenger]):
    """The messages that a rank sends and receives in a round, or, with a limit, in the whole call,
    in slices of so many elements. Those of a pair keep their order, or the largest comes first.
    """

    def __init__(
        self,
        op: OpParam,
        rank: Messenger,
        limit: int | None = None,
        *,
        largest_first: bool = False,
    ) -> None:
        self.sends, self.receives = _queues(op, rank.size, limit, largest_first)
        self._op = op
        self._rank = rank
        self._limited = limit is not None

    def count(self, queue: Queue) -> int:
        """Return the number of messages with peers; splits the batch where ranks differ."""
        return int(PerRank.of(queue.number[self._me]))

    def copy_own(self) -> None:
        """Copy what the rank sends to itself, on main."""
        rank, me = self._rank, self._me
        for k in range(self.sends.own.shape[1]):
            frm, to = PerRank.of(self.sends.own[me, k]), PerRank.of(self.receives.own[me, k])
            if frm >= 0:
                rank.main.copy(rank.user_out[to], rank.user_in[frm])

    def outgoing(self, k: int) -> tuple[RankInt, Region]:
        """Return the receiver and the data of the k-th message that goes out."""
        return self._look_up(self.sends, k, self._rank.user_in)[:2]

    def incoming(self, k: int) -> tuple[RankInt, Region]:
        """Return the sender and the place of the k-th message that comes in."""
        return self._look_up(self.receives, k, self._rank.user_out)[:2]

    @property
    def _me(self) -> Any:
        return values_of(self._rank.id)

    def _look_up(self, queue: Queue, k: int, data: Chunks) -> tuple[RankInt, Region, RankInt]:
        """Return the peer, the data here, and where the message begins there, in bytes."""
        me, unit = self._me, self._op.unit
        message = data[PerRank.of(queue.messages[me, k])]
        if self._limited:
            start = PerRank.of(queue.starts[me, k] * unit)
            message = message[start : start + PerRank.of(queue.counts[me, k] * unit)]
        return PerRank.of(queue.peers[me, k]), message, PerRank.of(queue.places[me, k] * unit)


class Mailbox(Mail[AnyRank]):
    """Messages over links: slices, and messages in op-base mode, go from CCL_In of the sender to
    CCL_Out of the receiver; whole messages in graph mode from input to output.
    """

    def __init__(self, op: OpParam, rank: AnyRank, limit: int | None = None) -> None:
        super().__init__(op, rank, limit)
        self._direct = op.mode is Mode.GRAPH and limit is None

    def sent(self, k: int) -> tuple[RankInt, Outgoing]:
        """Return the receiver and the places of the k-th message that goes out."""
        peer, data, place = self._look_up(self.sends, k, self._rank.user_in)
        if self._direct:
            return peer, Outgoing(data, data, Region(Buffer.USER_OUT, place, data.size))
        ccl = self._rank.ccl_in.head(data.size), self._rank.ccl_out.head(data.size)
        return peer, Outgoing(data, *ccl)

    def received(self, k: int) -> tuple[RankInt, Incoming]:
        """Return the sender and the places of the k-th message that comes in."""
        peer, data, place = self._look_up(self.receives, k, self._rank.user_out)
        if self._direct:
            return peer, Incoming(Region(Buffer.USER_IN, place, data.size), data, data)
        ccl = self._rank.ccl_in.head(data.size), self._rank.ccl_out.head(data.size)
        return peer, Incoming(*ccl, data)


@lru_cache(maxsize=16)
def _queues(op: OpParam, ranks: int, limit: int | None, largest_first: bool) -> tuple[Queue, Queue]:
    """Return the messages sent and the messages received, of all ranks."""
    found = messages_of(op, ranks)
    return (
        Queue.of(found.by_sender, -1, limit, largest_first=largest_first),
        Queue.of(found.by_receiver, 1, limit, largest_first=largest_first),
    )


def ways_of(op: OpParam, ranks: int) -> list[int]:
    """Return the directions of messages: to higher ranks (1), to lower ones (-1)."""
    found = messages_of(op, ranks)
    return [way for way in (1, -1) if (np.sign(found.dst - found.src) == way).any()]


def peers_of(op: OpParam, ranks: int, *ways: int) -> Callable[[int, int], Iterable[int]]:
    """Return the link pattern of a call: exactly the pairs that have a message for each other, to a
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
