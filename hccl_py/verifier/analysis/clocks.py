"""The loop that knows what happens before what, and looks at every access with that knowledge.

A node happens before another if a path leads there: along a stream, from a post to the wait that
consumed it, and along an RDMA connection, whose writes and posts arrive in the order of their
issue. Chains are streams and, for each stream that issues on an RDMA connection, what it put there:
a write is over on its stream when it was issued, and in memory when it arrives.

Every chain has a clock, the last position of every other chain that it knows to be over. A clock
has a dense part, one entry per main stream, and a sparse one for the other chains. When a main
stream learns of a chain of its own rank (a sub stream that it joins, a DataAck), that knowledge is
folded into the main's position: who knows the main from there on knows the chain. So sparse parts
hold only what is under way, and there is no clock per task: a post carries a copy until its wait
has merged it.

Of every interval of memory the loop keeps the last write, the atomic reductions since, and the
reads since. An access is compared with these only: all older ones happen before them or were
reported.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hccl_py.enums import TaskKind
from hccl_py.program.kernels import kernel_calling
from hccl_py.verifier.analysis.unrolled import CALL

__all__ = [
    "ATOMIC",
    "ATOMIC_RDMA",
    "BESIDE_READ",
    "BESIDE_WRITE",
    "CONNECTION",
    "COPY",
    "EMITTED",
    "ENOUGH",
    "LISTS",
    "NOT_JOINED",
    "NOT_STARTED",
    "OVERRUN",
    "PLAIN",
    "REUSE",
    "SLOTS",
    "TWO_WAITS",
    "UNORDERED_SUM",
    "WIDTH",
    "ClockState",
    "DependencyGraph",
    "Touched",
    "run_clocks",
]

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

BESIDE_READ, BESIDE_WRITE, UNORDERED_SUM, REUSE = 0, 1, 2, 3
OVERRUN, TWO_WAITS, CONNECTION, NOT_STARTED, NOT_JOINED = 4, 5, 6, 7, 8
"""What is emitted, with two nodes, the earlier in the walk first. A read and a write, two writes,
or two atomic sums are in no order; a write follows an RDMA read that is issued but not over; a post
may find its notify still set; two waits of one notify are in no order, or two issues on one
connection; a sub stream works before its main, or after it.
"""

COPY, PLAIN, ATOMIC, ATOMIC_RDMA = 0, 1, 2, 3
"""How a move writes: a copy; a reduction that reads and writes; one that hardware makes atomic,
over SDMA or over RDMA. No source says that two over RDMA are atomic with each other.
"""

ENOUGH, WIDTH, SLOTS, LISTS, EMITTED = 0, 1, 2, 3, 4
"""How the loop ended: well, or because an array was too small."""

_POST, _WAIT, _LAST_MOVE = (
    int(TaskKind.NOTIFY_POST),
    int(TaskKind.NOTIFY_WAIT),
    int(TaskKind.RDMA_WRITE_REDUCE),
)


class DependencyGraph(NamedTuple):
    """Nodes in walk order and by queue, and what order depends on.

    By node: kind, chain, place on it, cell, chain of the RDMA connection it issues on (-1: none)
    and the end of that connection. By end: the first chain of its connection. By such a chain: its
    stream, and where its issues begin. By chain: the number of its rank among the `mains` that
    clocks know, whether it is a main stream, where its records of folding begin. By queue: its
    chain (-1: none) and how many nodes a copy has there.
    """

    order: Int32s
    first: Int64s
    nodes: Int32s
    queue: Int32s
    kind: npt.NDArray[np.int8]
    chain: Int32s
    place: Int32s
    cell: Int64s
    conn: Int32s
    end: Int32s
    conn_first: Int32s
    stream_of_conn: Int32s
    issue_first: Int32s
    home: Int32s
    is_main: Bools
    record_first: Int64s
    chain_of_queue: Int32s
    length_of_queue: Int32s
    rows: int
    copies: int
    ranks: int
    streams: int
    mains: int


class Touched(NamedTuple):
    """Which intervals a node touches. By row: its move or -1. By move: intervals, how it writes,
    which reductions are alike, whether their order shows. By rank: the caller's intervals of IN and
    OUT.
    """

    move: Int32s
    src: Int32s
    src_stop: Int32s
    dst: Int32s
    dst_stop: Int32s
    how: npt.NDArray[np.int8]
    alike: Int32s
    rounds: Bools
    into: Int32s
    into_stop: Int32s
    out: Int32s
    out_stop: Int32s


class ClockState(NamedTuple):
    """What the loop changes. Holders of clocks are the chains, then slots for posts under way."""

    dense: Int32s
    width: Int32s
    sparse_first: Int64s
    sparse_chain: Int32s
    sparse_place: Int32s
    record_upto: Int32s
    record_main: Int32s
    records: Int32s
    free_slots: Int32s
    slot_of_cell: Int32s
    last_wait: Int32s
    conn_place: Int32s
    issue_of_end: Int32s
    issue_place: Int32s
    event_chain: Int32s
    event_place: Int32s
    writer: Int32s
    readers: Int32s
    reducers: Int32s
    list_node: Int32s
    list_next: Int32s
    scratch: Int32s
    emitted: Int32s
    is_implied: Bools
    post_of_wait: Int32s
    started: Int32s
    counts: Int64s
    met: Int32s


IN_A_ROW = 64
"""Waits in a row that are compared with each other."""

FREE, EMISSIONS, STATUS = 0, 1, 2
"""Places in ClockState.counts: head of the free list nodes, emissions so far, how it ended."""


def _last_up_to(values: Int32s, first: int, stop: int, limit: int) -> int:
    """Return where the last of sorted values[first:stop] up to `limit` is; first - 1 for none."""
    low, high = first, stop
    while low < high:
        middle = (low + high) // 2
        if values[middle] <= limit:
            low = middle + 1
        else:
            high = middle
    return int(low - 1)


def _folded_place(g: DependencyGraph, s: ClockState, chain: int, main: int) -> int:
    """Return up to where who knows a main stream up to `main` knows the chain through it."""
    first = g.record_first[chain]
    at = _last_up_to(s.record_main, first, first + s.records[chain], main)
    return int(s.record_upto[at]) if at >= first else -1


def _known_place(g: DependencyGraph, s: ClockState, holder: int, chain: int) -> int:
    """Return the last place of a chain that a clock knows to be over, -1 for none."""
    main = s.dense[holder, g.home[chain]]
    if g.is_main[chain]:
        return int(main)
    first = s.sparse_first[holder]
    at = _last_up_to(s.sparse_chain, first, first + s.width[holder], chain)
    is_there = at >= first and s.sparse_chain[at] == chain
    known = int(s.sparse_place[at]) if is_there else -1
    return max(known, _folded_place(g, s, chain, main))


def _knows(g: DependencyGraph, s: ClockState, holder: int, chain: int, place: int) -> bool:
    """Whether a clock says that a chain is over up to a place."""
    return _known_place(g, s, holder, chain) >= place


def _learn(g: DependencyGraph, s: ClockState, holder: int, chain: int, place: int) -> None:
    """Add one entry to the sparse part of a clock."""
    first = s.sparse_first[holder]
    end = first + s.width[holder]
    at = end
    while at > first and s.sparse_chain[at - 1] > chain:
        at -= 1
    if at > first and s.sparse_chain[at - 1] == chain:
        s.sparse_place[at - 1] = max(s.sparse_place[at - 1], place)
        return
    if end == s.sparse_first[holder + 1]:
        s.counts[STATUS] = WIDTH
        return
    for k in range(end, at, -1):
        s.sparse_chain[k] = s.sparse_chain[k - 1]
        s.sparse_place[k] = s.sparse_place[k - 1]
    s.sparse_chain[at] = chain
    s.sparse_place[at] = place
    s.width[holder] += 1


def _merge(g: DependencyGraph, s: ClockState, into: int, other: int, rank: int) -> None:
    """Let a clock know what another knows; `rank` >= 0 says that it is that rank's main, which
    folds.
    """
    for k in range(g.mains):
        if s.dense[other, k] > s.dense[into, k]:
            s.dense[into, k] = s.dense[other, k]
    if s.width[other] == 0:
        return
    first = s.sparse_first[into]
    i, j, k = first, s.sparse_first[other], 0
    n, m = i + s.width[into], j + s.width[other]
    while i < n or j < m:
        if j >= m or (i < n and s.sparse_chain[i] < s.sparse_chain[j]):
            chain, place = s.sparse_chain[i], s.sparse_place[i]
            i += 1
        else:
            chain, place = s.sparse_chain[j], s.sparse_place[j]
            if i < n and s.sparse_chain[i] == chain:
                place = max(place, s.sparse_place[i])
                i += 1
            j += 1
        if g.home[chain] == rank:
            _fold(g, s, chain, place, s.dense[into, rank])
        elif _folded_place(g, s, chain, s.dense[into, g.home[chain]]) < place:
            s.scratch[0, k] = chain
            s.scratch[1, k] = place
            k += 1
    if k > s.sparse_first[into + 1] - first:
        s.counts[STATUS] = WIDTH
        return
    for at in range(k):
        s.sparse_chain[first + at] = s.scratch[0, at]
        s.sparse_place[first + at] = s.scratch[1, at]
    s.width[into] = k


def _fold(g: DependencyGraph, s: ClockState, chain: int, place: int, main: int) -> None:
    """Record that a main stream knows a chain of its rank from now on."""
    last = g.record_first[chain] + s.records[chain] - 1
    if s.records[chain] and s.record_upto[last] >= place:
        return
    s.record_upto[last + 1] = place
    s.record_main[last + 1] = main
    s.records[chain] += 1


def _copy_clock(s: ClockState, into: int, other: int) -> None:
    for k in range(s.dense.shape[1]):
        s.dense[into, k] = s.dense[other, k]
    first, end, there = s.sparse_first[into], s.sparse_first[into + 1], s.sparse_first[other]
    n = s.width[other]
    if n > end - first:
        s.counts[STATUS] = WIDTH
        return
    for k in range(n):
        s.sparse_chain[first + k] = s.sparse_chain[there + k]
        s.sparse_place[first + k] = s.sparse_place[there + k]
    s.width[into] = n


def _emit(s: ClockState, what: int, early: int, late: int, interval: int) -> None:
    """Emit a pair of nodes; neighbouring intervals of the same pair become one entry."""
    n = s.counts[EMISSIONS]
    if n > 0 and interval >= 0:
        last = n - 1
        same = s.emitted[last, 0] == what and s.emitted[last, 1] == early
        if same and s.emitted[last, 2] == late and s.emitted[last, 4] == interval:
            s.emitted[last, 4] = interval + 1
            return
    if n == len(s.emitted):
        s.counts[STATUS] = EMITTED
        return
    s.emitted[n, 0] = what
    s.emitted[n, 1] = early
    s.emitted[n, 2] = late
    s.emitted[n, 3] = interval
    s.emitted[n, 4] = interval + 1
    s.counts[EMISSIONS] = n + 1


def _is_before(g: DependencyGraph, s: ClockState, early: int, holder: int) -> bool:
    """Whether the access of a node is over before what the holder does now."""
    chain = s.event_chain[early]
    return chain == holder or _knows(g, s, holder, chain, s.event_place[early])


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
    """Give an interval's list back."""
    entry = heads[interval]
    while entry >= 0:
        following = s.list_next[entry]
        s.list_next[entry] = s.counts[FREE]
        s.counts[FREE] = entry
        entry = following
    heads[interval] = -1


def _read(g: DependencyGraph, s: ClockState, interval: int, node: int, holder: int) -> None:
    early = s.writer[interval]
    if early >= 0 and not _is_before(g, s, early, holder):
        _emit(s, BESIDE_READ, early, node, interval)
    entry = s.reducers[interval]
    while entry >= 0:
        early = s.list_node[entry]
        if not _is_before(g, s, early, holder):
            _emit(s, BESIDE_READ, early, node, interval)
        entry = s.list_next[entry]
    entry = s.readers[interval]
    if entry >= 0 and s.event_chain[s.list_node[entry]] == holder:
        s.list_node[entry] = node
    else:
        _push(s, s.readers, interval, node)


def _beside_readers(
    g: DependencyGraph, s: ClockState, interval: int, node: int, holder: int
) -> None:
    """Compare a write with the reads since the last write."""
    entry = s.readers[interval]
    while entry >= 0:
        early = s.list_node[entry]
        if early != node and not _is_before(g, s, early, holder):
            issued = g.conn[early] >= 0 and _knows(g, s, holder, g.chain[early], g.place[early])
            same = g.conn[early] >= 0 and g.chain[early] == holder
            _emit(s, REUSE if issued or same else BESIDE_READ, early, node, interval)
        entry = s.list_next[entry]


def _write(g: DependencyGraph, s: ClockState, interval: int, node: int, holder: int) -> None:
    early = s.writer[interval]
    if early >= 0 and not _is_before(g, s, early, holder):
        _emit(s, BESIDE_WRITE, early, node, interval)
    _beside_readers(g, s, interval, node, holder)
    entry = s.reducers[interval]
    while entry >= 0:
        early = s.list_node[entry]
        if not _is_before(g, s, early, holder):
            _emit(s, BESIDE_WRITE, early, node, interval)
        entry = s.list_next[entry]
    _clear(s, s.readers, interval)
    _clear(s, s.reducers, interval)
    s.writer[interval] = node


def _add(
    g: DependencyGraph, t: Touched, s: ClockState, interval: int, node: int, holder: int
) -> None:
    """An atomic reduction: unordered ones that are alike may only differ in rounding."""
    early = s.writer[interval]
    if early >= 0 and not _is_before(g, s, early, holder):
        _emit(s, BESIDE_WRITE, early, node, interval)
    _beside_readers(g, s, interval, node, holder)
    mine = t.move[node % g.rows]
    entry = s.reducers[interval]
    while entry >= 0:
        early = s.list_node[entry]
        if not _is_before(g, s, early, holder):
            other = t.move[early % g.rows]
            both_rdma = t.how[other] == ATOMIC_RDMA and t.how[mine] == ATOMIC_RDMA
            if both_rdma or t.alike[other] != t.alike[mine]:
                _emit(s, BESIDE_WRITE, early, node, interval)
            elif t.rounds[mine]:
                _emit(s, UNORDERED_SUM, early, node, interval)
        entry = s.list_next[entry]
    _push(s, s.reducers, interval, node)


def _issue(g: DependencyGraph, s: ClockState, node: int, holder: int) -> int:
    """Put a node on its RDMA connection, behind what is known to be there; return that chain."""
    conn, end = g.conn[node], g.end[node]
    _merge(g, s, conn, holder, -1)
    if not g.is_main[holder]:
        _learn(g, s, conn, holder, g.place[node])
    for other in range(g.conn_first[end], g.conn_first[end + 1]):
        if other != conn and s.conn_place[other] >= 0:
            known = _known_place(g, s, holder, g.stream_of_conn[other])
            first = g.issue_first[other]
            stop = first + s.conn_place[other] + 1
            behind = _last_up_to(s.issue_place, first, stop, known) - first
            if behind >= 0:
                _learn(g, s, conn, other, behind)
    last = s.issue_of_end[end]
    if last >= 0 and not _knows_node(g, s, holder, last):
        _emit(s, CONNECTION, last, node, -1)
    s.issue_of_end[end] = node
    s.conn_place[conn] += 1
    s.issue_place[g.issue_first[conn] + s.conn_place[conn]] = g.place[node]
    return int(conn)


def _move(g: DependencyGraph, t: Touched, s: ClockState, node: int, holder: int) -> None:
    move = t.move[node % g.rows]
    if move < 0:
        return
    for interval in range(t.src[move], t.src_stop[move]):
        _read(g, s, interval, node, holder)
    for interval in range(t.dst[move], t.dst_stop[move]):
        if t.how[move] >= ATOMIC:
            _add(g, t, s, interval, node, holder)
        else:
            _write(g, s, interval, node, holder)


def _post(g: DependencyGraph, s: ClockState, node: int, holder: int) -> None:
    cell = g.cell[node]
    last = s.last_wait[cell]
    if s.slot_of_cell[cell] < 0:  # otherwise the walk has seen that the bit is still set
        if last >= 0 and not _knows_node(g, s, holder, last):
            _emit(s, OVERRUN, last, node, -1)
        n = s.free_slots[0]
        if n == 0:
            s.counts[STATUS] = SLOTS
            return
        s.slot_of_cell[cell] = s.free_slots[n]
        s.free_slots[0] = n - 1
    chain = s.event_chain[node]
    slot = s.slot_of_cell[cell]
    _copy_clock(s, slot, chain)
    if not g.is_main[chain]:
        _learn(g, s, slot, chain, s.event_place[node])


def _knows_node(g: DependencyGraph, s: ClockState, holder: int, node: int) -> bool:
    """Whether a node's stream is known to have got past it."""
    return g.chain[node] == holder or _knows(g, s, holder, g.chain[node], g.place[node])


def _wait(g: DependencyGraph, s: ClockState, node: int, post: int, holder: int) -> None:
    cell = g.cell[node]
    last = s.last_wait[cell]
    if last >= 0 and not _knows_node(g, s, holder, last):
        _emit(s, TWO_WAITS, last, node, -1)
    s.is_implied[node] = _is_before(g, s, post, holder)
    slot = s.slot_of_cell[cell]
    _imply_earlier(g, s, node, slot)
    _merge(g, s, holder, slot, g.home[holder] if g.is_main[holder] else -1)
    s.slot_of_cell[cell] = -1
    s.free_slots[0] += 1
    s.free_slots[s.free_slots[0]] = slot
    s.last_wait[cell] = node
    s.post_of_wait[node] = post


def _imply_earlier(g: DependencyGraph, s: ClockState, node: int, slot: int) -> None:
    """Nothing happens between waits in a row: what a later one brings, an earlier one need not."""
    at = g.first[g.queue[node]] + g.place[node] - 1
    stop = max(g.first[g.queue[node]] - 1, at - IN_A_ROW)
    while at > stop and g.kind[g.nodes[at]] == _WAIT:
        earlier = g.nodes[at]
        post = s.post_of_wait[earlier]
        if not s.is_implied[earlier]:
            s.is_implied[earlier] = _knows(g, s, slot, s.event_chain[post], s.event_place[post])
        at -= 1


def _call(g: DependencyGraph, t: Touched, s: ClockState, node: int, holder: int) -> None:
    """The caller between two ops: the subs have ended, and user memory is the caller's."""
    number, rank = divmod(node - g.copies * g.rows, g.ranks)
    if number > 0:
        for queue in range(rank * g.streams + 1, (rank + 1) * g.streams):
            chain, last = g.chain_of_queue[queue], number * g.length_of_queue[queue] - 1
            if chain >= 0 and not _knows(g, s, holder, chain, last):
                _emit(s, NOT_JOINED, node, queue, -1)
    if number == 1 and len(s.met):
        for k in range(g.mains):
            s.met[g.home[holder], k] = s.dense[holder, k]
    for interval in range(t.into[rank], t.into_stop[rank]):
        _write(g, s, interval, node, holder)
    for interval in range(t.out[rank], t.out_stop[rank]):
        _write(g, s, interval, node, holder)


def _check_started(g: DependencyGraph, s: ClockState, node: int, holder: int) -> None:
    """A sub stream's node comes after the call that its copy follows."""
    copy, main = node // g.rows, g.queue[node] // g.streams * g.streams
    call = copy * (g.length_of_queue[main] + 1)
    if s.dense[holder, g.home[holder]] < call and s.started[holder] < copy:
        s.started[holder] = copy
        _emit(s, NOT_STARTED, node, node, -1)


@kernel_calling(
    lambda: (
        _imply_earlier,
        _last_up_to,
        _folded_place,
        _known_place,
        _knows,
        _learn,
        _fold,
        _merge,
        _copy_clock,
        _emit,
        _is_before,
        _push,
        _clear,
        _read,
        _beside_readers,
        _write,
        _add,
        _issue,
        _move,
        _knows_node,
        _post,
        _wait,
        _call,
        _check_started,
    ),
    allocates=False,
)
def run_clocks(g: DependencyGraph, t: Touched, s: ClockState, post_of: Int32s) -> int:
    """Go through the walk; return how it ended."""
    for node in g.order:
        chain, kind = g.chain[node], g.kind[node]
        s.event_chain[node] = chain
        s.event_place[node] = g.place[node]
        if g.is_main[chain]:
            s.dense[chain, g.home[chain]] = g.place[node]
        if kind == _WAIT:
            _wait(g, s, node, post_of[node], chain)
        elif kind == CALL:
            _call(g, t, s, node, chain)
        holder = chain
        if g.conn[node] >= 0:
            holder = _issue(g, s, node, chain)
            s.event_chain[node] = holder
            s.event_place[node] = s.conn_place[holder]
        if kind == _POST:
            _post(g, s, node, chain)
        elif kind <= _LAST_MOVE:
            _move(g, t, s, node, holder)
        if kind != CALL and not g.is_main[chain]:
            _check_started(g, s, node, chain)
        if s.counts[STATUS] != ENOUGH:
            break
    return int(s.counts[STATUS])
