"""Pipelines over superpods of Atlas A3 on registered user memory, written from HCCL's sources.

Files are those of libochao-huawei/hcomm @ 8958adb under impl/coll_executor of
src/legacy/ascend910/algorithm. All events of the superpods' ring are on the last sub stream.
"""

from tests.executors.fidelity import rings as plain
from tests.executors.fidelity.streams import ALIGN
from tests.executors.fidelity.transports import Link, Slice, even
from tests.executors.fidelity.zero_copies import ZeroCopy, barrier, swap


class Pipeline(ZeroCopy):
    """coll_all_gather_ring_zerocopy_pipeline_executor.cc and
    coll_reduce_scatter_ring_zerocopy_exchange_pipeline_executor.cc.
    """

    @property
    def sub_streams(self) -> int:
        """CalcStreamNum of both."""
        return 3 if self.grid.rings == 2 else 1

    @property
    def far(self) -> int:
        """slaveStreams.back()."""
        return self.sub_streams - 1

    def block_slots(self, block: int) -> list[list[Slice]]:
        """CalcDataSlices behind blockOffset: a slice of all servers for each device."""
        l0, l1 = self.grid.devices, self.grid.servers
        first, each = block * l0 * l1 * self.size, l1 * self.size
        return [[Slice(first + i * each, each)] for i in range(l0)]

    @property
    def remote(self) -> tuple[int, int]:
        """CalExchangeRemoteRank of the reduce-scatter: to whom, from whom, in this superpod."""
        l1, l0 = self.grid.servers, self.grid.devices
        first = self.p * l1 * l0
        inside = self.s * l0 + self.d
        return first + self.d * l1 + self.s, first + inside % l1 * l0 + inside // l1

    def partners(self, to: int, frm: int) -> tuple[Link, Link]:
        """topo_info_extractor.cc:1184 GetIsUsedRdmaMap: between servers, where there is no HCCS."""
        n, me = self.grid.devices, self.me.rank
        return (
            self.link(to, rdma=self.rdma and to // n != me // n),
            self.link(frm, rdma=self.rdma and frm // n != me // n),
        )

    def superpods(self, peer: int) -> Link:
        """A link of the superpods' ring."""
        ranks = self.level2
        return Link(self.me.streams[self.far + 1], ranks[peer % len(ranks)], rdma=True)

    def forward(self, size: int, out: tuple[int, int]) -> None:
        """KernelRunInterSuperPod, and the first half of RunSuperPod."""
        before, behind = self.superpods(self.p - 1), self.superpods(self.p + 1)
        before.tx_ack()
        behind.rx_ack()
        swap(behind, before, size, out, (0, 0))
        before.post_fin_ack()
        behind.wait_fin_ack()

    def all_gather(self, form: str) -> None:
        """coll_all_gather_ring_zerocopy_pipeline_executor.cc RunLoop, KernelRunWithLoop."""
        pods, l1 = self.grid.pods, self.grid.servers
        most = self.ccl // max(2, l1) // ALIGN * ALIGN
        rounds = list(self.rounds(self.size, most))
        for start, size in rounds:
            mem, block = 0, self.p
            for step in range(pods):
                if step < pods - 1:
                    self.me.start([self.far])
                self.exchange_slots(block, start, size, mem)
                self.me.run(
                    plain.ring_all_gather, self.level1, rdma=self.rdma, slices=even(l1, size)
                )
                if (start, size) == rounds[-1]:
                    self.inside("all_gather", self.block_slots(block))
                if step < pods - 1:
                    block = (block + pods - 1) % pods
                    self.forward(size, (mem * size, (1 - mem) * size))
                    mem = 1 - mem
                    self.me.finish([self.far])

    def exchange_slots(self, block: int, start: int, size: int, mem: int) -> None:
        """KernelRunInterServerPreProcess; between neighbours by way of the output."""
        frm, to = self.remote
        if self.me.rank in (to, frm):
            return
        l0, l1 = self.grid.devices, self.grid.servers
        send, recv = self.partners(to, frm)
        recv.tx_ack()
        send.rx_ack()
        source = mem * size
        if self.is_near(frm):
            source = start + (block * l0 * l1 + frm % l0 * l1) * self.size
        place = to % (l0 * l1) // l0 * size
        swap(send, recv, size, (mem * size, place), (source, self.s * size))
        barrier(send, recv)

    def reduce_scatter(self, form: str) -> None:
        """coll_reduce_scatter_ring_zerocopy_exchange_pipeline_executor.cc KernelRunInterServer."""
        pods, l1 = self.grid.pods, self.grid.servers
        most = self.ccl // self.servers // ALIGN * ALIGN
        for start, size in self.rounds(self.size, most):
            for step in range(pods):
                block = (self.p + pods - (step + 1)) % pods
                if start == 0:
                    self.inside("reduce_scatter", self.block_slots(block))
                slices = [Slice((block * l1 + i) * size, size) for i in range(l1)]
                self.me.run(plain.ring_reduce_scatter, self.level1, rdma=self.rdma, slices=slices)
                self.exchange_sums(block, start, size)
                if step > 0:
                    self.me.finish([self.far])
                if step < pods - 1:
                    self.me.start([self.far])
                    to = ((self.p + 1) % pods + pods - (step + 1)) % pods
                    self.forward(size, (block * l1 * size, to * l1 * size))
                    barrier(self.superpods(self.p + 1), self.superpods(self.p - 1))

    def exchange_sums(self, block: int, start: int, size: int) -> None:
        """ExchangeData: between neighbours from the input's slot into the output's round."""
        to, frm = self.remote
        if self.me.rank == to == frm:
            return
        l0, l1 = self.grid.devices, self.grid.servers
        send, recv = self.partners(to, frm)
        recv.tx_ack()
        send.rx_ack()
        if self.is_near(frm):
            source = (block * l1 * l0 + self.s * l0 + self.d) * self.size
            into = (source, start)
        else:
            into = ((block * l1 + frm % (l1 * l0) // l0) * size, block * l1 * size)
        mine = (block * l1 + self.s) * size
        swap(send, recv, size, (mine, block * l1 * size), into)
        if not self.is_near(frm):
            recv.post_fin_ack()
        if not self.is_near(to):
            send.wait_fin_ack()
        barrier(send, recv)
