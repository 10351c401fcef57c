"""HCCL's continuous pipeline, written from its source, as one rank runs it.

The file is temp_alltoallv/alltoallv_continuous_pipeline.cc of libochao-huawei/hcomm @ 8958adb under
src/legacy/ascend910/algorithm/base/alg_template; names are its own where they say what is meant.
The counts that the ranks of a server tell each other, with a flag, are known here: their two writes
to every peer in the first turn are left out, the turn is not.
"""

from dataclasses import dataclass

from tests.executors.fidelity.exchanges import Call, Streams, Worker
from tests.executors.fidelity.transports import Link

RDMA_AT_ONCE = 1
"""rdmaConcurrentNum_, :126."""


@dataclass
class _State:
    """TaskState: the step that is done, the one to do next, and the loop."""

    step: int = 0
    next: int = 0
    loop: int = 0

    def restart(self, steps: int) -> None:
        self.loop, self.step, self.next = self.loop + 1, 0, min(RDMA_AT_ONCE, steps)


class _Rank:
    """A rank with what it has yet to send and receive."""

    def __init__(self, rank: int, call: Call, devices: int, unit: int) -> None:
        self.user_rank, self.call, self.n = rank, call, devices
        self.total, self.servers = call.ranks, call.ranks // devices
        self.inter, self.intra = divmod(rank, devices)
        self.lanes = min(devices - 1, 8)
        self.ping_pong = self.servers - 1 <= RDMA_AT_ONCE
        self.block = self._size_per_block(unit)
        ranks = range(self.total)
        self.send_left = [call.sizes[rank][p] for p in ranks]
        self.send_at = [call.send_offset(rank, p) for p in ranks]
        self.recv_left = [call.sizes[p][rank] for p in ranks]
        self.recv_at = [call.recv_offset(rank, p) for p in ranks]
        first = self.inter * devices
        self.intra_recv = [[call.sizes[p][first + i] for p in ranks] for i in range(devices)]
        self.staged = [0] * self.total
        self.me = Worker(rank, call, self.lanes + 1)

    def _size_per_block(self, unit: int) -> int:
        """:168 SplitBuffer."""
        info = 8 * self.total * self.total
        number = self.total * (2 if self.ping_pong else 1)
        align = 16384 if self.call.ccl > info + 16384 * number else 128
        each: int = (self.call.ccl - info) // number // align * align
        return each // unit * unit

    def loops(self, rank: int) -> int:
        """:302 GetLocalLoopNum of a rank."""
        others = [p for p in range(self.total) if p != rank]
        sizes = self.call.sizes
        most = max(max(sizes[rank][p], sizes[p][rank]) for p in others)
        return -(-most // self.block)

    def block_offset(self, rank: int, loop: int) -> int:
        """:293 GetDataBlockOffset."""
        return self.block * ((loop % 2) * self.total + rank if self.ping_pong else rank)

    def link_inside(self, peer: int) -> tuple[int, Link]:
        """:269 GetSdmaSubStreamIdx, and the link on that stream."""
        stream = (peer - 1 if peer > self.intra else peer) % self.lanes + 1
        return stream, self.me.link(stream, self.inter * self.n + peer)

    def neighbours(self) -> list[int]:
        return [p for p in range(self.n) if p != self.intra]

    def sdma_sync(self, *, before: bool) -> None:
        """:688 DoSdmaSync."""
        for peer in self.neighbours():
            _, link = self.link_inside(peer)
            if before:
                link.tx_ack()
                link.rx_ack()
            else:
                link.tx_data_signal()
                link.rx_data_signal()

    def sdma_send(self, loop: int) -> None:
        """:818 DoLevel0SdmaSend, :549 SdmaSendFromInputToRemoteOutBuffer."""
        for peer in self.neighbours():
            target = self.inter * self.n + peer
            size = min(self.send_left[target], self.block)
            if size:
                _, link = self.link_inside(peer)
                to = self.block_offset(self.user_rank, loop)
                link.move("write", self.send_at[target], to, size)
                self._sent(target, size)

    def distribute(self, begin: int, end: int, loop: int) -> None:
        """:745 DoIntraDistribution, :582 SdmaReadFromRemoteOutBufferToOutput."""
        for step in range(begin + 1, end + 1):
            module = (self.inter + self.servers - step) % self.servers
            for source in range(module * self.n, module * self.n + self.n):
                size = min(self.recv_left[source], self.block)
                if not size:
                    continue
                if source % self.n != self.intra:
                    _, link = self.link_inside(source % self.n)
                    frm = self.block_offset(module * self.n + self.intra, loop)
                    link.move("read", frm, self.recv_at[source], size)
                self._received(source, size)

    def deliver(self, loop: int) -> None:
        """:805 DoLevel0LocalCopy: within the rank, so only the amounts matter."""
        for peer in self.neighbours():
            source = self.inter * self.n + peer
            self._received(source, min(self.recv_left[source], self.block))

    def stage(self, begin: int, end: int) -> None:
        """:719 DoLocalCopy, :472 LocalCopyFromInputToInBuffer."""
        for step in range(begin + 1, end + 1):
            module = (self.inter + step) % self.servers
            for target in range(module * self.n, module * self.n + self.n):
                size = min(self.send_left[target], self.block)
                if size:
                    self._sent(target, size)
                    self.staged[target] = size

    def between(self, begin: int, end: int, loop: int) -> None:
        """:783 DoInterSendReceive, :622 InterSendAndReceive."""
        for step in range(begin + 1, end + 1):
            to = (self.user_rank + step * self.n) % self.total
            frm = (self.user_rank + self.total - step * self.n) % self.total
            send_first, recv_first = to // self.n * self.n, frm // self.n * self.n
            sent, received = [], []
            for i in range(self.n):
                mine = self.inter * self.n + i
                size, self.staged[send_first + i] = self.staged[send_first + i], 0
                if size:
                    places = self.block_offset(send_first + i, loop), self.block_offset(mine, loop)
                    sent.append((*places, size))
                source = recv_first + self.intra
                size = min(self.block, self.intra_recv[i][source])
                if size:
                    places = self.block_offset(mine, loop), self.block_offset(recv_first + i, loop)
                    received.append((*places, size))
                    self.intra_recv[i][source] -= size
            wire = self.lanes + 1
            self._swap(self.me.link(wire, frm), self.me.link(wire, to), sent, received)

    @staticmethod
    def _swap(
        left: Link,
        right: Link,
        sent: list[tuple[int, int, int]],
        received: list[tuple[int, int, int]],
    ) -> None:
        """:400 InterSdmaRx, :438 InterRdmaTxRx."""
        if not left.rdma or not right.rdma:
            if sent:
                right.tx_ack()
            if received:
                left.rx_ack()
            for piece in received:
                left.move("read", *piece)
            if received:
                left.tx_data_signal()
            if sent:
                right.rx_data_signal()
            return
        if received:
            left.tx_ack()
        if sent:
            right.rx_ack()
            for piece in sent:
                right.move("rdma_write", *piece)
            right.tx_data_signal()
        if received:
            left.rx_data_signal()
            left.post_fin_ack()
        if sent:
            right.wait_fin_ack()

    def _sent(self, target: int, size: int) -> None:
        self.send_left[target] -= size
        self.send_at[target] += size

    def _received(self, source: int, size: int) -> None:
        self.recv_left[source] -= size
        self.recv_at[source] += size


def continuous_pipeline(rank: int, call: Call, devices: int, unit: int = 4) -> Streams:
    """:977 RunAsync, with :935 WaitAndCalReceiveInfo; parts inside the servers of `devices`."""
    at = _Rank(rank, call, devices, unit)
    steps, lanes = at.servers - 1, range(1, at.lanes + 1)
    local, inter, intra = _State(next=min(RDMA_AT_ONCE, steps)), _State(), _State()
    server = range(at.inter * devices, at.inter * devices + devices)
    repeat, tells_counts = 0, True
    while local.step < steps or inter.step < steps or intra.step < steps:
        writes_inside = inter.next != 0 and inter.step == 0
        delivers = intra.next != 0 and intra.step == 0
        has_rdma = inter.step < inter.next
        has_sdma = intra.step < intra.next or writes_inside or tells_counts
        if has_sdma:
            for sub in lanes:
                at.me.wake(sub)
            at.sdma_sync(before=True)
            for sub in lanes:
                at.me.join(sub)
            for sub in lanes:
                at.me.wake(sub)
        if has_rdma:
            at.me.wake(at.lanes + 1)
        if writes_inside:
            at.sdma_send(inter.loop)
        if inter.loop == 0 and has_rdma:
            loops = max(at.loops(peer) for peer in server)
            repeat = loops - 1 if loops else 0
            if local.step == steps and local.loop < repeat:
                local.restart(steps)
        at.distribute(intra.step, intra.next, intra.loop)
        at.between(inter.step, inter.next, inter.loop)
        at.stage(local.step, local.next)
        tells_counts = False
        if delivers:
            at.deliver(intra.loop)
        if has_sdma:
            at.sdma_sync(before=False)
            for sub in lanes:
                at.me.join(sub)
        if has_rdma:
            at.me.join(at.lanes + 1)
        intra.step, inter.step, local.step = intra.next, inter.next, local.next
        intra.next, inter.next = inter.next, local.next
        local.next = min(local.next + RDMA_AT_ONCE, steps)
        if intra.step == steps and intra.loop < inter.loop:
            intra.restart(steps)
        if inter.step == steps and inter.loop < local.loop:
            inter.restart(steps)
        if local.step == steps and local.loop < repeat:
            local.restart(steps)
    return at.me.streams
