"""HCCL's broadcast of small data inside a server, written from its source, as one rank runs it:
src/algorithm/base/alg_template/temp_broadcast/broadcast_oneshot.cc of
xiaobingling93-pixel/cann-hcomm @ b5f3e5b. Streams are main and one sub stream.
"""

from tests.executors.fidelity.transports import Event, Link


class BroadcastHD:
    """One rank of it; the class has the source's name."""

    def __init__(self, rank: int, ranks: int, root: int, size: int) -> None:
        self.main: list[Event] = []
        self.sub: list[Event] = []
        self.rank, self.ranks, self.root, self.size = rank, ranks, root, size
        self.logic = (rank - root + ranks) % ranks
        self.steps = (2 * ranks - 1).bit_length() - 1
        self.first = self.logic.bit_length() - 1 if self.logic else 0

    def run(self) -> list[list[Event]]:
        """:96 RunAsync, :144 RunFinalStep."""
        for step in range(self.first, self.steps - 1):
            if step != self.first:
                self.send(step)
            elif step:
                self.receive(step)
            elif self.rank != self.root:
                self.receive_first()
            else:
                self.send_first()
        half = 1 << (self.steps - 1)
        if self.logic % half < self.ranks - half:
            (self.receive if self.first == self.steps - 1 else self.send)(self.steps - 1)
        return [self.main, self.sub]

    def link(self, step: int) -> Link:
        """:166 GetDstRank."""
        peer = ((self.logic ^ (1 << step)) + self.root) % self.ranks
        return Link(self.main, peer, rdma=False)

    def wake(self) -> None:
        self.main.append(("post", 1, 0))
        self.sub.append(("wait", 1, 0))

    def join(self) -> None:
        self.sub.append(("post", 0, 0))
        self.main.append(("wait", 0, 0))

    def send(self, step: int) -> None:
        """:173 RunSend."""
        last = step == self.steps - 1
        if last:
            self.wake()
        self.link(step).tx_ack()
        self.link(step).rx_data_signal()
        if last:
            self.join()

    def receive(self, step: int) -> None:
        """:204 RunReceive."""
        self.link(step).rx_ack()
        self.link(step).move("read", 0, 0, self.size)
        self.link(step).tx_data_signal()

    def send_first(self) -> None:
        """:226 RunSendFirst."""
        self.wake()
        self.link(0).rx_ack()
        self.link(0).move("write", 0, 0, self.size)
        self.link(0).tx_data_signal()
        self.join()

    def receive_first(self) -> None:
        """:255 RunReceiveFirst."""
        self.link(0).tx_ack()
        self.link(0).rx_data_signal()
