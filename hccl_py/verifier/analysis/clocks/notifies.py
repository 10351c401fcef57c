"""The knowledge that posts carry to waits.

There is no clock per task: a post carries a copy of its stream's clock until its wait has merged
it.

A notify that counts is taken once for each post. Where one stream posts it, its k-th wait comes
after the k-th post. Where several do, which posts the wait has taken is open: it comes after
everything that precedes all but k - 1 of the posts that may come before it, as k posts cannot avoid
all of those. Posts that the walk meets later are assumed to come after the wait. When one of them
turns out not to know the wait, the loop is run again with that post among the candidates and the
clock that the last pass has found for it, until a pass finds what it was given. Such a result is
sound: a run that broke one of its orders first would have had to break another one before.
"""

from __future__ import annotations

from hccl_py.enums import WAIT
from hccl_py.verifier.analysis.clocks.arrays import NONE, SLOTS, STATUS, ClockState, DependencyGraph
from hccl_py.verifier.analysis.clocks.emissions import OVERRUN, TWO_WAITS, emit
from hccl_py.verifier.analysis.clocks.vector_clocks import (
    copy_clock,
    fold,
    is_before,
    known_place,
    knows,
    knows_node,
    learn,
    merge,
)

IN_A_ROW = 64
"""Waits in a row that are compared with each other."""


def post_notify(g: DependencyGraph, s: ClockState, node: int, holder: int) -> None:
    """Give a post a clock to carry: its chain's, and the chain up to here."""
    cell = g.cell[node]
    if g.counts:
        slot = s.slot_of_post[node]  # of a shared cell it has one from the start
        if slot < 0:
            slot = s.slot_of_post[node] = _free_slot(s)
    else:
        slot = s.slot_of_cell[cell]
        if slot < 0:  # otherwise the walk has seen that the bit is still set
            last = s.last_wait[cell]
            if last >= 0 and not knows_node(g, s, holder, last):
                emit(s, OVERRUN, last, node, -1)
            slot = s.slot_of_cell[cell] = _free_slot(s)
    if slot < 0:
        return
    is_shared = g.counts and g.shared[cell] >= 0
    if is_shared:
        s.has_clock[slot - g.shared_base] = 2
    chain = s.event_chain[node]
    copy_clock(s, slot, chain)
    if not g.is_main[chain]:
        learn(g, s, slot, chain, s.event_place[node])
    if is_shared:
        s.overtakes[slot - g.shared_base] = _first_unknown_wait(g, s, g.shared[cell], slot)


def _first_unknown_wait(g: DependencyGraph, s: ClockState, cell: int, slot: int) -> int:
    """Return the number of the first wait so far that a post of a shared cell does not know, and
    may therefore come before; NONE where it knows all.
    """
    found, at = NONE, s.waits_seen[cell] - 1
    while at >= 0:
        wait = g.shared_waits[g.shared_wait_first[cell] + at]
        if not knows(g, s, slot, g.chain[wait], g.place[wait]):
            found = at
        elif s.wait_number[wait] == at + 1:  # this wait knows all before it
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


def wait_for_notify(g: DependencyGraph, s: ClockState, node: int, post: int, holder: int) -> None:
    """Merge into a wait's clock the one that its post carries; of a shared cell, the knowledge that
    all posts have in common that may be its own.
    """
    cell = g.cell[node]
    if g.counts and g.shared[cell] >= 0:
        _wait_for_some(g, s, node, holder)
        return
    last = s.last_wait[cell]
    if last >= 0 and not knows_node(g, s, holder, last):
        emit(s, TWO_WAITS, last, node, -1)
    s.is_implied[node] = is_before(g, s, post, holder)
    slot = s.slot_of_post[post] if g.counts else s.slot_of_cell[cell]
    _imply_earlier(g, s, node, slot)
    merge(g, s, holder, slot, g.home[holder] if g.is_main[holder] else -1)
    if not g.counts:
        s.slot_of_cell[cell] = -1
    s.free_slots[0] += 1
    s.free_slots[s.free_slots[0]] = slot
    s.last_wait[cell] = node
    s.post_of_wait[node] = post


def _wait_for_some(g: DependencyGraph, s: ClockState, node: int, holder: int) -> None:
    """Let a wait of a shared cell, the k-th for certain, learn what all but k - 1 of its candidate
    posts know: for every chain, the k-th least of the places up to which they know it.

    Costs candidates × k for each main stream, and for each chain in a candidate's sparse part.
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
    # The sparse parts: each chain once, at the first candidate that has it.
    rank = g.home[holder] if g.is_main[holder] else -1
    for c in range(n):
        first = s.sparse_first[s.candidates[c]]
        for at in range(first, first + s.width[s.candidates[c]]):
            chain = s.sparse_chain[at]
            if s.chain_met_by[chain] == node:
                continue
            s.chain_met_by[chain] = node
            for other in range(n):
                s.values[other] = known_place(g, s, s.candidates[other], chain)
            place = _kth_least(s, n, number)
            if place > known_place(g, s, holder, chain):
                if g.home[chain] == rank:
                    fold(g, s, chain, place, s.dense[holder, rank])
                else:
                    learn(g, s, holder, chain, place)


def _posts_to_come(
    g: DependencyGraph, s: ClockState, node: int, cell: int, holder: int, number: int
) -> tuple[int, int]:
    """Collect as `candidates` the posts that may come before a wait and are not known to be over;
    return the number of them that the wait needs, and their number.
    """
    at, stop = g.shared_first[cell], g.shared_first[cell + 1]
    if s.wait_number[node] == s.waits_seen[cell]:  # it knows all that the waits before it know
        number -= s.posts_over[cell] - at
        at = s.posts_over[cell]
    n, over, streams = 0, at, 0
    while at < stop and number > 0 and streams < g.shared_posters[cell]:
        post = g.shared_posts[at]
        if s.has_clock[at] > 1 and is_before(g, s, post, holder):
            number -= 1
            if over == at:
                over += 1
        elif s.has_clock[at] > 1 or (s.may_overtake[at] < s.waits_seen[cell] and s.has_clock[at]):
            s.candidates[n] = g.shared_base + at
            n += 1
        elif s.may_overtake[at] < s.waits_seen[cell]:
            number -= 1  # it may come first, and its clock is not known
        elif s.met_by[g.queue[post]] != node:  # it comes later, as all posts behind it do
            s.met_by[g.queue[post]] = node
            streams += 1
        at += 1
    s.posts_over[cell] = max(s.posts_over[cell], over)
    return number, n


def _number_of_wait(g: DependencyGraph, s: ClockState, node: int, cell: int, holder: int) -> int:
    """Return the least number of a wait among those of its shared cell: 1 + those known to be
    over.
    """
    number, at = 1, s.waits_seen[cell] - 1
    first = g.shared_wait_first[cell]
    while at >= 0:
        earlier = g.shared_waits[first + at]
        if not knows_node(g, s, holder, earlier):
            emit(s, TWO_WAITS, earlier, node, -1)
        elif s.wait_number[earlier] == at + 1:  # this wait knows all before it
            number += at + 1
            break
        else:
            number += 1
        at -= 1
    s.waits_seen[cell] += 1
    s.wait_number[node] = number
    return int(number)


def _kth_least(s: ClockState, n: int, k: int) -> int:
    """Return the k-th least of the first n `values`, reordering them."""
    sign, steps = 1, k
    if 2 * k > n + 1:  # shorter from the greatest down
        sign, steps = -1, n - k + 1
    for at in range(steps):
        least = at
        for other in range(at + 1, n):
            if sign * s.values[other] < sign * s.values[least]:
                least = other
        s.values[at], s.values[least] = s.values[least], s.values[at]
    return int(s.values[steps - 1])


def _imply_earlier(g: DependencyGraph, s: ClockState, node: int, slot: int) -> None:
    """Mark earlier waits of the same row of waits as implied where this one's post brings what
    theirs bring: nothing happens between waits in a row.
    """
    at = g.first[g.queue[node]] + g.place[node] - 1
    stop = max(g.first[g.queue[node]] - 1, at - IN_A_ROW)
    while at > stop and g.kind[g.nodes[at]] == WAIT:
        earlier = g.nodes[at]
        post = s.post_of_wait[earlier]
        if not s.is_implied[earlier] and post >= 0:
            s.is_implied[earlier] = knows(g, s, slot, s.event_chain[post], s.event_place[post])
        at -= 1


HELPERS = (
    _imply_earlier,
    _free_slot,
    _first_unknown_wait,
    _kth_least,
    _number_of_wait,
    _posts_to_come,
    _wait_for_some,
    post_notify,
    wait_for_notify,
)
