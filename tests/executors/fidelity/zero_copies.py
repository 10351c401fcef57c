"""Rings of Atlas A3 on registered user memory, written from HCCL's sources, as one rank runs them.

Files are those of libochao-huawei/hcomm @ 8958adb under impl/coll_executor of
src/legacy/ascend910/algorithm. Between servers and superpods all ops run rings, a broadcast NHR.
Events name the place in the memory that they read or write: in a server it is user memory, outside
a CCL buffer.
"""

from collections.abc import Iterator, Sequence
from functools import partial

from tests.executors.fidelity import helped_rings as helped
from tests.executors.fidelity import marches, trees
from tests.executors.fidelity import rings as plain
from tests.executors.fidelity.helped_rings import Places
from tests.executors.fidelity.streams import ALIGN, sliced
from tests.executors.fidelity.superpods import Executor, Grid
from tests.executors.fidelity.transports import Link, Slice, even

UNIT = 4
NHR_ALLREDUCE_SMALL_SIZE = 256 << 10
NHR_BCAST_SMALL_SIZE = 2 << 20


class ZeroCopy(Executor):
    """A rank of a call of `size` bytes, with CCL buffers of `ccl` bytes. Without `hccs` servers of
    a superpod are joined by RDMA.
    """

    def __init__(
        self, rank: int, grid: Grid, size: int, ccl: int, *, root: int = 0, hccs: bool = True
    ) -> None:
        self.ccl, self.rdma = ccl, not hccs
        super().__init__(rank, grid, size, op_base=True, root=root)
        self.index = self.s * grid.pods + self.p

    @property
    def servers(self) -> int:
        """serverNum: of all superpods."""
        return self.grid.pods * self.grid.servers

    def rounds(self, size: int, most: int) -> Iterator[tuple[int, int]]:
        """RunLoop of coll_*_executor.cc: where a round starts and what it takes, in bytes; only
        between servers.
        """
        if self.servers > 1:
            for start in range(0, size, most):
                yield start, min(most, size - start)

    def inside(self, op: str, slots: Sequence[Sequence[Slice]]) -> None:
        """A march where there are two rings, else the one ring on main."""
        if op == "all_gather" and self.grid.rings == 2:
            marches.all_gather(self.me, self.server, slots, op_base=True)
        elif op == "all_gather":
            self.me.run(plain.ring_all_gather, self.server, rdma=False, slices=slots)
        elif self.grid.rings == 2:
            marches.reduce_scatter(self.me, self.server, slots, UNIT, op_base=True)
        else:
            self.me.run(plain.ring_reduce_scatter, self.server, rdma=False, slices=slots)

    def apart(self) -> list[list[Slice]]:
        """coll_comm_executor.cc:2586 CalcIntraServerDataSlicesDiscontinuous."""
        n, size = self.grid.devices, self.size
        return [[Slice((j * n + i) * size, size) for j in range(self.servers)] for i in range(n)]

    def together(self) -> list[list[Slice]]:
        """coll_comm_executor.cc:2608 CalcIntraServerDataSlicesContinuous."""
        return [[slot] for slot in even(self.grid.devices, self.servers * self.size)]

    def link(self, peer: int, *, rdma: bool = False) -> Link:
        """A link on main."""
        return Link(self.me.streams[0], peer, rdma=rdma)

    def is_near(self, peer: int) -> bool:
        """coll_comm_executor.cc:2730 IsLevel0Neighbor."""
        n, me = self.grid.devices, self.me.rank
        beside = peer % n in ((me + 1) % n, (me + n - 1) % n)
        return me // n == peer // n and beside


class Slots(ZeroCopy):
    """coll_{all_gather,reduce_scatter}_ring_zerocopy{,_exchange}_executor.cc."""

    @property
    def sub_streams(self) -> int:
        """coll_all_gather_ring_zerocopy_executor.cc:27 CalcStreamNum."""
        return 2 if self.grid.rings == 2 else 0

    @property
    def most(self) -> int:
        """:73 CalcLoopMaxCount."""
        return self.ccl // self.servers // ALIGN * ALIGN

    def all_gather(self, form: str) -> None:
        """coll_all_gather_executor.cc:57, then :170 KernelRunInterServer of the zero copy's."""
        for start, size in self.rounds(self.size, self.most):
            if form:
                self.exchange_inputs(start, size)
            self.between("all_gather", size)
        self.inside("all_gather", self.together() if form else self.apart())

    def reduce_scatter(self, form: str) -> None:
        """coll_reduce_scatter_executor.cc:55, then KernelRunInterServer of the zero copy's."""
        self.inside("reduce_scatter", self.together() if form else self.apart())
        for start, size in self.rounds(self.size, self.most):
            self.between("reduce_scatter", size)
            if form:
                self.exchange_outputs(start, size)

    def between(self, op: str, size: int) -> None:
        """CalcLevel1DataSlices: a block of each server, in it a slot of each superpod."""
        pods, servers = self.grid.pods, self.grid.servers
        blocks = even(servers, pods * size)
        first = blocks[self.s].offset
        mine = [Slice(first + p * size, size) for p in range(pods)]
        if op == "all_gather":
            self.me.run(plain.ring_all_gather, self.level2, rdma=True, slices=mine)
            self.me.run(plain.ring_all_gather, self.level1, rdma=self.rdma, slices=blocks)
        else:
            self.me.run(plain.ring_reduce_scatter, self.level1, rdma=self.rdma, slices=blocks)
            self.me.run(plain.ring_reduce_scatter, self.level2, rdma=True, slices=mine)

    @property
    def remote(self) -> tuple[int, int]:
        """coll_comm_executor.cc:2669 CalExchangeRemoteRankForReduceScatter: to whom, from whom."""
        l2, l1, l0 = self.grid.pods, self.grid.servers, self.grid.devices
        rank = self.me.rank
        to = (rank % l0) * l2 * l1 + (rank % (l0 * l1) // l0) * l2 + rank // l0 // l1
        r0, r1, r2 = rank // (l1 * l2), rank % (l1 * l2) // l2, rank % (l1 * l2) % l2
        return to, r2 * l1 * l0 + r1 * l0 + r0

    def place(self, rank: int) -> int:
        """remoteLevel1Index * level2RankSize_ + remoteLevel2Index."""
        l0, l1 = self.grid.devices, self.grid.servers
        return rank % (l0 * l1) // l0 * self.grid.pods + rank // l0 // l1

    def partners(self, to: int, frm: int) -> tuple[Link, Link]:
        """Links of neighbours in the server are the ring's; CalcExchangeCommInfo has all others
        over RDMA where there are several superpods, or several servers without HCCS.
        """
        rdma = self.grid.pods > 1 or (self.rdma and self.servers > 1)
        return (
            self.link(to, rdma=rdma and not self.is_near(to)),
            self.link(frm, rdma=rdma and not self.is_near(frm)),
        )

    def exchange_inputs(self, start: int, size: int) -> None:
        """coll_all_gather_ring_zerocopy_exchange_executor.cc:70 KernelRunInterServerPreProcess."""
        frm, to = self.remote
        if self.me.rank in (to, frm):
            return
        send, recv = self.partners(to, frm)
        recv.tx_ack()
        send.rx_ack()
        swap(
            send,
            recv,
            size,
            (0, self.place(to) * size),
            (start if self.is_near(frm) else 0, self.place(self.me.rank) * size),
        )
        barrier(send, recv)

    def exchange_outputs(self, start: int, size: int) -> None:
        """coll_reduce_scatter_ring_zerocopy_exchange_executor.cc:69
        KernelRunInterServerPostProcess; what a neighbour gives arrives in the round's output.
        """
        to, frm = self.remote
        if self.me.rank in (to, frm):
            return
        send, recv = self.partners(to, frm)
        recv.tx_ack()
        send.rx_ack()
        near = self.is_near(frm)
        source, into = (0, start) if near else (self.place(frm) * size, 0)
        swap(send, recv, size, (self.place(self.me.rank) * size, 0), (source, into))
        barrier(send, recv)


class Whole(ZeroCopy):
    """coll_all_reduce_ring_zerocopy_executor.cc and coll_broadcast_ring_zerocopy_executor.cc;
    streams are those of other rings, :27 CalcStreamNum.
    """

    def slices(self) -> list[Places]:
        """KernelRunIntraServerPre: one ring takes all of a slice, two take halves of its elements,
        the second one the odd element, numbered the other way round.
        """
        parts = self.parts()
        if self.grid.rings == 1:
            return [[[part] for part in parts]]
        heads = [part.size // UNIT // 2 * UNIT for part in parts]
        first = [Slice(part.offset, head) for part, head in zip(parts, heads, strict=True)]
        second = [
            Slice(part.offset + head, part.size - head)
            for part, head in zip(parts, heads, strict=True)
        ]
        return [[[one] for one in first], [[one] for one in (second[0], *second[:0:-1])]]

    def gather(self, places: Sequence[Places]) -> None:
        """KernelRunIntraServerPost: the output is the memory that neighbours read, too, so what
        moves between the two is skipped (dispatcher.cc:374), and what it waits for is not.
        """
        if self.grid.rings == 2:
            helped.aligned_all_gather(self.double(), places, places)
        else:
            helped.all_gather_concurrent_direct(self.ways[0], places[0], places[0])

    def all_reduce(self, form: str) -> None:
        """coll_all_reduce_executor.cc:49, :224; the zero copy's KernelRunInterServer. NHR takes one
        superpod here; it is small by what a device has of the slice once more.
        """
        me, places, mine = self.me, self.slices(), self.parts()[self.d]
        if self.grid.rings == 2:
            helped.aligned_reduce_scatter(self.double(), places, None, op_base=True)
        else:
            helped.reduce_scatter_concurrent_direct(self.ways[0], places[0])
        for _, size in self.rounds(mine.size, self.ccl // UNIT * UNIT):
            inner = sliced(size, self.grid.servers)
            if form == "NHR" and size // self.grid.devices <= NHR_ALLREDUCE_SMALL_SIZE:
                one = Slice(0, size)
                me.run(trees.nhr_all_reduce_one_shot, self.level1, rdma=self.rdma, whole=one)
            elif form == "NHR":
                template = partial(trees.nhr_all_reduce, meets=True)
                me.run(template, self.level1, rdma=self.rdma, slices=inner)
            elif self.grid.pods == 1:
                me.run(plain.ring_all_reduce, self.level1, rdma=self.rdma, slices=inner)
            else:
                me.run(plain.ring_reduce_scatter, self.level1, rdma=self.rdma, slices=inner)
                own = inner[self.s]
                outer = sliced(own.size, self.grid.pods, own.offset)
                me.run(plain.ring_all_reduce, self.level2, rdma=True, slices=outer)
                me.run(plain.ring_all_gather, self.level1, rdma=self.rdma, slices=inner)
        self.gather(places)

    def broadcast(self, form: str) -> None:
        """coll_broadcast_executor.cc:56, :131; the zero copy's KernelRunInterServer, which divides
        a slice by the devices once more to say whether it is small.
        """
        me, places, mine = self.me, self.slices(), self.parts()[self.d]
        pod, server, _ = self.root_place
        root = self.root if self.root in self.server else self.server[0]
        if self.grid.rings == 2:
            helped.scatter_double_direct(self.double(), places, root)
        else:
            slices = [place[0] for place in places[0]]
            at = self.server.index(root)
            me.run(plain.ring_scatter, self.server, rdma=False, slices=slices, root=at)
        for _, size in self.rounds(mine.size, self.ccl // UNIT * UNIT):
            inner = sliced(size, self.grid.servers)
            if self.grid.pods == 1 and size // self.grid.devices <= NHR_BCAST_SMALL_SIZE:
                run, one = trees.nhr_broadcast_one_shot, Slice(0, size)
                me.run(run, self.level1, rdma=self.rdma, whole=one, root=server)
            elif self.grid.pods == 1:
                me.run(trees.nhr_broadcast, self.level1, rdma=self.rdma, slices=inner, root=server)
            else:
                me.run(trees.nhr_scatter, self.level1, rdma=self.rdma, slices=inner, root=server)
                own = inner[self.s]
                outer = sliced(own.size, self.grid.pods, own.offset)
                me.run(trees.nhr_broadcast, self.level2, rdma=True, slices=outer, root=pod)
                me.run(trees.nhr_all_gather, self.level1, rdma=self.rdma, slices=inner)
        self.gather(places)


def swap(send: Link, recv: Link, size: int, out: tuple[int, int], into: tuple[int, int]) -> None:
    """TxAsync and RxAsync of one slice, from a place to another one: RDMA writes, SDMA reads."""
    if send.rdma:
        send.move("rdma_write", *out, size)
    send.tx_data_signal()
    recv.rx_data_signal()
    if not recv.rdma:
        recv.move("read", *into, size)


def barrier(send: Link, recv: Link) -> None:
    """Both ends have sent and received."""
    recv.tx_ack()
    send.rx_ack()
    send.tx_data_signal()
    recv.rx_data_signal()
