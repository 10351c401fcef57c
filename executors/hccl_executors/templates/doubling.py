"""Doubling: partners exchange whole buffers, until every rank has everything; powers of two only.

    step s: partner r xor 2^s; copy the buffer beside (to the other CCL buffer, or scratch in graph
            mode), because the partner reads it while it changes; add the partner's to it

Both partners add the same two numbers, so all ranks end with the same bits. The hardware must
reduce inline.

Beside: the partner's buffer is brought beside, by a read or an RDMA write, and added from there; so
links need not reduce, and memory does not change while it is read.

Direct: the sum is not staged but comes to be in user memory, with SDMA links and up to 8 ranks.

    before   copy the data to CCL_In
    step 1   add the data to the partner's CCL_In; the only step of 2 ranks reads, as the last one
    step 2   of 8 ranks: copy CCL_In to CCL_Out, add the partner's CCL_In to it
    last     copy the sum to user memory, add the partner's to it

Cost for p = 2^k ranks and n bytes: k(α+nβ+nγ), for small data. Source: HCCL's public documents
(310P; 910A with 4 or 8 ranks and up to 1 MB), AllReduceDoublingDirect (hcomm b5f3e5b,
alg_template/temp_all_reduce) and AllReduceDoublingLocalReduce (hcomm 8958adb, likewise).
"""

from hccl_py.orchestration import Plane, Region, Stream, exchange
from hccl_py.orchestration.transport import Link
from hccl_py.plugins.executor import AnyRank


def doubling_all_reduce(stream: Stream, plane: Plane, work: Region) -> None:
    """Leave in `work` of every rank the reduction of all ranks' `work`."""
    for step in stream.steps("all-reduce", _steps(plane)):
        _add(stream, plane[plane.id ^ (1 << step)], work)


def doubling_all_reduce_beside(stream: Stream, plane: Plane, work: Region) -> None:
    """Leave in `work` of every rank the reduction of all ranks' `work`, in a CCL buffer; the same
    place of the other one takes the partners'.
    """
    for step in stream.steps("all-reduce", _steps(plane)):
        partner = plane[plane.id ^ (1 << step)]
        beside = partner.rank.landing(work)
        exchange(stream, partner, partner, work, beside, source=work, land=beside)
        stream.reduce(work, beside)


def _steps(plane: Plane) -> int:
    p = int(plane.size)
    if p & (p - 1):
        raise ValueError(f"doubling needs a power of two, and plane {plane.name} has {p} members")
    return p.bit_length() - 1


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


def direct_doubling_all_reduce(rank: AnyRank, plane: Plane) -> None:
    """Leave in user_out the reduction of all ranks' user_in; 2, 4 or 8 ranks."""
    main, data, total = rank.main, rank.user_in, rank.user_out
    shown = rank.ccl_in.head(data.size)
    main.copy(shown, data)
    steps = int(plane.size).bit_length() - 1
    for step in main.steps("all-reduce", steps):
        partner, is_last = plane[plane.id ^ (1 << step)], step == steps - 1
        if not step and not is_last:
            with partner.handshake(main):
                main.reduce(partner.remote(shown), data)
            continue
        into = total if is_last else rank.ccl_out.head(data.size)
        start = shown if step else data
        if not (rank.is_in_place and start is data):
            main.copy(into, start)
        with partner.handshake(main):
            main.reduce(into, partner.remote(shown))
        shown = into
