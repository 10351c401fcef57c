"""BatchSendRecv: any messages, sent by one stream and received by another."""

from __future__ import annotations

from hccl_executors.send_recv.messages import Incoming, Mailbox, Outgoing, peers_of
from hccl_executors.sources import like_april
from hccl_py.enums import Buffer
from hccl_py.orchestration import Link, Stream
from hccl_py.plugins.executor import (
    AnyRank,
    BaseExecutor,
    OpParam,
    PlaneRequest,
    RankView,
    ResourceRequest,
    Topology,
)

UP, DOWN = "flat", "back"
"""The planes of messages to higher and to lower ranks."""


class BatchSendRecv(BaseExecutor):
    """Any number of messages between any ranks, pairwise: rank r sends to r - 1, r - 2, .. and
    receives from r + 1, r + 2, .., round the circle of ranks.

    Main copies what a rank sends to itself, then sends; a sub stream receives. Messages of a pair
    keep their order. All have the shortest way left to go, so no rank waits for good: the message
    with the least way down is the next one at both its ends.

    A message goes from the sender's CCL_In to the receiver's CCL_Out, in slices as large as those,
    one message after the other, in graph mode, too; empty messages do not go.

    Messages to higher ranks and those to lower ones have links of their own, so that no two streams
    share a connection. Links join only ranks that have a message for each other.
    """

    op = "batch_send_recv"
    algorithm = "level0:NA"
    fidelity = like_april(
        "coll_send_receive/coll_batch_send_recv_executor", "temp_send_recv/send_receive"
    )

    def suits(self, op: OpParam, topology: Topology) -> bool:
        return True

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """Links to the peers on both planes, all by RDMA where some have to be; a stream to receive
        on. There are no rounds.
        """
        peers, rdma = peers_of(op, rank.size, 1, -1), rank.topology.has_rdma
        ccl = (Buffer.CCL_IN, Buffer.CCL_OUT)
        return ResourceRequest(
            planes=tuple(PlaneRequest(level, peers, *ccl, rdma=rdma) for level in (UP, DOWN)),
            sub_streams=1,
        )

    def orchestrate(self, op: OpParam, rank: AnyRank) -> None:
        """Send and receive in orders that fit together."""
        box = Mailbox(op, rank, rank.ccl_bytes // op.unit)
        box.copy_own()
        if rank.size == 1:
            return
        with rank.fork() as (receiver,):
            for k in range(box.count(box.sends)):
                to, sent = box.sent(k)
                link = rank.plane(UP if to > rank.id else DOWN)[to]
                _send(rank.main, link, sent)
            for k in range(box.count(box.receives)):
                frm, received = box.received(k)
                link = rank.plane(UP if frm < rank.id else DOWN)[frm]
                _receive(receiver, link, received)


def _send(stream: Stream, link: Link, sent: Outgoing) -> None:
    """Stage a slice in CCL_In; let the peer read it, or push it to the peer's CCL_Out."""
    stream.copy(sent.here, sent.data)
    if link.rdma:
        link.rx_ack(stream)
        stream.copy(link.remote(sent.there), sent.here)
        link.tx_data_signal(stream)
        link.rx_data_ack(stream)
    else:
        link.tx_ack(stream)
        link.rx_data_signal(stream)


def _receive(stream: Stream, link: Link, received: Incoming) -> None:
    """Take a slice to CCL_Out, say so, and copy it to the output."""
    if link.rdma:
        link.tx_ack(stream)
        link.rx_data_signal(stream)
        link.tx_data_ack(stream)
    else:
        link.rx_ack(stream)
        stream.copy(received.here, link.remote(received.there))
        link.tx_data_signal(stream)
    stream.copy(received.data, received.here)
