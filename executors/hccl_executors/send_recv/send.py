"""SendExecutor: one message from each rank to at most one other."""

from __future__ import annotations

from typing import Any

from hccl_executors.send_recv.messages import Mailbox, peers_of
from hccl_executors.templates.pairwise import swap
from hccl_py.executor import OpParam, PlaneRequest, Rank, RankView, ResourceRequest, Topology

__all__ = ["SendExecutor"]


class SendExecutor:
    """Send and Recv: HCCL's SendExecutor and ReceiveExecutor, as a recording holds both ends.

    Op-base mode: the sender copies to its CCL_In; over SDMA the receiver reads that into its
    output, over RDMA it is pushed to the receiver's CCL_Out. One direct copy in graph mode. A rank
    that does both posts for both before it waits, so that rings do not block.
    """

    op = "send_recv"
    algorithm = "level0:NA"

    def suits(self, op: OpParam, topology: Topology) -> bool:
        """Runs everywhere."""
        return True

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """Links to the peers; a round fills a CCL buffer."""
        return ResourceRequest(
            planes=(PlaneRequest("flat", peers_of(op, rank.size, 1, -1)),),
            max_count=rank.ccl_bytes // op.unit,
        )

    def orchestrate(self, op: OpParam, rank: Rank[Any, Any]) -> None:
        """Send and receive at once."""
        box = Mailbox(op, rank)
        box.copy_own()
        to = frm = sent = received = None
        if box.count(box.sends):
            peer, sent = box.sent(0)
            to = rank.flat[peer]
        if box.count(box.receives):
            peer, received = box.received(0)
            frm = rank.flat[peer]
        swap(rank.main, to, frm, sent, received)
