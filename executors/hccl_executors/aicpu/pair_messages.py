"""Executors of messages between pairs of ranks, by way of the start of the HCCL buffer.

HCCL: InsSendExecutor, InsRecvExecutor and InsV2BatchSendRecvExecutor, which have no template.
"""

from __future__ import annotations

import numpy as np

from hccl_executors.aicpu.duplex import (
    NOTIFIES,
    recv_read,
    recv_write,
    send_read,
    send_recv_write,
    send_write,
)
from hccl_executors.aicpu.on_aicpu import TRANSFER, OnAicpu
from hccl_executors.aicpu.seats import AnyChannelRank, post_sync, pre_sync
from hccl_executors.send_recv.messages import Mail, peers_of
from hccl_executors.sources import like_ascend950
from hccl_py.plugins.executor import ChannelRequest, ChannelResources, OpParam, RankView
from hccl_py.values import PerRank, RankInt, values_of


class AicpuSendSole(OnAicpu):
    """Send at one rank and, as AicpuRecvSole, receive at the other, as a recording holds both ends.

    The sender writes into the receiver's buffer, which copies that to its output. A rank that sends
    one message and receives another says that its buffer is ready before it waits, so that rings do
    not block; in HCCL these are two calls.
    """

    op = "send_recv"
    algorithm = "level0:NA"
    fidelity = like_ascend950("send/executor/ins_send_executor", "recv/executor/ins_recv_executor")

    def resources(self, op: OpParam, rank: RankView) -> ChannelResources:
        return ChannelResources(
            channels=tuple(ChannelRequest(peer, NOTIFIES) for peer in _peers(op, rank)),
            max_count=_most(op, rank),
        )

    def orchestrate(self, op: OpParam, rank: AnyChannelRank) -> None:
        """Send and receive one message at most."""
        mail, main = Mail(op, rank), rank.main
        mail.copy_own()
        sends, receives = mail.count(mail.sends), mail.count(mail.receives)
        if sends:
            to, data = mail.outgoing(0)
            tx, moves = rank.channel(to), [(rank.buffer.head(data.size), data)]
        if receives:
            source, result = mail.incoming(0)
            rx = rank.channel(source)
        if sends and receives:
            send_recv_write(main, tx, rx, moves)
        elif sends:
            send_write(main, tx, moves)
        elif receives:
            recv_write(main, rx)
        if receives:
            main.copy(result, rank.buffer.head(result.size))


class AicpuBatchSendRecvSoleMesh(OnAicpu):
    """Any number of messages between any ranks, pairwise: main sends to the ranks below, from the
    nearest on, while a second thread receives from those above. Both go round the circle of ranks,
    and of a pair the largest message comes first.

    The sender copies a slice to its buffer, and the receiver reads it right to its output. A pair
    has two channels: one for messages to the higher rank, and one for those to the lower.
    """

    op = "batch_send_recv"
    algorithm = "level0:NA"
    fidelity = like_ascend950("batch_send_recv/executor/ins_v2_batch_send_recv_executor")

    def resources(self, op: OpParam, rank: RankView) -> ChannelResources:
        """Channels to the peers, and a thread to receive on. There are no rounds."""
        peers = _peers(op, rank)
        return ChannelResources(
            channels=tuple(ChannelRequest(peer, NOTIFIES) for peer in peers for _ in range(2)),
            threads=(1, 1),
        )

    def orchestrate(self, op: OpParam, rank: AnyChannelRank) -> None:
        """Send and receive in orders that fit together."""
        mail = Mail(op, rank, _most(op, rank), largest_first=True)
        mail.copy_own()
        main, receiver = rank.threads
        pre_sync(main, [receiver])
        for k in range(mail.count(mail.sends)):
            to, data = mail.outgoing(k)
            main.copy(rank.buffer.head(data.size), data)
            send_read(main, rank.channel(to, number=int(to > rank.id)))
        for k in range(mail.count(mail.receives)):
            source, data = mail.incoming(k)
            channel = rank.channel(source, number=int(source < rank.id))
            recv_read(receiver, channel, [(data, rank.buffer.head(data.size))])
        post_sync(main, [receiver], [0])


def _most(op: OpParam, rank: RankView | AnyChannelRank) -> int:
    """Return the elements that one transfer takes at most."""
    return min(TRANSFER, rank.ccl_bytes) // op.unit


def _peers(op: OpParam, rank: RankView) -> list[RankInt]:
    """Return the ranks with which messages are exchanged, in order; splits the batch where there
    are not equally many.
    """
    peers_of_member = peers_of(op, rank.size, 1, -1)
    ids = np.atleast_1d(values_of(rank.id)).tolist()
    rows = [peers_of_member(index, rank.size) for index in ids]
    count = int(PerRank.of(np.array([len(list(row)) for row in rows])))
    table = np.array(rows, np.int64).reshape(len(ids), count)
    return [PerRank.of(column) for column in table.T]
