"""Recursive halving and doubling of HCCL, written from its sources, as one rank runs it.

Files are those of xiaobingling93-pixel/cann-hcomm @ b5f3e5b under src/algorithm/base/alg_template.
Links of this algorithm ask for the DataReceivedAck: base/communicator/calc_hd_transport_req.cc:74.
"""

from collections.abc import Sequence
from itertools import pairwise

from tests.executors.fidelity.transports import Link, Member, Slice


class Block:
    """recursive_halvingdoubling_base.cc:23 and, with a root, reduce_recursive_hd.cc:213.

    The first 2(p - b) ranks are pairs; of each, one takes part in the block of b = 2^round ranks.
    """

    def __init__(self, me: Member, root: int = 0) -> None:
        self.me = me
        self.round = me.size.bit_length() - 1
        self.size = 1 << self.round
        self.part1 = (me.size - self.size) * 2
        self.odd = root % 2 if root < self.part1 else 0
        self.is_paired = me.rank < self.part1
        self.is_member = not self.is_paired or me.rank % 2 == self.odd
        self.number = self.number_of(me.rank)

    def number_of(self, rank: int) -> int:
        """A rank's number in the block."""
        return rank // 2 if rank < self.part1 else rank - self.part1 // 2

    def link(self, number: int) -> Link:
        """The link to a member of the block."""
        is_paired = number < self.part1 // 2
        return self.me.link(2 * number + self.odd if is_paired else number + self.part1 // 2)

    @property
    def other(self) -> Link:
        """The link to the other rank of the pair."""
        return self.me.link(self.me.rank ^ 1)

    def slices(self, whole: int) -> list[Slice]:
        """recursive_halvingdoubling_base.cc:63: multiples of 128 bytes, the last ones short."""
        each = -(-whole // self.size)
        each = -(-each // 128) * 128
        starts = [min(i * each, whole) for i in range(self.size + 1)]
        return [Slice(a, b - a) for a, b in pairwise(starts)]

    def slices_of_ranks(self, size: int) -> list[Slice]:
        """all_gather_recursive_hd.cc:69, reduce_scatter_recursive_hd.cc:86: a slice per rank, two
        where both ranks of a pair have one.
        """
        pairs = self.part1 // 2
        return [
            Slice((2 * i if i < pairs else i + pairs) * size, size * (2 if i < pairs else 1))
            for i in range(self.size)
        ]


def _both(link: Link, tx: Sequence[Slice], rx: Sequence[Slice], *, reduce: bool = False) -> None:
    """all_gather_halving_doubling.cc:174-192, reduce_scatter_halving_doubling.cc:207-230."""
    link.tx_ack()
    link.rx_ack()
    link.tx_async(tx, reduce=reduce)
    link.rx_async(rx, reduce=reduce)
    link.data_received_ack()


def _one_way(link: Link, data: Slice, *, sends: bool, reduce: bool = False) -> None:
    """alg_template_base.cc:994 ExecuteRxSync and :1008 ExecuteTxSync behind both Acks; with
    reductions all_reduce_recursive_hd.cc:135-148 and :157-175. What goes the other way is empty.
    """
    tx, rx = ([data], []) if sends else ([], [data])
    _both(link, tx, rx, reduce=reduce)


def _run(slices: Sequence[Slice], first: int, count: int) -> Slice:
    part = slices[first : first + count]
    return Slice(part[0].offset, sum(one.size for one in part))


def _halve(block: Block, slices: Sequence[Slice]) -> None:
    """reduce_scatter_halving_doubling.cc:67 CalcStepSlices, :194 RunReduceScatter."""
    for step in range(block.round):
        bit = 1 << (block.round - 1 - step)
        peer = block.number ^ bit
        tx, rx = (_run(slices, n & -bit, bit) for n in (peer, block.number))
        _both(block.link(peer), [tx], [rx], reduce=True)


def _double(block: Block, slices: Sequence[Slice]) -> None:
    """all_gather_halving_doubling.cc:43 CalculateSlices, :158 RunAllGather."""
    for step in range(block.round):
        bit = 1 << step
        peer = block.number ^ bit
        tx, rx = (_run(slices, n & -bit, bit) for n in (block.number, peer))
        _both(block.link(peer), [tx], [rx])


def hd_all_gather(me: Member, slices: Sequence[Slice]) -> None:
    """all_gather_recursive_hd.cc:58-62."""
    block, size = Block(me), slices[0].size
    if block.is_paired:
        _one_way(block.other, slices[me.rank | 1], sends=not block.is_member)
    if block.is_member:
        _double(block, block.slices_of_ranks(size))
    if block.is_paired:
        _one_way(block.other, Slice(0, size * me.size), sends=block.is_member)


def hd_reduce_scatter(me: Member, slices: Sequence[Slice]) -> None:
    """reduce_scatter_recursive_hd.cc:73-79."""
    block, size = Block(me), slices[0].size
    if block.is_paired:
        whole = Slice(0, size * me.size)
        _one_way(block.other, whole, sends=not block.is_member, reduce=True)
    if block.is_member:
        _halve(block, block.slices_of_ranks(size))
    if block.is_paired:
        _one_way(block.other, slices[me.rank | 1], sends=block.is_member)


def hd_all_reduce(me: Member, whole: Slice) -> None:
    """all_reduce_recursive_hd.cc:40-46."""
    block = Block(me)
    slices = block.slices(whole.size)
    if block.is_paired:
        _one_way(block.other, whole, sends=not block.is_member, reduce=True)
    if block.is_member:
        _halve(block, slices)
        _double(block, slices)
    if block.is_paired:
        _one_way(block.other, whole, sends=block.is_member)


def hd_broadcast(me: Member, whole: Slice, root: int = 0) -> None:
    """bcast_recursive_halvingdoubling.cc:172 BroadcastInBlock, :223 and :258 for the pairs."""
    block, has_data = Block(me, root), me.rank == root
    home = block.number_of(root)
    for step in range(block.round if block.is_member else 0):
        bit = 1 << (block.round - 1 - step)
        link = block.link(block.number ^ bit)
        if has_data:
            _one_way(link, whole, sends=True)
        elif block.number & (bit - 1) == home & (bit - 1):
            _one_way(link, whole, sends=False)
            has_data = True
    if block.is_paired:
        _one_way(block.other, whole, sends=block.is_member)


def hd_reduce(me: Member, whole: Slice, root: int = 0) -> None:
    """reduce_recursive_hd.cc:72-78, :238 GatherInBlock; its test for the root's number in the block
    is off by one for the first rank behind the pairs (:251), where both sides then agree.
    """
    block = Block(me, root)
    slices = block.slices(whole.size)
    if block.is_paired:
        _one_way(block.other, whole, sends=not block.is_member, reduce=True)
    if not block.is_member:
        return
    _halve(block, slices)
    home = root - block.part1 // 2 if root > block.part1 else root // 2
    for step in range(block.round):
        bit = 1 << step
        if block.number & (bit - 1) != home & (bit - 1):
            return
        peer = block.number ^ bit
        sends = block.number & bit != home & bit
        part = _run(slices, (block.number if sends else peer) & -bit, bit)
        _one_way(block.link(peer), part, sends=sends)


def hd_reduce_over_mesh(me: Member, whole: Slice) -> None:
    """temp_reduce/reduce_recursive_hd.cc:71-80 of libochao-huawei/hcomm @ 8958adb to rank 0, for a
    power of two ranks, over links that do not ask for the DataReceivedAck: component/reducer.cc
    leaves it out then, GatherInBlock does not.
    """
    block = Block(me)
    slices = block.slices(whole.size)
    for step in range(block.round):
        bit = 1 << (block.round - 1 - step)
        peer = me.rank ^ bit
        link = me.link(peer)
        link.tx_ack()
        link.rx_ack()
        link.tx_async([_run(slices, peer & -bit, bit)], reduce=True)
        link.rx_async([_run(slices, me.rank & -bit, bit)], reduce=True)
    for step in range(block.round):
        bit = 1 << step
        if me.rank & (bit - 1):
            return
        sends = bool(me.rank & bit)
        part = _run(slices, me.rank if sends else me.rank ^ bit, bit)
        _one_way(me.link(me.rank ^ bit), part, sends=sends)
