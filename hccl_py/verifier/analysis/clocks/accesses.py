"""The last accesses to every interval of memory, and the accesses in no order with them.

For every interval the loop keeps the last write, the atomic reductions since, and the reads since.
An access is compared with these only: all older ones happen before them or were reported.
"""

from __future__ import annotations

from hccl_py.verifier.analysis.clocks.arrays import (
    ATOMIC,
    ATOMIC_RDMA,
    FREE,
    LISTS,
    STATUS,
    AccessedIntervals,
    ClockState,
    DependencyGraph,
    Int32s,
)
from hccl_py.verifier.analysis.clocks.emissions import (
    BESIDE_READ,
    BESIDE_WRITE,
    REUSE,
    UNORDERED_SUM,
    emit,
)
from hccl_py.verifier.analysis.clocks.vector_clocks import is_before, knows


def _push(s: ClockState, heads: Int32s, interval: int, node: int) -> None:
    """Put a node on an interval's list."""
    entry = s.counts[FREE]
    if entry < 0:
        s.counts[STATUS] = LISTS
        return
    s.counts[FREE] = s.list_next[entry]
    s.list_node[entry] = node
    s.list_next[entry] = heads[interval]
    heads[interval] = entry


def _clear(s: ClockState, heads: Int32s, interval: int) -> None:
    """Free an interval's list."""
    entry = heads[interval]
    while entry >= 0:
        following = s.list_next[entry]
        s.list_next[entry] = s.counts[FREE]
        s.counts[FREE] = entry
        entry = following
    heads[interval] = -1


def _read(g: DependencyGraph, s: ClockState, interval: int, node: int, holder: int) -> None:
    """Compare a read with the last write and the reductions since, and keep it."""
    early = s.writer[interval]
    if early >= 0 and not is_before(g, s, early, holder):
        emit(s, BESIDE_READ, early, node, interval)
    entry = s.reducers[interval]
    while entry >= 0:
        early = s.list_node[entry]
        if not is_before(g, s, early, holder):
            emit(s, BESIDE_READ, early, node, interval)
        entry = s.list_next[entry]
    entry = s.readers[interval]
    if entry >= 0 and s.event_chain[s.list_node[entry]] == holder:
        s.list_node[entry] = node  # a later read of the same chain stands for both
    else:
        _push(s, s.readers, interval, node)


def _beside_readers(
    g: DependencyGraph, s: ClockState, interval: int, node: int, holder: int
) -> None:
    """Compare a write with the reads since the last write."""
    entry = s.readers[interval]
    while entry >= 0:
        early = s.list_node[entry]
        if early != node and not is_before(g, s, early, holder):
            issued = g.conn[early] >= 0 and knows(g, s, holder, g.chain[early], g.place[early])
            same = g.conn[early] >= 0 and g.chain[early] == holder
            emit(s, REUSE if issued or same else BESIDE_READ, early, node, interval)
        entry = s.list_next[entry]


def write(g: DependencyGraph, s: ClockState, interval: int, node: int, holder: int) -> None:
    """Compare a write with the last write and all accesses since, and keep it instead of them."""
    early = s.writer[interval]
    if early >= 0 and not is_before(g, s, early, holder):
        emit(s, BESIDE_WRITE, early, node, interval)
    _beside_readers(g, s, interval, node, holder)
    entry = s.reducers[interval]
    while entry >= 0:
        early = s.list_node[entry]
        if not is_before(g, s, early, holder):
            emit(s, BESIDE_WRITE, early, node, interval)
        entry = s.list_next[entry]
    _clear(s, s.readers, interval)
    _clear(s, s.reducers, interval)
    s.writer[interval] = node


def _add(
    g: DependencyGraph, a: AccessedIntervals, s: ClockState, interval: int, node: int, holder: int
) -> None:
    """Compare an atomic reduction with the accesses so far, and keep it. Unordered ones of the same
    op and data type are right, but for rounding.
    """
    early = s.writer[interval]
    if early >= 0 and not is_before(g, s, early, holder):
        emit(s, BESIDE_WRITE, early, node, interval)
    _beside_readers(g, s, interval, node, holder)
    mine = a.move[node % g.rows]
    entry = s.reducers[interval]
    while entry >= 0:
        early = s.list_node[entry]
        if not is_before(g, s, early, holder):
            other = a.move[early % g.rows]
            both_rdma = a.how[other] == ATOMIC_RDMA and a.how[mine] == ATOMIC_RDMA
            if both_rdma or a.alike[other] != a.alike[mine]:
                emit(s, BESIDE_WRITE, early, node, interval)
            elif a.rounds[mine]:
                emit(s, UNORDERED_SUM, early, node, interval)
        entry = s.list_next[entry]
    _push(s, s.reducers, interval, node)


def move_data(
    g: DependencyGraph, a: AccessedIntervals, s: ClockState, node: int, holder: int
) -> None:
    """Compare what a move reads and writes with the accesses before it."""
    move = a.move[node % g.rows]
    if move < 0:
        return
    is_odd = node // g.rows % 2 == 1
    first = a.src_odd[move] if is_odd else a.src[move]
    for interval in range(first, first + a.src_stop[move] - a.src[move]):
        _read(g, s, interval, node, holder)
    first = a.dst_odd[move] if is_odd else a.dst[move]
    for interval in range(first, first + a.dst_stop[move] - a.dst[move]):
        if a.how[move] >= ATOMIC:
            _add(g, a, s, interval, node, holder)
        else:
            write(g, s, interval, node, holder)


HELPERS = (_push, _clear, _read, _beside_readers, write, _add, move_data)
