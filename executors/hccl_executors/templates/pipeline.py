"""Pipeline: a mesh inside the servers and a ring between them, both at work in every step.

While a block travels on to the next server, the one before it is shared out inside this server. S
servers of n ranks; rank i of server j has slot j·n + i.

    all-gather, step s:      this rank has slot i of server j - s: its peers in the server read it,
                             server j + 1 gets it
    reduce-scatter, step s:  the peers in the server add their parts of slot i of server j + 1 + s
                             to this rank's, and at the same time server j + 1 adds what it has
                             gathered of that slot; the slot of the step before goes to server j - 1
    all-reduce:              reduce-scatter, then all-gather, which sends to server j - 1, too

S steps each, in S - 1 of which both levels work, and a barrier between neighbours behind the last
transfer of the ring. For N bytes in all, with steps of inter = α₁ + N/(Sn)·β₁ and intra = α₀ +
N/(Sn)·β₀, all-gather costs (S - 1)·max(inter, intra) + intra, and the barrier's α₁ where inter is
the longer one; reduce-scatter as much, with N/(Sn)·γ in both sorts of steps. All-reduce costs both,
and one barrier. Between servers each rank moves (S - 1)/(Sn) of the data, 1/n of what a hierarchy
without pipeline moves there.

n sub streams. In all-gather and reduce-scatter the first one serves the ring, each of the others
the peer so many ahead; main copies what is this rank's own. In all-reduce main serves the ring,
too; of n sub streams, the last one has nothing to do but to meet main, n - 1 are enough. Peers and
the ring add to the same bytes at once, which hardware does atomically.

Where user memory is exported (graph mode), all-gather goes through the output itself, and peers
read what a reduce-scatter adds from each other's input; partial sums lie in one block, which has
room for every slot.

Links of the mesh are SDMA, those of the ring RDMA, as in HCCL. SDMA links of three servers or more
may join the ring, too: then a rank also says that it has read what it got, since the block that it
was read from may be written anew before the next Ack.

Sources: HCCL's AllGatherPipeline, ReduceScatterPipeline and AllReduceOpbasePipeline, their siblings
AllGatherVPipeline and ReduceScatterVPipeline, and of graph mode AllGatherGraphPipeline,
AllGatherVGraphPipeline, ReduceScatterGraphPipeline and AllReduceGraphPipeline (hcomm b5f3e5b,
alg_template).
"""

from collections.abc import Sequence
from typing import NamedTuple

from hccl_executors.templates.mesh_peers import empty_copy
from hccl_executors.templates.signals import barrier
from hccl_py.orchestration import Chunks, Link, Plane, Region
from hccl_py.plugins.executor import AnyRank
from hccl_py.values import RankInt


def pipeline_all_gather(
    rank: AnyRank,
    mesh: Plane,
    ring: Plane,
    slots: Chunks,
    images: Sequence[Chunks] | None = None,
    *,
    backwards: bool = False,
) -> None:
    """Fill all `slots`; this rank's own lies in `images[0]`. `backwards` goes round the ring as
    an all-reduce does, on main.

    `slots` are touched on this rank only. `images` say where each slot lies while it is in one of
    two blocks of exported memory, the same at every rank. Without them, `slots` are exported, and
    this rank's own is in its place.
    """
    way = -1 if backwards else 1
    _MeshRingPipeline(rank, mesh, ring, way=way, ring_on_main=backwards).all_gather(slots, images)


def pipeline_reduce_scatter(
    rank: AnyRank,
    mesh: Plane,
    ring: Plane,
    slots: Chunks,
    images: Sequence[Chunks],
    *,
    pull: bool = False,
) -> Region:
    """Leave the reduction of all ranks' slot j·n + i in one of the blocks; return its place.

    `slots` are read on this rank only, by `pull` by its peers instead, which then need not write to
    each other. `images` are of three blocks, as for all-gather, or of one that holds all slots.
    """
    return _MeshRingPipeline(rank, mesh, ring, way=-1).reduce_scatter(slots, images, pull=pull)


def pipeline_all_reduce(
    rank: AnyRank,
    mesh: Plane,
    ring: Plane,
    inputs: Chunks,
    outputs: Chunks,
    images: Sequence[Chunks],
) -> None:
    """Fill `outputs` with the reduction of all ranks' `inputs`, S·n chunks each, cut alike.

    Both are touched on this rank only. `images` are of two blocks, as for all-gather; or of one
    that holds all slots, and `outputs` are exported.
    """
    pipeline = _MeshRingPipeline(rank, mesh, ring, way=-1, ring_on_main=True)
    done = pipeline.reduce_scatter(inputs, images)
    if len(images) == 1:
        rank.main.copy(outputs[pipeline.own], done)
        pipeline.all_gather(outputs)
        return
    empty_copy(rank, done)
    held = (int(ring.size) - 1) % 2
    pipeline.all_gather(outputs, (images[held], images[1 - held]))


class _MeshRingPipeline:
    """The streams of a rank, the slots of this server, and which way data goes round the ring."""

    def __init__(
        self, rank: AnyRank, mesh: Plane, ring: Plane, *, way: int, ring_on_main: bool = False
    ) -> None:
        n, first = int(mesh.size), ring.id * mesh.size
        self.rank, self.servers, self.n, self.way = rank, int(ring.size), n, way
        self.ring, self.ring_on_main = ring, ring_on_main
        self.ring_stream = rank.main if ring_on_main else rank.subs[0]
        self.own: RankInt = first + mesh.id
        ahead = [(mesh.id + k) % n for k in range(1, n)]
        streams = rank.subs[: n - 1] if ring_on_main else rank.subs[1:n]
        self.peers = [
            (stream, first + index, mesh[index])
            for stream, index in zip(streams, ahead, strict=True)
        ]

    def slot(self, seat: RankInt, back: int) -> RankInt:
        """Return the slot of the same seat so many servers back."""
        return (seat - back * self.n) % (self.n * self.servers)

    def all_gather(self, slots: Chunks, images: Sequence[Chunks] | None = None) -> None:
        """Read what peers have of every slot; hand on what has come from the ring."""
        blocks = images or (slots, slots)
        for step in self.rank.main.steps("pipeline all-gather", self.servers):
            here, there = blocks[step % 2], blocks[(step + 1) % 2]
            mine, following = (self.slot(self.own, self.way * (step + k)) for k in (0, 1))
            with self.rank.fork():
                if step < self.servers - 1:
                    self._relay(_Move(here, there, mine, following), reduce=False)
                if step == self.servers - 2:
                    barrier(self.ring_stream, *self._neighbours)
                for stream, seat, link in self.peers:
                    theirs = self.slot(seat, self.way * step)
                    link.tx_ack(stream)  # you may read my block
                    link.rx_ack(stream)
                    stream.copy(slots[theirs], link.remote(here[theirs]))
                    link.tx_data_signal(stream)  # I have read yours
                    link.rx_data_signal(stream)
            if images:
                self.rank.main.copy(slots[mine], here[mine])

    def reduce_scatter(
        self, slots: Chunks, images: Sequence[Chunks], *, pull: bool = False
    ) -> Region:
        """Add to what peers have of every slot; hand on what has been added up."""
        blocks, done = len(images), self.own
        for step in self.rank.main.steps("pipeline reduce-scatter", self.servers):
            here, before = images[step % blocks], images[(step - 1) % blocks]
            mine = self.slot(self.own, -step - 1)
            self.rank.main.copy(here[mine], slots[mine])
            with self.rank.fork(
                subs=range(0 if step or self.ring_on_main else 1, len(self.rank.subs))
            ):
                if step:
                    previous = self.slot(self.own, -step)
                    self._relay(_Move(before, here, previous, mine), reduce=True)
                if step and step == self.servers - 1 and not self.ring_on_main:
                    barrier(self.ring_stream, *self._neighbours)
                for stream, seat, link in self.peers:
                    theirs = self.slot(seat, -step - 1)
                    link.tx_ack(stream)  # my own part is in my block: you may add yours
                    link.rx_ack(stream)
                    if pull:
                        stream.reduce(here[mine], link.remote(slots[mine]))
                    else:
                        stream.reduce(link.remote(here[theirs]), slots[theirs])
                    link.tx_data_signal(stream)  # you have got mine
                    link.rx_data_signal(stream)
        return images[(self.servers - 1) % blocks][done]

    def _relay(self, move: "_Move", *, reduce: bool) -> None:
        """Send to the next server, or to the previous one, and receive from the other side."""
        stream, (frm, to) = self.ring_stream, self._neighbours
        here, there, sends, gets = move
        transfer = stream.reduce if reduce else stream.copy
        frm.tx_ack(stream)
        to.rx_ack(stream)
        if to.rdma:
            transfer(to.remote(there[sends]), here[sends])
        to.tx_data_signal(stream)
        frm.rx_data_signal(stream)
        if not frm.rdma:
            transfer(there[gets], frm.remote(here[gets]))
        if frm.rdma:
            frm.tx_data_ack(stream)
        elif self.servers > 2:
            frm.tx_data_signal(stream)  # I have read yours
        if to.rdma:
            to.rx_data_ack(stream)
        elif self.servers > 2:
            to.rx_data_signal(stream)

    @property
    def _neighbours(self) -> tuple[Link, Link]:
        """The servers from which data comes, and to which it goes."""
        left, right = self.ring.left, self.ring.right
        return (left, right) if self.way > 0 else (right, left)


class _Move(NamedTuple):
    """Slots go from one block here to another one there: number `sends` away, `gets` hither."""

    here: Chunks
    there: Chunks
    sends: RankInt
    gets: RankInt
