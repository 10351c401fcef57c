"""Star: the root talks to all other ranks, one after the other where it must, at once where it can.

    broadcast, scatter: the root offers all others their data at once
    gather:             all others offer the root their data at once
    reduce:             the root takes one rank's buffer after the other, in rank order, so that
                        sums do not depend on timing
    all-reduce:         reduce to rank 0, then broadcast: the parameter server

Cost for p ranks and n bytes: α + nβ as HCCL counts it, one logical step. On SDMA links broadcast
α+nβ, scatter α+nβ/p, gather α+(p-1)/p·nβ, reduce α+(p-1)n(β+γ), all-reduce 2α+pnβ+(p-1)nγ. Source:
HCCL's public documents (star, for communicators with CPU ranks); the parameter server from the
papers on data parallel training.
"""

from collections.abc import Callable, Iterable

from hccl_py.orchestration import Chunks, Plane, Region, Stream, exchange
from hccl_py.orchestration.transport import Link


def star_pattern(root: int) -> Callable[[int, int], Iterable[int]]:
    """Return the links of a star: between the root and each other rank."""

    def peers(index: int, size: int) -> Iterable[int]:
        center = root % size
        return [i for i in range(size) if i != center] if index == center else [center]

    return peers


def star_broadcast(stream: Stream, plane: Plane, work: Region, root: int) -> None:
    """Leave in `work` of every rank what the root has there."""
    with stream.phase("broadcast"):
        if plane.id == root:
            _send(stream, [(plane[i], work) for i in _others(plane, root)])
        else:
            exchange(stream, frm=plane[root], recv=work)


def star_scatter(stream: Stream, plane: Plane, chunks: Chunks, root: int) -> None:
    """Leave chunk r of the root in chunk r of rank r."""
    with stream.phase("scatter"):
        if plane.id == root:
            _send(stream, [(plane[i], chunks[i]) for i in _others(plane, root)])
        else:
            exchange(stream, frm=plane[root], recv=chunks[plane.id])


def star_gather(stream: Stream, plane: Plane, chunks: Chunks, root: int) -> None:
    """Leave chunk r of rank r in chunk r of the root."""
    with stream.phase("gather"):
        if plane.id == root:
            _receive(stream, [(plane[i], chunks[i]) for i in _others(plane, root)])
        else:
            exchange(stream, to=plane[root], send=chunks[plane.id])


def star_reduce(stream: Stream, plane: Plane, work: Region, root: int) -> None:
    """Leave in `work` of the root the reduction of all ranks' `work`; others keep theirs."""
    with stream.phase("reduce"):
        if plane.id == root:
            for i in _others(plane, root):
                exchange(stream, frm=plane[i], recv=work, reduce=True)
        else:
            exchange(stream, to=plane[root], send=work, reduce=True)


def star_all_reduce(stream: Stream, plane: Plane, work: Region) -> None:
    """Leave in `work` of every rank the reduction of all ranks' `work`; rank 0 serves."""
    star_reduce(stream, plane, work, root=0)
    star_broadcast(stream, plane, work, root=0)


def _others(plane: Plane, root: int) -> list[int]:
    return [i for i in range(int(plane.size)) if i != root]


def _send(stream: Stream, parts: list[tuple[Link, Region]]) -> None:
    """Send every other rank its part: the root's end of one exchange with each, side by side."""
    for link, _ in parts:
        if not link.rdma:
            link.tx_ack(stream)  # you may read mine
    for link, part in parts:
        if link.rdma:
            link.rx_ack(stream)
            stream.copy(link.remote(part), part)
            link.tx_data_signal(stream)
    for link, _ in parts:
        if link.rdma:
            link.rx_data_ack(stream)
        else:
            link.rx_data_signal(stream)


def _receive(stream: Stream, parts: list[tuple[Link, Region]]) -> None:
    """Receive every other rank's part: the root's end of one exchange with each, side by side."""
    for link, _ in parts:
        if link.rdma:
            link.tx_ack(stream)  # you may write into mine
    for link, part in parts:
        if link.rdma:
            link.rx_data_signal(stream)
            link.tx_data_ack(stream)
        else:
            link.rx_ack(stream)
            stream.copy(part, link.remote(part))
            link.tx_data_signal(stream)
