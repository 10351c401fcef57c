"""NB, nonuniform Bruck: all ranks in L = ceil(log2 p) steps, for any p, and every chunk is moved
p - 1 times in all.

    reduce-scatter, step s, w = 2^s: to r + w, from r - w; send chunks r + w, r + 3w, .., receive
                                     and reduce chunks r, r + 2w, ..; (p - 1 + w) div 2w of them
    all-gather,     step s, w = 2^s: to r + w, from r - w; send chunks r, r - 1, .., receive chunks
                                     r - w, r - w - 1, ..; w of them, in the last step p - w
    scatter,        step s, w = 2^s: the first w ranks from the root on send to r + w the chunks of
                                     ranks r + w, r + 3w, .. as far as there are any

Chunks go one by one, also where they are neighbours. Empty ones do not go, and a rank with none to
send or to receive in a step has no signals for it. Links are those of NHR; its chunks are ordered
the other way round. All-reduce cuts no chunk of less than 128 KiB: small data is one chunk, which
is reduced over a tree and comes back over another one.

Cost for p ranks and n bytes over RDMA: reduce-scatter Lα + (p-1)/p·n(β+γ); scatter
(2L+1)α + (p-1)/p·nβ, all-gather without the α of scatter's signals back and of its barrier: Lα;
all-reduce the sum of its two halves, of one chunk 2Lα + Ln(2β+γ); broadcast 3Lα + 2(p-1)/p·nβ, over
a tree L(α+nβ). Over SDMA a step of reduce-scatter or all-gather ends with a barrier, so its α is
two; scatter takes 2α, broadcast (2L+1)α.
Source: HCCL's public documents and code (NB).
"""

from typing import NamedTuple

from hccl_executors.templates.signals import barrier
from hccl_executors.templates.tree import narrow_tree_broadcast
from hccl_py.orchestration import Chunks, Link, Plane, Region, Stream
from hccl_py.orchestration.exchange import rx_data, tx_data
from hccl_py.orchestration.region import SLICE_ALIGN, pieces
from hccl_py.values import PerBool, RankInt, values_of

LATENCY_US = 60
"""What HCCL counts for a step when it weighs the tree against parts."""

LINK_GBPS = 20.0
"""GB/s that HCCL counts for the wire of 910B and 910_93."""


SMALL_SLICE = 128 << 10
"""Bytes of all-reduce's slices up to which they are rounded up to a multiple of this."""


class _Step(NamedTuple):
    """The chunks that a rank sends and receives in a step, and whether they have any bytes."""

    send: list[Region]
    recv: list[Region]
    sends: bool
    receives: bool


def nb_reduce_scatter(stream: Stream, plane: Plane, chunks: Chunks) -> None:
    """Leave in chunk r of rank r the reduction of all ranks' chunk r; other chunks hold partial
    results.
    """
    _run(stream, plane, "reduce-scatter", _scattering(plane, chunks))


def nb_all_gather(stream: Stream, plane: Plane, chunks: Chunks) -> None:
    """Leave in every rank all chunks; rank r starts with chunk r."""
    _run(stream, plane, "all-gather", _gathering(plane, chunks))


def nb_all_reduce(stream: Stream, plane: Plane, work: Region) -> None:
    """Leave in `work` of every rank the reduction of all ranks' `work`."""
    if work.size == 0:
        return
    is_small = bool(work.size <= int(plane.size) * SMALL_SLICE)
    chunks = work.split(plane.size, SMALL_SLICE if is_small else SLICE_ALIGN)
    # Batches part here: better before much is recorded.
    scattering, gathering = _scattering(plane, chunks), _gathering(plane, chunks)
    _run(stream, plane, "reduce-scatter", scattering)
    _run(stream, plane, "all-gather", gathering)


def _scattering(plane: Plane, chunks: Chunks) -> list[_Step]:
    """Return the steps of reduce-scatter."""
    p, found = int(plane.size), []
    for width in _widths(p):
        count = (p - 1 + width) // (2 * width)
        send = _series(chunks, plane.id + width, 2 * width, count)
        found.append(_step(send, _series(chunks, plane.id, 2 * width, count)))
    return found


def _gathering(plane: Plane, chunks: Chunks) -> list[_Step]:
    """Return the steps of all-gather."""
    p, found = int(plane.size), []
    for width in _widths(p):
        count = min(width, p - width)
        send = _series(chunks, plane.id, -1, count)
        found.append(_step(send, _series(chunks, plane.id - width, -1, count)))
    return found


def _widths(p: int) -> list[int]:
    return [1 << step for step in range((p - 1).bit_length())]


def _series(chunks: Chunks, first: RankInt, stride: int, count: int) -> list[Region]:
    """Return chunks first, first + stride, .. one by one; of bundles all that they have."""
    taken = (chunks[(first + stride * i) % len(chunks)] for i in range(count))
    return [piece for one in taken for piece in pieces(one)]


def _step(send: list[Region], recv: list[Region]) -> _Step:
    return _Step(send, recv, _is_anything(send), _is_anything(recv))


def _is_anything(regions: list[Region]) -> bool:
    """True if there are any bytes; batches part where only some ranks have them."""
    sizes = [values_of(region.size) for region in regions]
    return bool(PerBool.of(sum(sizes) > 0))


def _run(stream: Stream, plane: Plane, name: str, steps: list[_Step]) -> None:
    p, reduce = int(plane.size), name == "reduce-scatter"
    for number in stream.steps(name, len(steps)):
        right = plane[(plane.id + (1 << number)) % p]
        left = plane[(plane.id - (1 << number)) % p]
        _exchange(stream, right, left, steps[number], reduce=reduce)


def _exchange(stream: Stream, right: Link, left: Link, step: _Step, *, reduce: bool) -> None:
    """Send to the right and receive from the left. The receiver says first that it may come; last
    it says that data has come, over SDMA with a barrier.
    """
    if step.receives:
        left.tx_ack(stream)
    if step.sends:
        right.rx_ack(stream)
        tx_data(stream, right, step.send, reduce=reduce)
    if step.receives:
        rx_data(stream, left, step.recv, reduce=reduce)
        if left.rdma:
            left.tx_data_ack(stream)
    if step.sends and right.rdma:
        right.rx_data_ack(stream)
    barrier(stream, None if left.rdma else left, None if right.rdma else right)


def nb_scatter(stream: Stream, plane: Plane, chunks: Chunks, root: int) -> None:
    """Leave chunk r of the root in chunk r of rank r; ranks on the way hold those of ranks behind
    them, too. Neighbours meet at the end.

    Of 7, 11, 13 and some more ranks HCCL's code also sends chunks that the sender does not have;
    they are left out.
    """
    _scatter(stream, plane, chunks, root)
    p = int(plane.size)
    if p > 1:
        barrier(stream, plane[(plane.id - 1) % p], plane[(plane.id + 1) % p])


def _scatter(stream: Stream, plane: Plane, chunks: Chunks, root: int) -> None:
    p = int(plane.size)
    distance = (plane.id - root) % p
    for step in stream.steps("scatter", (p - 1).bit_length()):
        width = 1 << step
        if distance < width and distance + width < p:
            to = plane[(plane.id + width) % p]
            to.rx_ack(stream)
            tx_data(stream, to, _behind(plane, chunks, distance, plane.id + width, width))
            to.rx_data_signal(stream)
        elif distance // width == 1:
            frm = plane[(plane.id - width) % p]
            frm.tx_ack(stream)
            rx_data(stream, frm, _behind(plane, chunks, distance - width, plane.id, width))
            frm.tx_data_signal(stream)


def nb_broadcast(
    stream: Stream,
    plane: Plane,
    work: Region,
    root: int,
    bandwidth: float = LINK_GBPS,
    *,
    share: int = 1,
) -> None:
    """Leave in `work` of every rank what the root has there: small data over a tree, large data in
    parts, as HCCL weighs the `share`-th part of it for links of `bandwidth` GB/s.
    """
    p = int(plane.size)
    whole = p == 2 or bool(work.size < share * nb_tree_limit(p, bandwidth))
    (narrow_tree_broadcast if whole else nb_broadcast_in_parts)(stream, plane, work, root)


def nb_broadcast_in_parts(stream: Stream, plane: Plane, work: Region, root: int) -> None:
    """Leave in `work` of every rank what the root has there: scatter, then all-gather."""
    chunks = work.split(plane.size)
    _scatter(stream, plane, chunks, root)
    nb_all_gather(stream, plane, chunks)


def nb_tree_limit(p: int, bandwidth: float) -> int:
    """Return the bytes from which on HCCL broadcasts in parts, for links of `bandwidth` GB/s; of 2
    ranks it never does.
    """
    steps = (p - 1).bit_length()
    weight = p if p <= 4 else (2 * steps - 2) / (steps - 2)
    return round(weight * bandwidth * LATENCY_US * 1000)


def _behind(
    plane: Plane, chunks: Chunks, distance: RankInt, first: RankInt, width: int
) -> list[Region]:
    """Return the chunks that the rank at this distance hands over in a step: `first` and every
    2·width-th farther off, as far as the ranks go.
    """
    count = int((plane.size - 1 - distance + width) // (2 * width))
    return _series(chunks, first, 2 * width, count)
