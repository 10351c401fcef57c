"""Doubling: partners exchange whole buffers, until everybody has everything; powers of two only.

    step s: partner r xor 2^s; copy the buffer beside (to the other CCL buffer, or scratch in graph
            mode), because the partner reads it while it changes; add the partner's to it

Both partners add the same two numbers, so all ranks end with the same bits. The hardware must
reduce inline.

Cost for p = 2^k ranks and n bytes: k(α+nβ+nγ), for small data. Source: HCCL's public documents
(310P; 910A with 4 or 8 ranks and up to 1 MB).
"""

from hccl_py.orchestration import Plane, Region, Stream
from hccl_py.orchestration.transport import Link

__all__ = ["doubling_all_reduce"]


def doubling_all_reduce(stream: Stream, plane: Plane, work: Region) -> None:
    """Leave in `work` of every rank the reduction of all ranks' `work`."""
    p = int(plane.size)
    if p & (p - 1):
        raise ValueError(f"doubling needs a power of two, and plane {plane.name} has {p} members")
    for step in stream.steps("all-reduce", p.bit_length() - 1):
        _add(stream, plane[plane.id ^ (1 << step)], work)


def _add(stream: Stream, partner: Link, work: Region) -> None:
    beside = partner.rank.landing(work)
    stream.copy(beside, work)
    partner.tx_ack(stream)  # my copy is in place, and mine may be added to
    partner.rx_ack(stream)
    if partner.rdma:
        stream.reduce(partner.remote(work), beside)
    else:
        stream.reduce(work, partner.remote(beside))
    partner.tx_data_signal(stream)
    partner.rx_data_signal(stream)
    if partner.rdma:
        partner.tx_data_ack(stream)
        partner.rx_data_ack(stream)
