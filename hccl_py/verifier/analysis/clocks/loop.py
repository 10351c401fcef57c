"""The pass over the walk that keeps vector clocks and compares every access with those before it.

A node happens before another if a path leads there: along a stream, from a post to the wait that
consumed it, and along an RDMA connection, whose writes and posts arrive in the order of their
issue. Chains are streams and, for each stream that issues on an RDMA connection, its traffic there:
a write is over on its stream when it was issued, and in memory when it arrives.
"""

from __future__ import annotations

from hccl_py.enums import POST, WAIT, TaskKind
from hccl_py.program.kernels import kernel_calling
from hccl_py.verifier.analysis.clocks import accesses, emissions, notifies, vector_clocks
from hccl_py.verifier.analysis.clocks.accesses import move_data, write
from hccl_py.verifier.analysis.clocks.arrays import (
    ENOUGH,
    STATUS,
    AccessedIntervals,
    ClockState,
    DependencyGraph,
    Int32s,
)
from hccl_py.verifier.analysis.clocks.emissions import CONNECTION, NOT_JOINED, NOT_STARTED, emit
from hccl_py.verifier.analysis.clocks.notifies import post_notify, wait_for_notify
from hccl_py.verifier.analysis.clocks.vector_clocks import (
    known_place,
    knows,
    knows_node,
    last_up_to,
    learn,
    merge,
)
from hccl_py.verifier.analysis.unrolled import CALL

_LAST_MOVE = int(TaskKind.RDMA_WRITE_REDUCE)


def _issue(g: DependencyGraph, s: ClockState, node: int, holder: int) -> int:
    """Put a node on its RDMA connection, behind the issues known to precede it; return the
    connection's chain.
    """
    conn, end = g.conn[node], g.end[node]
    merge(g, s, conn, holder, -1)
    if not g.is_main[holder]:
        learn(g, s, conn, holder, g.place[node])
    # Other streams issue on the same connection: it delivers what they issued before first.
    for other in range(g.conn_first[end], g.conn_first[end + 1]):
        if other != conn and s.conn_place[other] >= 0:
            known = known_place(g, s, holder, g.stream_of_conn[other])
            first = g.issue_first[other]
            stop = first + s.conn_place[other] + 1
            behind = last_up_to(s.issue_place, first, stop, known) - first
            if behind >= 0:
                learn(g, s, conn, other, behind)
    last = s.issue_of_end[end]
    if last >= 0 and not knows_node(g, s, holder, last):
        emit(s, CONNECTION, last, node, -1)
    s.issue_of_end[end] = node
    s.conn_place[conn] += 1
    s.issue_place[g.issue_first[conn] + s.conn_place[conn]] = g.place[node]
    return int(conn)


def _call(g: DependencyGraph, a: AccessedIntervals, s: ClockState, node: int, holder: int) -> None:
    """Let the caller act between two ops: sub streams must have ended, and IN and OUT are its own,
    as if it wrote both.
    """
    number, rank = divmod(node - g.copies * g.rows, g.ranks)
    if number > 0:
        for queue in range(rank * g.streams + 1, (rank + 1) * g.streams):
            chain, last = g.chain_of_queue[queue], number * g.length_of_queue[queue] - 1
            if chain >= 0 and not knows(g, s, holder, chain, last):
                emit(s, NOT_JOINED, node, queue, -1)
    if number == 1 and len(s.met):
        for k in range(g.mains):
            s.met[g.home[holder], k] = s.dense[holder, k]
    for interval in range(a.into[rank], a.into_stop[rank]):
        write(g, s, interval, node, holder)
    for interval in range(a.out[rank], a.out_stop[rank]):
        write(g, s, interval, node, holder)


def _check_started(g: DependencyGraph, s: ClockState, node: int, holder: int) -> None:
    """Emit NOT_STARTED, once a copy, for a sub stream that does not know the call before it."""
    copy, main = node // g.rows, g.queue[node] // g.streams * g.streams
    call = copy * (g.length_of_queue[main] + 1)
    if s.dense[holder, g.home[holder]] < call and s.started[holder] < copy:
        s.started[holder] = copy
        emit(s, NOT_STARTED, node, node, -1)


@kernel_calling(
    lambda: (
        *vector_clocks.HELPERS,
        *emissions.HELPERS,
        *accesses.HELPERS,
        *notifies.HELPERS,
        _issue,
        _call,
        _check_started,
    ),
    allocates=False,
)
def run_clocks(g: DependencyGraph, a: AccessedIntervals, s: ClockState, post_of: Int32s) -> int:
    """Go through the walk; return how it ended, one of ENOUGH, WIDTH, SLOTS, LISTS, EMITTED.

    `post_of[wait]` is the post that the walk gave to a wait. Before each node, the clock of a chain
    holds exactly what happens before its next node, and `writer`, `readers` and `reducers` the
    accesses that a later one can be in no order with. So one comparison with these finds every
    conflict, whichever order the walk happened to take. A move costs its intervals, and for each of
    them the reads and reductions since the last write; a post, a wait or an issue costs a clock.
    """
    for node in g.order:
        chain, kind = g.chain[node], g.kind[node]
        s.event_chain[node] = chain
        s.event_place[node] = g.place[node]
        if g.is_main[chain]:
            s.dense[chain, g.home[chain]] = g.place[node]
        # First what the node learns from others, as its own effect comes after that.
        if kind == WAIT:
            wait_for_notify(g, s, node, post_of[node], chain)
        elif kind == CALL:
            _call(g, a, s, node, chain)
        # An issue on RDMA takes effect on the connection's chain, later than on its stream.
        holder = chain
        if g.conn[node] >= 0:
            holder = _issue(g, s, node, chain)
            s.event_chain[node] = holder
            s.event_place[node] = s.conn_place[holder]
        # Then the effect: knowledge handed on, or memory accessed.
        if kind == POST:
            post_notify(g, s, node, chain)
        elif kind <= _LAST_MOVE:
            move_data(g, a, s, node, holder)
        if kind != CALL and not g.is_main[chain]:
            _check_started(g, s, node, chain)
        if s.counts[STATUS] != ENOUGH:  # ordering.py makes room and starts again
            break
    return int(s.counts[STATUS])
