"""Signals that HCCL's templates share, without data."""

from hccl_py.orchestration import Stream
from hccl_py.orchestration.transport import Link


def barrier(stream: Stream, prev: Link | None, following: Link | None) -> None:
    """Meet both neighbours: Ack to and fro, then DataSignal; one of them may be missing. HCCL's
    ExecuteBarrier.
    """
    if prev is not None:
        prev.tx_ack(stream)
    if following is not None:
        following.rx_ack(stream)
        following.tx_data_signal(stream)
    if prev is not None:
        prev.rx_data_signal(stream)


def acknowledged_barrier(stream: Stream, prev: Link | None, following: Link | None) -> None:
    """Meet both neighbours and acknowledge it by DataAck: the barrier of HCCL's NHR."""
    barrier(stream, prev, following)
    if prev is not None:
        prev.tx_data_ack(stream)
    if following is not None:
        following.rx_data_ack(stream)


def data_received(stream: Stream, partner: Link) -> None:
    """Say that data has arrived, and hear it: HCCL's DataReceivedAck of both ends."""
    if partner.rdma:
        partner.tx_data_ack(stream)
        partner.rx_data_ack(stream)
    else:
        barrier(stream, partner, partner)
