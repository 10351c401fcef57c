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

A notify that counts is taken once for each post, so its k-th wait is in order behind whatever is
before all but k - 1 of the posts that may come before it: one stream's k-th post and all before
that, and of the posts of several streams what is certain, whichever come first. Posts that the walk
meets later are taken to come after the wait. When one of them turns out not to know the wait, the
loop is run again, with that one among those that may come first, and the clock that the pass before
has found for it; until a pass finds what it was given. Then everything holds: whatever run broke an
order first would have to have broken another one before.

Of every interval of memory the loop keeps the last write, the atomic reductions since, and the
reads since. An access is compared with these only: all older ones happen before them or were
reported.
"""

from __future__ import annotations

from hccl_py.enums import TaskKind
from hccl_py.program.kernels import kernel_calling
from hccl_py.verifier.analysis.clock_arrays import (
    ATOMIC,
    ATOMIC_RDMA,
    BESIDE_READ,
    BESIDE_WRITE,
    CONNECTION,
    EMITTED,
    ENOUGH,
    LISTS,
    NONE,
    NOT_JOINED,
    NOT_STARTED,
    OVERRUN,
    REUSE,
    SLOTS,
    TWO_WAITS,
    UNORDERED_SUM,
    WIDTH,
    ClockState,
    DependencyGraph,
    Int32s,
    Touched,
)
from hccl_py.verifier.analysis.unrolled import CALL

__all__ = ["run_clocks"]

_POST, _WAIT, _LAST_MOVE = (
    int(TaskKind.NOTIFY_POST),
    int(TaskKind.NOTIFY_WAIT),
    int(TaskKind.RDMA_WRITE_REDUCE),
)


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


def _folded_place(g: DependencyGraph, s: ClockState, chain: int, main: int, is_prior: bool) -> int:
    """Return up to where who knows a main stream up to `main` knows the chain through it, in this
    pass or in the one before.
    """
    first = g.record_first[chain]
    if is_prior:
        at = _last_up_to(s.prior_main, first, first + s.prior_records[chain], main)
        return int(s.prior_upto[at]) if at >= first else -1
    at = _last_up_to(s.record_main, first, first + s.records[chain], main)
    return int(s.record_upto[at]) if at >= first else -1


def _is_prior(g: DependencyGraph, s: ClockState, holder: int) -> bool:
    """Whether a clock is of the pass before: that of a post which this one has not met."""
    at = holder - g.shared_base
    return 0 <= at < len(g.shared_posts) and s.has_clock[at] < 2


def _known_place(g: DependencyGraph, s: ClockState, holder: int, chain: int) -> int:
    """Return the last place of a chain that a clock knows to be over, -1 for none."""
    main = s.dense[holder, g.home[chain]]
    if g.is_main[chain]:
        return int(main)
    first = s.sparse_first[holder]
    at = _last_up_to(s.sparse_chain, first, first + s.width[holder], chain)
    is_there = at >= first and s.sparse_chain[at] == chain
    known = int(s.sparse_place[at]) if is_there else -1
    return max(known, _folded_place(g, s, chain, main, _is_prior(g, s, holder)))


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
        elif _folded_place(g, s, chain, s.dense[into, g.home[chain]], False) < place:
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
    is_odd = node // g.rows % 2 == 1
    first = t.src_odd[move] if is_odd else t.src[move]
    for interval in range(first, first + t.src_stop[move] - t.src[move]):
        _read(g, s, interval, node, holder)
    first = t.dst_odd[move] if is_odd else t.dst[move]
    for interval in range(first, first + t.dst_stop[move] - t.dst[move]):
        if t.how[move] >= ATOMIC:
            _add(g, t, s, interval, node, holder)
        else:
            _write(g, s, interval, node, holder)


def _post(g: DependencyGraph, s: ClockState, node: int, holder: int) -> None:
    cell = g.cell[node]
    if g.counts:
        slot = s.slot_of_post[node]  # of a shared cell it has one from the start
        if slot < 0:
            slot = s.slot_of_post[node] = _free_slot(s)
    else:
        slot = s.slot_of_cell[cell]
        if slot < 0:  # otherwise the walk has seen that the bit is still set
            last = s.last_wait[cell]
            if last >= 0 and not _knows_node(g, s, holder, last):
                _emit(s, OVERRUN, last, node, -1)
            slot = s.slot_of_cell[cell] = _free_slot(s)
    if slot < 0:
        return
    is_shared = g.counts and g.shared[cell] >= 0
    if is_shared:
        s.has_clock[slot - g.shared_base] = 2
    chain = s.event_chain[node]
    _copy_clock(s, slot, chain)
    if not g.is_main[chain]:
        _learn(g, s, slot, chain, s.event_place[node])
    if is_shared:
        s.overtakes[slot - g.shared_base] = _first_unknown_wait(g, s, g.shared[cell], slot)


def _first_unknown_wait(g: DependencyGraph, s: ClockState, cell: int, slot: int) -> int:
    """Return the first of the waits so far that a post of theirs does not know: it may come before
    it; NONE where it knows all.
    """
    found, at = NONE, s.waits_seen[cell] - 1
    while at >= 0:
        wait = g.shared_waits[g.shared_wait_first[cell] + at]
        if not _knows(g, s, slot, g.chain[wait], g.place[wait]):
            found = at
        elif s.wait_number[wait] == at + 1:  # which knows all before it
            break
        at -= 1
    return int(found)


def _free_slot(s: ClockState) -> int:
    n = s.free_slots[0]
    if n == 0:
        s.counts[STATUS] = SLOTS
        return -1
    s.free_slots[0] = n - 1
    return int(s.free_slots[n])


def _knows_node(g: DependencyGraph, s: ClockState, holder: int, node: int) -> bool:
    """Whether a node's stream is known to have got past it."""
    return g.chain[node] == holder or _knows(g, s, holder, g.chain[node], g.place[node])


def _wait(g: DependencyGraph, s: ClockState, node: int, post: int, holder: int) -> None:
    cell = g.cell[node]
    if g.counts and g.shared[cell] >= 0:
        _wait_for_some(g, s, node, holder)
        return
    last = s.last_wait[cell]
    if last >= 0 and not _knows_node(g, s, holder, last):
        _emit(s, TWO_WAITS, last, node, -1)
    s.is_implied[node] = _is_before(g, s, post, holder)
    slot = s.slot_of_post[post] if g.counts else s.slot_of_cell[cell]
    _imply_earlier(g, s, node, slot)
    _merge(g, s, holder, slot, g.home[holder] if g.is_main[holder] else -1)
    if not g.counts:
        s.slot_of_cell[cell] = -1
    s.free_slots[0] += 1
    s.free_slots[s.free_slots[0]] = slot
    s.last_wait[cell] = node
    s.post_of_wait[node] = post


def _wait_for_some(g: DependencyGraph, s: ClockState, node: int, holder: int) -> None:
    """A wait of a shared cell, the k-th for certain, learns what all but k - 1 of the posts know
    that are not certain to come after it.
    """
    cell = g.shared[g.cell[node]]
    number = _number_of_wait(g, s, node, cell, holder)
    number, n = _posts_to_come(g, s, node, cell, holder, number)
    if number <= 0:
        return
    for k in range(g.mains):
        for c in range(n):
            s.values[c] = s.dense[s.candidates[c], k]
        s.dense[holder, k] = max(s.dense[holder, k], _kth_least(s, n, number))
    rank = g.home[holder] if g.is_main[holder] else -1
    for c in range(n):
        first = s.sparse_first[s.candidates[c]]
        for at in range(first, first + s.width[s.candidates[c]]):
            chain = s.sparse_chain[at]
            if s.chain_met_by[chain] == node:
                continue
            s.chain_met_by[chain] = node
            for other in range(n):
                s.values[other] = _known_place(g, s, s.candidates[other], chain)
            place = _kth_least(s, n, number)
            if place > _known_place(g, s, holder, chain):
                if g.home[chain] == rank:
                    _fold(g, s, chain, place, s.dense[holder, rank])
                else:
                    _learn(g, s, holder, chain, place)


def _posts_to_come(
    g: DependencyGraph, s: ClockState, node: int, cell: int, holder: int, number: int
) -> tuple[int, int]:
    """Collect the posts that may come before a wait and are not over anyway; return how many of
    them it needs, and how many there are.
    """
    at, stop = g.shared_first[cell], g.shared_first[cell + 1]
    if s.wait_number[node] == s.waits_seen[cell]:  # it knows what all waits before it know
        number -= s.posts_over[cell] - at
        at = s.posts_over[cell]
    n, over, streams = 0, at, 0
    while at < stop and number > 0 and streams < g.shared_posters[cell]:
        post = g.shared_posts[at]
        if s.has_clock[at] > 1 and _is_before(g, s, post, holder):
            number -= 1
            if over == at:
                over += 1
        elif s.has_clock[at] > 1 or (s.may_overtake[at] < s.waits_seen[cell] and s.has_clock[at]):
            s.candidates[n] = g.shared_base + at
            n += 1
        elif s.may_overtake[at] < s.waits_seen[cell]:
            number -= 1  # it may come first, and nobody says what it knows
        elif s.met_by[g.queue[post]] != node:  # it comes later, and so do all behind it
            s.met_by[g.queue[post]] = node
            streams += 1
        at += 1
    s.posts_over[cell] = max(s.posts_over[cell], over)
    return number, n


def _number_of_wait(g: DependencyGraph, s: ClockState, node: int, cell: int, holder: int) -> int:
    """Return the how manieth wait of a shared cell this is at least: 1 + those known to be over."""
    number, at = 1, s.waits_seen[cell] - 1
    first = g.shared_wait_first[cell]
    while at >= 0:
        earlier = g.shared_waits[first + at]
        if not _knows_node(g, s, holder, earlier):
            _emit(s, TWO_WAITS, earlier, node, -1)
        elif s.wait_number[earlier] == at + 1:  # which knows all before it
            number += at + 1
            break
        else:
            number += 1
        at -= 1
    s.waits_seen[cell] += 1
    s.wait_number[node] = number
    return int(number)


def _kth_least(s: ClockState, n: int, k: int) -> int:
    """Return the k-th least of the first n values, which change places."""
    sign, steps = 1, k
    if 2 * k > n + 1:  # look for it among the greatest
        sign, steps = -1, n - k + 1
    for at in range(steps):
        least = at
        for other in range(at + 1, n):
            if sign * s.values[other] < sign * s.values[least]:
                least = other
        s.values[at], s.values[least] = s.values[least], s.values[at]
    return int(s.values[steps - 1])


def _imply_earlier(g: DependencyGraph, s: ClockState, node: int, slot: int) -> None:
    """Nothing happens between waits in a row: what a later one brings, an earlier one need not."""
    at = g.first[g.queue[node]] + g.place[node] - 1
    stop = max(g.first[g.queue[node]] - 1, at - IN_A_ROW)
    while at > stop and g.kind[g.nodes[at]] == _WAIT:
        earlier = g.nodes[at]
        post = s.post_of_wait[earlier]
        if not s.is_implied[earlier] and post >= 0:
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
        _is_prior,
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
        _free_slot,
        _first_unknown_wait,
        _kth_least,
        _number_of_wait,
        _posts_to_come,
        _wait_for_some,
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
