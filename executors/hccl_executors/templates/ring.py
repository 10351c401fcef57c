"""Ring: every rank talks to its two neighbours only.

In every step a rank sends one chunk to its right neighbour and takes another one from its left
neighbour, so no two ranks touch the same chunk at once.

    reduce-scatter, step s: send chunk r - 1 - s, receive and reduce chunk r - 2 - s
    all-gather,     step s: send chunk r - s,     receive chunk r - 1 - s

Rank r ends the first with chunk r, and begins the second with it. Over all links a rank first tells
the left one that it may send (Ack), then lets the right one have a chunk (tx_data), then takes what
comes (rx_data); the next Ack says that it has it. A barrier between neighbours ends the ring.

With a root, data goes right from it, or towards it; d is a rank's distance to the right of the
root:

    broadcast: p chunks, one after the other; a rank passes on chunk c before it receives c + 1
    scatter:   the root sends the chunk of the rank farthest off first, rank d passes on p - d - 1
    gather:    every rank sends its own chunk first, then the d - 1 that come from the left
    reduce:    the whole buffer goes from d = 1 to the root, every rank adds its own

Cost for p ranks and n bytes, the barrier's α included: reduce-scatter pα + (p-1)/p·n(β+γ),
all-gather pα + (p-1)/p·nβ, all-reduce (2p-1)α + (p-1)/p·n(2β+γ). With a root Acks are mostly there
before data is: scatter pα + (p-1)/p·nβ, broadcast (p+1)α + 3(p-1)/p·nβ (p of at least 3), reduce 2α
+ (p-1)·n(β+γ). In scatter and gather every rank has another number of steps, so every rank is a
batch of its own.

Source: Patarasuk and Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations",
2009; *_ring.cc of cann-hcomm (b5f3e5b) with component/reducer.cc and sender.cc.
"""

from hccl_executors.templates.signals import barrier
from hccl_py.orchestration import Chunks, Plane, Region, Stream
from hccl_py.orchestration.exchange import rx_data, tx_data


def ring_reduce_scatter(
    stream: Stream, plane: Plane, chunks: Chunks, *, closed: bool = True
) -> None:
    """Leave in chunk r of rank r the reduction of all ranks' chunk r; other chunks hold partial
    results.
    """
    for step in stream.steps("reduce-scatter", plane.size - 1):
        _acknowledge(stream, plane)
        tx_data(stream, plane.right, chunks[(plane.id - 1 - step) % plane.size], reduce=True)
        rx_data(stream, plane.left, chunks[(plane.id - 2 - step) % plane.size], reduce=True)
    if closed:
        ring_barrier(stream, plane)


def ring_all_gather(stream: Stream, plane: Plane, chunks: Chunks) -> None:
    """Leave in every rank all chunks; rank r starts with chunk r."""
    for step in stream.steps("all-gather", plane.size - 1):
        _acknowledge(stream, plane)
        tx_data(stream, plane.right, chunks[(plane.id - step) % plane.size])
        rx_data(stream, plane.left, chunks[(plane.id - 1 - step) % plane.size])
    ring_barrier(stream, plane)


def ring_all_reduce(stream: Stream, plane: Plane, work: Region) -> None:
    """Leave in `work` of every rank the reduction of all ranks' `work`."""
    ring_all_reduce_chunks(stream, plane, work.split(plane.size))


def ring_all_reduce_chunks(stream: Stream, plane: Plane, chunks: Chunks) -> None:
    """The same for data that is cut, into a chunk for every rank."""
    ring_reduce_scatter(stream, plane, chunks, closed=False)
    ring_all_gather(stream, plane, chunks)


def ring_barrier(stream: Stream, plane: Plane) -> None:
    """Wait until both neighbours have come as far."""
    if plane.size == 1:
        return
    with stream.phase("barrier"):
        barrier(stream, plane.left, plane.right)


def ring_broadcast(stream: Stream, plane: Plane, work: Region, root: int) -> None:
    """Leave in `work` of every rank what the root has there.

    Every rank but the root receives p chunks, however small `work` is, and every rank but the last
    one sends p.
    """
    p = int(plane.size)
    if p == 1:
        return
    has_it, is_last = bool(plane.id == root), bool((plane.id + 1) % p == root)
    with stream.phase("broadcast"):
        _acknowledge(stream, plane)
    chunks = work.split(p)
    for step in stream.steps("broadcast", p):
        if not has_it:
            rx_data(stream, plane.left, chunks[step])
            plane.left.tx_ack(stream)  # I have it, and there is room for the next
        if not is_last:
            tx_data(stream, plane.right, chunks[step])
            plane.right.rx_ack(stream)
    _signal(stream, plane)


def ring_scatter(
    stream: Stream, plane: Plane, chunks: Chunks, root: int, out: Region | None = None
) -> None:
    """Leave chunk r of the root in chunk r of rank r, or in its `out`, which takes SDMA; ranks on
    the way hold those of ranks behind them, too.
    """
    p = int(plane.size)
    distance = int((plane.id - root) % p)
    count = p - distance if p > 1 else 0
    for step in stream.steps("scatter", count):
        last = step == count - 1
        if distance:
            plane.left.tx_ack(stream)
        elif last and out is not None:
            stream.copy(out, chunks[root])
        if step:
            plane.right.rx_ack(stream)
            tx_data(stream, plane.right, chunks[(root - step) % p])
        if distance and last and out is not None:
            plane.left.rx_data_signal(stream)
            stream.copy(out, plane.left.remote(chunks[plane.id]))
        elif distance:
            rx_data(stream, plane.left, chunks[(root - 1 - step) % p])
    if not count and out is not None:
        stream.copy(out, chunks[root])
    ring_barrier(stream, plane)


def ring_gather(stream: Stream, plane: Plane, chunks: Chunks, root: int) -> None:
    """Leave chunk r of rank r in chunk r of the root; ranks on the way hold those of ranks behind
    them, too.
    """
    p = int(plane.size)
    distance = int((plane.id - root - 1) % p) + 1  # the root is at the end
    for step in stream.steps("gather", distance if distance < p else p - 1):
        if step < distance - 1:
            plane.left.tx_ack(stream)
        if distance < p:
            plane.right.rx_ack(stream)
            tx_data(stream, plane.right, chunks[(plane.id - step) % p])
        if step < distance - 1:
            rx_data(stream, plane.left, chunks[(plane.id - 1 - step) % p])
    ring_barrier(stream, plane)


def ring_reduce(stream: Stream, plane: Plane, work: Region, root: int) -> None:
    """Leave in `work` of the root the reduction of all ranks' `work`; others hold partial
    results.
    """
    p = int(plane.size)
    if p == 1:
        return
    with stream.phase("reduce"):
        _acknowledge(stream, plane)
        if (plane.id - 1) % p != root:
            rx_data(stream, plane.left, work, reduce=True)
            plane.left.tx_ack(stream)  # I have it
        if plane.id != root:
            tx_data(stream, plane.right, work, reduce=True)
            plane.right.rx_ack(stream)
    _signal(stream, plane)


def _acknowledge(stream: Stream, plane: Plane) -> None:
    """Tell the left neighbour that there is room for its data, and hear that from the right one."""
    plane.left.tx_ack(stream)
    plane.right.rx_ack(stream)


def _signal(stream: Stream, plane: Plane) -> None:
    """Close a ring in which every Ack has been heard."""
    with stream.phase("barrier"):
        plane.right.tx_data_signal(stream)
        plane.left.rx_data_signal(stream)
