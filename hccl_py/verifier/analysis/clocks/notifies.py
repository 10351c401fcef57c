"""What a post hands on, and what a wait learns from the posts that it may have taken.

There is no clock per task: a post carries a copy of its stream's until its wait has merged it.

A notify that counts is taken once for each post, so its k-th wait is in order behind whatever is
before all but k - 1 of the posts that may come before it: one stream's k-th post and all before
that, and of the posts of several streams what is certain, whichever come first. Posts that the walk
meets later are taken to come after the wait. When one of them turns out not to know the wait, the
loop is run again, with that one among those that may come first, and the clock that the pass before
has found for it; until a pass finds what it was given. Then everything holds: whatever run broke an
order first would have to have broken another one before.
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
    """Let a post take a clock with it: what its chain knows, and the chain up to here."""
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
    """Return the first of the waits so far that a post of theirs does not know: it may come before
    it; NONE where it knows all.
    """
    found, at = NONE, s.waits_seen[cell] - 1
    while at >= 0:
        wait = g.shared_waits[g.shared_wait_first[cell] + at]
        if not knows(g, s, slot, g.chain[wait], g.place[wait]):
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


def wait_for_notify(g: DependencyGraph, s: ClockState, node: int, post: int, holder: int) -> None:
    """Let a wait learn what its post has taken with it, or what those have that may be it."""
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
        if s.has_clock[at] > 1 and is_before(g, s, post, holder):
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
        if not knows_node(g, s, holder, earlier):
            emit(s, TWO_WAITS, earlier, node, -1)
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
