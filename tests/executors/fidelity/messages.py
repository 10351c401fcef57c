"""HCCL's messages, written from its sources, as one rank runs them.

Files are those of xiaobingling93-pixel/cann-hcomm @ b5f3e5b under src/algorithm: send_receive.cc is
base/alg_template/temp_send_recv/send_receive.cc, executors are in
impl/coll_executor/coll_send_receive.
"""

from collections.abc import Sequence
from typing import NamedTuple

from tests.executors.fidelity.transports import Event, Link


class Message(NamedTuple):
    """Bytes from one rank to another."""

    src: int
    dst: int
    size: int


def send(link: Link, size: int, ccl: int) -> None:
    """coll_send_executor.cc:122 RunLoop, send_receive.cc:49 SendRunAsync."""
    for low in range(0, size, ccl):
        link.tx_ack()
        link.rx_ack()
        if link.rdma:
            link.move("rdma_write", 0, 0, min(ccl, size - low))
        link.tx_data_signal()
        link.rx_data_signal()


def receive(link: Link, size: int, ccl: int, *, straight: bool) -> None:
    """coll_receive_executor.cc:111 RunLoop, send_receive.cc:88 ReceiveRunAsync; `straight` where
    :133 leaves the CCL buffer out.
    """
    for low in range(0, size, ccl):
        link.tx_ack()
        link.rx_ack()
        link.rx_data_signal()
        if not link.rdma:
            link.move("read", 0, low if straight else 0, min(ccl, size - low))
        link.tx_data_signal()


def batch(
    rank: int, size: int, messages: Sequence[Message], ccl: int, devices: int
) -> list[list[Event]]:
    """coll_batch_send_recv_executor.cc:68 GetPairWiseList, :218 RunLoopInHostUnfoldMode, :355
    CalcSendSlices; send_receive.cc:126 BatchSendRunAsync, :160 BatchReceiveRunAsync.
    """
    main: list[Event] = []
    sub: list[Event] = []
    if size == 1:
        return [main]

    def down(message: Message) -> int:
        at = message.dst
        return -(at + size if at <= rank else at)

    def up(message: Message) -> int:
        at = message.src
        return at + size if at < rank else at

    main.append(("post", 1, 0))
    sub.append(("wait", 1, 0))
    for message in sorted((m for m in messages if m.src == rank != m.dst), key=down):
        link = Link(main, message.dst, rdma=message.dst // devices != rank // devices)
        for low in range(0, message.size, ccl):
            if link.rdma:  # TxPrepare, TxData and TxDone of transport_ibverbs.cc:2170-2222
                link.rx_ack()
                link.move("rdma_write", 0, 0, min(ccl, message.size - low))
                link.tx_data_signal()
                link.wait_fin_ack()
            else:  # of transport_p2p.cc:847-866
                link.tx_ack()
                link.rx_data_signal()
    for message in sorted((m for m in messages if m.dst == rank != m.src), key=up):
        link = Link(sub, message.src, rdma=message.src // devices != rank // devices)
        for low in range(0, message.size, ccl):
            if link.rdma:  # RxPrepare, RxData and RxDone of transport_ibverbs.cc:2182-2234
                link.tx_ack()
                link.rx_data_signal()
                link.post_fin_ack()
            else:  # of transport_p2p.cc:854-873
                link.rx_ack()
                link.move("read", 0, 0, min(ccl, message.size - low))
                link.tx_data_signal()
    sub.append(("post", 0, 0))
    main.append(("wait", 0, 0))
    return [main, sub]
