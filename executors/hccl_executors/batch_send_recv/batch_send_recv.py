"""BatchSendRecv: any messages, sent by one stream and received by another."""

from __future__ import annotations

from typing import Any

from hccl_executors.send_recv.messages import Mailbox, peers_of
from hccl_executors.templates.pairwise import swap
from hccl_py.executor import OpParam, PlaneRequest, Rank, RankView, ResourceRequest, Topology

__all__ = ["BatchSendRecv"]

UP, DOWN = "flat", "back"
"""The planes of messages to higher and to lower ranks."""


class BatchSendRecv:
    """Any number of messages between any ranks.

    Main copies what a rank sends to itself, then sends, to higher ranks first; a sub stream
    receives, from lower ranks first. Messages of a pair keep their order. Nothing blocks for good:
    a message from a to b waits for an earlier one of a, to a rank above b, or for one that b
    receives earlier, from a rank below a; either way b - a grows, which cannot go on.

    Messages to higher ranks and those to lower ones have links of their own, so that no two streams
    share a connection. Links join only ranks that have a message for each other.
    """

    op = "batch_send_recv"
    algorithm = "level0:NA"

    def suits(self, op: OpParam, topology: Topology) -> bool:
        """Runs everywhere."""
        return True

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """Links to the peers, a stream to receive on; the largest message's round fills a CCL
        buffer.
        """
        return ResourceRequest(
            planes=(
                PlaneRequest(UP, peers_of(op, rank.size, 1)),
                PlaneRequest(DOWN, peers_of(op, rank.size, -1)),
            ),
            sub_streams=1,
            max_count=rank.ccl_bytes // op.unit,
        )

    def orchestrate(self, op: OpParam, rank: Rank[Any, Any]) -> None:
        """Send and receive in orders that fit together."""
        box = Mailbox(op, rank)
        with rank.fork() as (receiver,):
            box.copy_own()
            for k in range(box.count(box.sends)):
                to, sent = box.sent(k)
                link = rank.plane(UP if to > rank.id else DOWN)[to]
                swap(rank.main, link, None, sent, None)
            for k in range(box.count(box.receives)):
                frm, received = box.received(k)
                link = rank.plane(UP if frm < rank.id else DOWN)[frm]
                swap(receiver, None, link, None, received)
