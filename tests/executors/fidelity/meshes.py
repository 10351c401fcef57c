"""HCCL's meshes inside a server of Atlas A2, written from its sources, as one rank runs them.

Files are those of xiaobingling93-pixel/cann-hcomm @ b5f3e5b under src/algorithm/base/alg_template.
Streams are 0 for main and 1, 2, .. for subs; notify k of main is posted by sub k + 1, notify 0 of a
sub by main.
"""

from collections.abc import Sequence

from tests.executors.fidelity.transports import Event, Link, Slice, handshake

Streams = list[list[Event]]


class Mesh:
    """A rank of a mesh with main and `subs` sub streams; the mesh begins at rank `first` of all."""

    def __init__(self, rank: int, size: int, subs: int, first: int = 0) -> None:
        self.rank, self.size, self.first = rank, size, first
        self.streams: Streams = [[] for _ in range(subs + 1)]

    def link(self, stream: int, peer: int) -> Link:
        """The link to a peer, used by a stream."""
        return Link(self.streams[stream], self.first + peer % self.size, rdma=False)

    def wake(self) -> None:
        """Main posts to all subs, which wait: MainRecordSub and SubWaitMain."""
        for sub in range(1, len(self.streams)):
            self.streams[0].append(("post", sub, 0))
            self.streams[sub].append(("wait", sub, 0))

    def join(self) -> None:
        """All subs post to main, which waits: SubRecordMain and MainWaitSub."""
        for sub in range(1, len(self.streams)):
            self.streams[sub].append(("post", 0, sub - 1))
            self.streams[0].append(("wait", 0, sub - 1))


def _run(
    me: Mesh, serves: Sequence[tuple[int, int]], reads: Sequence[Slice], *, reduce: bool
) -> None:
    """Acks over all links, a meeting of all streams, then the reads; `serves` are pairs of a stream
    and its peer.
    """
    me.wake()
    for stream, peer in serves:
        me.link(stream, peer).tx_ack()
        me.link(stream, peer).rx_ack()
    me.join()
    me.wake()
    for (stream, peer), part in zip(serves, reads, strict=True):
        link = me.link(stream, peer)
        link.read([part], reduce=reduce)
        link.tx_data_signal()
        link.rx_data_signal()
    me.join()


def _meet(me: Mesh, ahead: int) -> list[Link]:
    """Acks of sub k with the peer k above (ahead 1) or below (-1), and a meeting; the links."""
    me.wake()
    links = [me.link(k, me.rank + ahead * k) for k in range(1, me.size)]
    for link in links:
        link.tx_ack()
        link.rx_ack()
    me.join()
    me.wake()
    return links


def reduce_scatter_mesh_direct(me: Mesh, slices: Sequence[Slice]) -> None:
    """reduce_scatter_mesh_atomic_opbase.cc:78-152, all_reduce_mesh_opbase.cc:165: user memory is
    added to the beginning of the peers' buffer.
    """
    for link in _meet(me, 1):
        part = slices[link.peer]
        link.move("write_reduce", part.offset, 0, part.size)
        link.tx_data_signal()
        link.rx_data_signal()
    me.join()


def all_gather_mesh_staged(me: Mesh, slices: Sequence[Slice], staged: Sequence[int]) -> None:
    """Every slice is read from where its rank has staged it."""
    for link in _meet(me, -1):
        part = slices[link.peer]
        link.move("read", staged[link.peer], part.offset, part.size)
        link.tx_data_signal()
        link.rx_data_signal()
    me.join()


def all_gather_mesh_direct(me: Mesh, slices: Sequence[Slice]) -> None:
    """all_gather_mesh_direct.cc:120-177: slices go from the peers' buffer to user memory. Where a
    slice begins in the output, modulo 16 KiB, it is staged in the buffer: :127 and :161.
    """
    all_gather_mesh_staged(me, slices, [one.offset % 16384 for one in slices])


def all_reduce_mesh_direct(me: Mesh, slices: Sequence[Slice]) -> None:
    """all_reduce_mesh_opbase.cc:113 RunAsync; :223 reads the beginning of the peers' buffer."""
    reduce_scatter_mesh_direct(me, slices)
    all_gather_mesh_staged(me, slices, [0] * me.size)


def all_gather_mesh_atomic(me: Mesh, slices: Sequence[Slice]) -> None:
    """all_gather_mesh_atomic.cc:21 RunAllGather within all_gather_mesh.cc:194-215: the peer k below
    is read by sub k, the last one by main.
    """
    peers = [(me.rank - k) % me.size for k in range(1, me.size)]
    serves = [(k if k < me.size - 1 else 0, peer) for k, peer in enumerate(peers, start=1)]
    _run(me, serves, [slices[peer] for peer in peers], reduce=False)


def reduce_scatter_mesh_atomic(me: Mesh, slices: Sequence[Slice]) -> None:
    """reduce_scatter_mesh_atomic.cc:43 RunReduceScatter, :127-145: main adds from the next peer
    above, sub k from the peer k + 1 above.
    """
    serves = [(stream, (me.rank + stream + 1) % me.size) for stream in range(me.size - 1)]
    _run(me, serves, [slices[me.rank]] * (me.size - 1), reduce=True)


def all_gather_mesh_mix(me: Mesh, columns: Sequence[Sequence[Slice]]) -> None:
    """all_gather_mesh_mix.cc:78-140: everybody's slices of all servers are read into user memory,
    from the peer k below by sub k.
    """
    for link in _meet(me, -1):
        link.read(columns[link.peer - me.first])
        link.tx_data_signal()
        link.rx_data_signal()
    me.join()


def reduce_scatter_mesh_mix(me: Mesh, columns: Sequence[Sequence[Slice]]) -> None:
    """reduce_scatter_mesh_mix.cc:98-160: user memory is added to the buffer of the peer k above."""
    for link in _meet(me, 1):
        for one in columns[link.peer - me.first]:
            link.move("write_reduce", one.offset, one.offset, one.size)
        link.tx_data_signal()
        link.rx_data_signal()
    me.join()


def all_gather_mesh(me: Mesh, slices: Sequence[Slice]) -> None:
    """all_gather_mesh.cc:60 RunAllGather, of all devices but 910B: every exchange ends with a
    barrier of its own.
    """
    me.wake()
    for k in range(1, me.size):
        link = me.link(k if k < me.size - 1 else 0, me.rank - k)
        link.tx_ack()
        link.rx_ack()
        link.tx_async([slices[me.rank]])
        link.rx_async([slices[(me.rank - k) % me.size]])
        handshake(link, link)
    me.join()


def scatter_mesh(me: Mesh, slices: Sequence[Slice], root: int, *, barrier: bool) -> None:
    """scatter_mesh.cc:79 the root, :86 the others, :90 the barrier; :102, :139 one transfer."""
    for peer in range(me.size):
        link = me.link(0, peer)
        if me.rank == root != peer:
            link.rx_ack()
            link.tx_async([slices[peer]])
        elif me.rank != root == peer:
            link.tx_ack()
            link.rx_async([slices[me.rank]])
    for peer in range(me.size):
        if barrier and peer != me.rank:
            handshake(me.link(0, peer), me.link(0, peer))


def gather_mesh(me: Mesh, slices: Sequence[Slice], root: int) -> None:
    """gather_mesh.cc:165-183: the root's main receives from the first peer, sub k from the peer
    behind it; :60 one receives, :99 one sends.
    """
    if me.rank != root:
        link = me.link(0, root)
        link.rx_ack()
        link.tx_async([slices[me.rank]])
        link.rx_data_signal()
        return
    me.wake()
    for stream, peer in enumerate(peer for peer in range(me.size) if peer != root):
        link = me.link(stream, peer)
        link.tx_ack()
        link.rx_async([slices[peer]])
        link.tx_data_signal()
    me.join()


def all_reduce_mesh(me: Mesh, slices: Sequence[Slice]) -> None:
    """impl/coll_executor/coll_all_reduce/coll_all_reduce_mesh_executor.cc:109-218 in one server."""
    reduce_scatter_mesh_atomic(me, slices)
    all_gather_mesh_atomic(me, slices)
