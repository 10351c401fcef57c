"""NHR_V1 of HCCL, written from its sources: one function per template, as one rank runs it.

Files are those of xiaobingling93-pixel/cann-hcomm @ b5f3e5b under src/algorithm/base/alg_template.
"""

from collections.abc import Sequence
from math import isqrt

from tests.executors.fidelity.transports import Link, Member, Slice, handshake

NOTHING = Slice(0, 0)


class _Ring:
    """A rank among the members of a ring: all of a plane, or some."""

    def __init__(self, member: Member, members: Sequence[int] | None = None) -> None:
        self.members = list(range(member.size)) if members is None else list(members)
        self.member, self.size = member, len(self.members)
        self.at = self.members.index(member.rank)

    def link(self, by: int) -> Link:
        return self.member.link(self.members[(self.at + by) % self.size])

    @property
    def left(self) -> Link:
        return self.link(-1)

    @property
    def right(self) -> Link:
        return self.link(1)


def _reduce_scatter(ring: _Ring, slices: Sequence[Slice], *, barrier: bool) -> None:
    """temp_reduce_scatter/reduce_scatter_ring.cc:180-310 and :171."""
    n = ring.size
    if n == 1:
        return
    rx, tx = (ring.at + n - 2) % n, (ring.at + n - 1) % n
    ring.left.tx_ack()
    ring.right.rx_ack()
    ring.right.tx_async([slices[tx]], reduce=True)
    for _ in range(n - 2):
        ring.left.rx_async([slices[rx]], reduce=True)
        rx, tx = (rx + n - 1) % n, (tx + n - 1) % n
        ring.left.tx_ack()
        ring.right.rx_ack()
        ring.right.tx_async([slices[tx]], reduce=True)
    ring.left.rx_async([slices[ring.at]], reduce=True)
    if barrier:
        handshake(ring.left, ring.right)


def _all_gather(ring: _Ring, slices: Sequence[Slice]) -> None:
    """temp_all_gather/all_gather_ring.cc:148-200 and :139."""
    n = ring.size
    if n == 1:
        return
    tx, rx = ring.at, (ring.at + n - 1) % n
    for _ in range(n - 1):
        ring.left.tx_ack()
        ring.right.rx_ack()
        ring.right.tx_async([slices[tx]])
        ring.left.rx_async([slices[rx]])
        tx, rx = (tx + n - 1) % n, (rx + n - 1) % n
    handshake(ring.left, ring.right)


def _all_reduce(ring: _Ring, slices: Sequence[Slice]) -> None:
    """temp_all_reduce/all_reduce_ring.cc:30: the first half without its barrier."""
    _reduce_scatter(ring, slices, barrier=False)
    _all_gather(ring, slices)


def _broadcast(ring: _Ring, whole: Slice, root: int) -> None:
    """temp_broadcast/broadcast_ring.cc:66-165."""
    if ring.size == 1:
        return
    ring.left.tx_ack()
    ring.right.rx_ack()
    for one in aligned(whole, ring.size):
        if ring.at != root:
            ring.left.rx_async([one])
            ring.left.tx_ack()
        if (ring.at + 1) % ring.size != root:
            ring.right.tx_async([one])
            ring.right.rx_ack()
    ring.right.tx_data_signal()
    ring.left.rx_data_signal()


def _scatter(ring: _Ring, slices: Sequence[Slice], root: int) -> None:
    """temp_scatter/scatter_ring.cc: root :28, last :66, others :83, barrier :229."""
    n = ring.size
    if n == 1:
        return
    if ring.at == root:
        for i in range(1, n):
            ring.right.rx_ack()
            ring.right.tx_async([slices[(ring.at - i + n) % n]])
    elif (ring.at + 1) % n == root:
        ring.left.tx_ack()
        ring.left.rx_async([slices[ring.at]])
    else:
        rounds = (root + n - ring.at) % n
        for i in range(1, rounds + 1):
            ring.left.tx_ack()
            if i != 1:
                ring.right.rx_ack()
                ring.right.tx_async([slices[(ring.at + rounds - i + 1) % n]])
            ring.left.rx_async([slices[(ring.at + rounds - i) % n]])
    handshake(ring.left, ring.right)


def aligned(whole: Slice, parts: int) -> list[Slice]:
    """alg_template_base.cc PrepareSliceData: elements rounded up, then bytes to 128."""
    each = (-(-(whole.size // 4) // parts) * 4 + 127) // 128 * 128
    found, start = [], 0
    for _ in range(parts):
        size = min(each, whole.size - start)
        found.append(Slice(whole.offset + start, size))
        start += size
    return found


class RingInfo:
    """nonuniform_hierarchical_ring_v1_base.cc:16-130, with its names."""

    def __init__(self, size: int) -> None:
        self.rank_size, self.sqrt = size, isqrt(size)
        left = right = self.sqrt
        while left > 0 and right < size:
            if left * right < size:
                right += 1
            elif left * right > size:
                left -= 1
            else:
                break
        if right - left < 5:
            self.col_size, self.row_size = left, right
            self.extra_row = self.extra_col = 0
            self.offset = left * right
            return
        extra = size - self.sqrt * self.sqrt
        self.extra_row = self.sqrt if extra >= self.sqrt else 0
        self.extra_col = extra - self.extra_row
        self.col_size = self.sqrt + (0 if self.extra_row == 0 else 1)
        self.row_size = self.sqrt
        if self.extra_col == 0:
            self.offset = self.col_size * self.row_size
        else:
            self.offset = (self.sqrt + 1) * self.extra_col

    def v_index(self, rank: int) -> int:
        if rank < self.offset:
            return rank // (self.row_size + (self.extra_col != 0))
        return self.extra_col + (rank - self.offset) // self.sqrt

    def h_index(self, rank: int) -> int:
        if rank < self.offset:
            return rank % (self.row_size + (self.extra_col != 0))
        return (rank - self.offset) % self.sqrt

    def v_size(self, h: int) -> int:
        if self.offset == self.rank_size:
            return self.col_size
        return self.extra_col if h == self.sqrt else self.sqrt + (h < self.extra_row)

    def h_size(self, v: int) -> int:
        if self.offset == self.rank_size:
            return self.row_size
        return self.sqrt + (v < self.extra_col)

    def rank(self, v: int, h: int) -> int:
        if self.offset == self.rank_size:
            return v * self.row_size + h
        if v < self.extra_col:
            return (self.sqrt + 1) * v + h
        return self.offset + self.sqrt * (v - self.extra_col) + h

    def row(self, v: int) -> list[int]:
        return [self.rank(v, h) for h in range(self.h_size(v))]

    def broken_column(self, rank: int) -> list[int]:
        """all_gather_nhr_v1.cc RunAllGatherOnVertical: with the member that jumps in."""
        h = self.h_index(rank)
        h = h if h < self.row_size else self.v_index(rank)
        found = [self.rank(v, h) for v in range(self.v_size(h))]
        if self.h_size(h) > self.row_size:
            found.append(self.rank(h, self.sqrt))
        return found

    def blocks(self, slices: Sequence[Slice]) -> list[Slice]:
        found = []
        for v in range(self.v_size(0)):
            row = [slices[rank] for rank in self.row(v)]
            found.append(Slice(row[0].offset, sum(one.size for one in row)))
        return [*found, NOTHING]

    def parts(self, whole: Slice) -> list[Slice]:
        """all_reduce_nhr_v1.cc CalcHSlicesAndLinks, broadcast_nhr_v1.cc SetDefaultSlices."""
        return [*aligned(whole, self.row_size), NOTHING]


def nhr_v1_all_gather(member: Member, slices: Sequence[Slice]) -> None:
    """temp_all_gather/all_gather_nhr_v1.cc:28."""
    info = RingInfo(member.size)
    row = info.row(info.v_index(member.rank))
    _all_gather(_Ring(member, row), [slices[rank] for rank in row])
    _all_gather(_Ring(member, info.broken_column(member.rank)), info.blocks(slices))


def nhr_v1_reduce_scatter(member: Member, slices: Sequence[Slice]) -> None:
    """temp_reduce_scatter/reduce_scatter_nhr_v1.cc:33."""
    info = RingInfo(member.size)
    v, h = info.v_index(member.rank), info.h_index(member.rank)
    column = _Ring(member, info.broken_column(member.rank))
    _reduce_scatter(column, info.blocks(slices), barrier=True)
    has_extra = info.h_size(v) > info.row_size
    if h < info.row_size:
        row = info.row(v)[: info.row_size]
        mine = [slices[rank] for rank in row]
        if has_extra:
            last = mine[-1]
            mine[-1] = Slice(last.offset, last.size + slices[row[-1] + 1].size)
        _reduce_scatter(_Ring(member, row), mine, barrier=True)
    if has_extra and h >= info.row_size - 1:
        sends = h == info.row_size - 1
        link = member.link(member.rank + (1 if sends else -1))
        link.tx_ack()
        link.rx_ack()
        link.tx_async([slices[member.rank + 1]] if sends else [])
        link.rx_async([] if sends else [slices[member.rank]])
        link.data_received_ack()
        handshake(link, link)


def nhr_v1_all_reduce(member: Member, whole: Slice) -> None:
    """temp_all_reduce/all_reduce_nhr_v1.cc:30."""
    info = RingInfo(member.size)
    row, h = _Ring(member, info.row(info.v_index(member.rank))), info.h_index(member.rank)
    parts = info.parts(whole)
    _reduce_scatter(row, parts, barrier=True)
    if info.v_size(h) == info.v_size(0):
        column = _Ring(member, [info.rank(v, h) for v in range(info.v_size(h))])
        _all_reduce(column, aligned(parts[h], column.size))
    _all_gather(row, parts)


def nhr_v1_broadcast(member: Member, whole: Slice, root: int) -> None:
    """temp_broadcast/broadcast_nhr_v1.cc:168."""
    info = RingInfo(member.size)
    v, h = info.v_index(member.rank), info.h_index(member.rank)
    row, parts = _Ring(member, info.row(v)), info.parts(whole)
    if v == info.v_index(root):
        _scatter(row, parts, info.h_index(root))
    if h < info.row_size:
        column = _Ring(member, [info.rank(k, h) for k in range(info.v_size(h))])
        _broadcast(column, parts[h], info.v_index(root))
    _all_gather(row, parts)
