"""Trees: the whole buffer goes from a root to all ranks, or from all ranks to a root, in L =
ceil(log2 p) steps.

d is a rank's distance to the right of the root. In a step of width w, a rank that has the buffer
hands it to the rank w to its right, if there is one:

    wide first, w = 2^(L-1), .., 2, 1   multiples of 2w have the buffer     (HCCL's NHR)
    narrow first, w = 1, 2, .., 2^(L-1) the first w ranks have the buffer   (HCCL's NB)

A reduction goes the way of the first tree backwards, so that every rank reduces what comes from its
right in the order of distance.

Cost for p ranks and n bytes: broadcast L(α+nβ), reduce L(α+nβ+nγ): for small data, because one
transfer pays for all of n. Source: HCCL's public documents (NHR, NB).
"""

from hccl_executors.templates.signals import acknowledged_barrier
from hccl_py.orchestration import Link, Plane, Region, Stream, exchange
from hccl_py.orchestration.exchange import rx_data, tx_data


def tree_broadcast(stream: Stream, plane: Plane, work: Region, root: int) -> None:
    """Leave in `work` of every rank what the root has there; the widest step comes first."""
    p = int(plane.size)
    distance = (plane.id - root) % p
    steps = (p - 1).bit_length()
    for step in stream.steps("broadcast", steps):
        width = 1 << (steps - 1 - step)
        if distance % (2 * width) == width:
            exchange(stream, frm=plane[(plane.id - width) % p], recv=work)
        elif distance % (2 * width) == 0 and distance + width < p:
            exchange(stream, to=plane[(plane.id + width) % p], send=work)


def narrow_tree_broadcast(stream: Stream, plane: Plane, work: Region, root: int) -> None:
    """Leave in `work` of every rank what the root has there; neighbours come first."""
    p = int(plane.size)
    distance = (plane.id - root) % p
    for step in stream.steps("broadcast", (p - 1).bit_length()):
        width = 1 << step
        if distance // width == 1:
            exchange(stream, frm=plane[(plane.id - width) % p], recv=work)
        elif distance < width and distance + width < p:
            exchange(stream, to=plane[(plane.id + width) % p], send=work)


def tree_reduce(
    stream: Stream, plane: Plane, work: Region, root: int, *, meeting: bool = False
) -> None:
    """Leave in `work` of the root the reduction of all ranks' `work`; others hold partial
    results.

    Over RDMA no DataAck says that data has come, as in HCCL: a broadcast that follows says it, or
    partners meet after every step (`meeting`).
    """
    p = int(plane.size)
    distance = (plane.id - root) % p
    for step in stream.steps("reduce", (p - 1).bit_length()):
        width = 1 << step
        if distance % (2 * width) == width:
            _hand_over(stream, plane[(plane.id - width) % p], work, meeting)
        elif distance % (2 * width) == 0 and distance + width < p:
            _add(stream, plane[(plane.id + width) % p], work, meeting)


def _hand_over(stream: Stream, to: Link, work: Region, meeting: bool) -> None:
    if to.rdma:
        to.rx_ack(stream)
        tx_data(stream, to, work, reduce=True)
        if meeting:
            acknowledged_barrier(stream, None, to)
    else:
        exchange(stream, to=to, send=work, reduce=True)


def _add(stream: Stream, frm: Link, work: Region, meeting: bool) -> None:
    if frm.rdma:
        frm.tx_ack(stream)
        rx_data(stream, frm, work, reduce=True)
        if meeting:
            acknowledged_barrier(stream, frm, None)
    else:
        exchange(stream, frm=frm, recv=work, reduce=True)
