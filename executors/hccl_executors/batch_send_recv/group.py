"""BatchSendRecvGroup: messages of HcclSend and HcclRecv between HcclGroupStart and HcclGroupEnd."""

from __future__ import annotations

from typing import NamedTuple

from hccl_executors.all_to_all.layout import block_of
from hccl_executors.all_to_all.pods import Pods
from hccl_executors.batch_send_recv.batch_send_recv import DOWN, UP
from hccl_executors.send_recv.messages import Mailbox, peers_of
from hccl_executors.sources import like_newest
from hccl_py.enums import Buffer
from hccl_py.orchestration import Link, Region, Stream
from hccl_py.plugins.executor import (
    AnyRank,
    BaseExecutor,
    Mode,
    OpParam,
    PlaneRequest,
    RankView,
    ResourceRequest,
    Topology,
    Unsuitable,
    require,
)
from hccl_py.values import RankInt

LANES = 8
"""Sub streams that send over SDMA, and as many that receive."""


class BatchSendRecvGroup(BaseExecutor):
    """Any number of messages between any ranks, eight each way at a time over SDMA.

    Lane k sends to the ranks k, k + 8, .., another one receives from them; both in the order of
    BatchSendRecv, so no rank waits for good. A lane has two slots of CCL_In, which its slices take
    in turns, from the first one for every peer: while a peer reads one, the next is staged. Peers
    read right to their output.

    What RDMA carries, to other superpods or servers, goes on two streams more, slice by slice, from
    the first half of CCL_Out to the second one of the receiver, which copies it to the output. Each
    rank sends from its place in the next pod upwards and receives from its place in the pod before
    downwards; where pods differ, both upwards from the first rank.

    Main copies what a rank sends to itself, then wakes the streams that have anything to do.
    """

    op = "batch_send_recv"
    algorithm = "level0:NA"
    fidelity = like_newest(
        "coll_send_receive/coll_batch_send_recv_group_executor",
        "coll_send_receive/coll_batch_send_recv_executor",
    )

    def suits(self, op: OpParam, topology: Topology) -> bool | Unsuitable:
        return require((op.mode is Mode.OP_BASE, "works through CCL buffers: op-base mode only"))

    def resources(self, op: OpParam, rank: RankView) -> ResourceRequest:
        """Links to the peers on both planes, and all streams. There are no rounds."""
        peers = peers_of(op, rank.size, 1, -1)
        return ResourceRequest(
            planes=(PlaneRequest(UP, peers), PlaneRequest(DOWN, peers)),
            sub_streams=0 if rank.size == 1 else 2 * LANES + 2,
        )

    def orchestrate(self, op: OpParam, rank: AnyRank) -> None:
        """Sort slices by stream, wake those that have any, and wait for them."""
        slot, half = (block_of(rank.ccl_bytes, parts, op.unit) for parts in (2 * LANES, 2))
        lanes, wire = Mailbox(op, rank, slot // op.unit), Mailbox(op, rank, half // op.unit)
        lanes.copy_own()
        if rank.size == 1:
            return
        sends, receives = _by_lane(_outgoing(rank, lanes)), _by_lane(_incoming(rank, lanes))
        pods = Pods(rank.topology)
        out = _over_rdma(rank, pods, _outgoing(rank, wire), 1)
        into = _over_rdma(rank, pods, _incoming(rank, wire), -1)
        busy = [k for k, slices in enumerate([*sends, *receives, out, into]) if slices]
        for k in busy:
            rank.wake(k)
        for k in range(LANES):
            _send(rank.subs[k], sends[k], Region(Buffer.CCL_IN, 2 * k * slot, 2 * slot))
            theirs = Region(Buffer.CCL_IN, rank.id % LANES * (2 * slot), 2 * slot)
            _receive(rank.subs[LANES + k], receives[k], theirs)
        _push(rank.subs[2 * LANES], out, half)
        _take(rank.subs[2 * LANES + 1], into, half)
        for k in busy:
            rank.join(k)


class _Slice(NamedTuple):
    """A slice of a message: the peer, the link to it, and where the data lies in user memory."""

    peer: RankInt
    link: Link
    data: Region


def _outgoing(rank: AnyRank, box: Mailbox) -> list[_Slice]:
    """Return the messages that the rank sends to others, from the rank below it downwards."""
    found = []
    for k in range(box.count(box.sends)):
        to, sent = box.sent(k)
        found.append(_Slice(to, rank.plane(UP if to > rank.id else DOWN)[to], sent.data))
    return found


def _incoming(rank: AnyRank, box: Mailbox) -> list[_Slice]:
    """Return the messages that the rank receives from others, from the rank above it upwards."""
    found = []
    for k in range(box.count(box.receives)):
        frm, received = box.received(k)
        found.append(_Slice(frm, rank.plane(UP if frm < rank.id else DOWN)[frm], received.data))
    return found


def _by_lane(slices: list[_Slice]) -> list[list[_Slice]]:
    """Return the messages over SDMA, by lane."""
    lanes: list[list[_Slice]] = [[] for _ in range(LANES)]
    for one in slices:
        if not one.link.rdma:
            lanes[int(one.peer % LANES)].append(one)
    return lanes


def _over_rdma(rank: AnyRank, pods: Pods, slices: list[_Slice], way: int) -> list[_Slice]:
    """Return the messages over RDMA by pod, upwards (1) or downwards (-1)."""
    far = [one for one in slices if one.link.rdma]
    return sorted(far, key=lambda one: int(pods.turn(rank.id, one.peer, way)))


def _send(stream: Stream, slices: list[_Slice], slots: Region) -> None:
    """Send the slices of a lane through its two slots."""
    half = 0
    for number, one in enumerate(slices):
        before, after = (
            slices[k] if 0 <= k < len(slices) else None for k in (number - 1, number + 1)
        )
        if before is None or before.peer != one.peer:
            half = 0
            _stage(stream, one, slots, half)
        one.link.tx_ack(stream)
        if after is not None and after.peer == one.peer:
            half = 1 - half
            _stage(stream, after, slots, half)
        one.link.rx_data_signal(stream)


def _receive(stream: Stream, slices: list[_Slice], slots: Region) -> None:
    """Read the slices of a lane from the slots that their senders have for this rank."""
    half, peer = 0, None
    for one in slices:
        half = 1 - half if peer is not None and one.peer == peer else 0
        peer = one.peer
        one.link.rx_ack(stream)
        stream.copy(one.data, one.link.remote(_slot(slots, half, one.data.size)))
        one.link.tx_data_signal(stream)


def _stage(stream: Stream, one: _Slice, slots: Region, half: int) -> None:
    stream.copy(_slot(slots, half, one.data.size), one.data)


def _slot(slots: Region, half: int, size: RankInt) -> Region:
    """Return the beginning of one of two slots."""
    return Region(slots.buffer, slots.offset + half * (slots.size // 2), size)


def _push(stream: Stream, slices: list[_Slice], half: int) -> None:
    """Send slices over RDMA, one after the other."""
    for one in slices:
        staged = Region(Buffer.CCL_OUT, 0, one.data.size)
        stream.copy(staged, one.data)
        one.link.rx_ack(stream)
        stream.copy(one.link.remote(Region(Buffer.CCL_OUT, half, one.data.size)), staged)
        one.link.tx_data_signal(stream)
        one.link.rx_data_ack(stream)


def _take(stream: Stream, slices: list[_Slice], half: int) -> None:
    """Receive slices over RDMA, one after the other."""
    for one in slices:
        one.link.tx_ack(stream)
        one.link.rx_data_signal(stream)
        one.link.tx_data_ack(stream)
        stream.copy(one.data, Region(Buffer.CCL_OUT, half, one.data.size))
