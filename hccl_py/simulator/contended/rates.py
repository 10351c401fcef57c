"""Max-min fair rates of flows, found anew where they change.

Rates are max-min fair: a flow has its full speed, the one that it has alone, or there is a link on
its route, its bottleneck, that is full and on which no flow is faster. The flows that have the same
bottleneck, its members, have the same rate: the link's level. So rates are kept by link, and so is
what members have moved since the link had none. A member ends when its link has moved `due` bytes
for each of them; only the first of a link's members has an event.

A level is what others leave of the link, by the members; where flows take shares or multiples of
their rates on links, by the sum of these, what the members weigh. Where flows begin or end, or
others on the link change, it is dirty, and its level is found anew, the lowest first: others that
are faster become members, and what members gain or lose is taken from their other links, which are
dirty then.
Links that no such change reaches are never looked at. When no link is dirty, every flow has a
bottleneck or its full speed, and rates of that kind are unique.

Invariants, for every link l between two searches (those of a dirty link hold when it is found):

    room[l]   = capacity[l] - rates, times weights, of the flows on l that are no members of it
    level[l]  = room[l] / weight of its members, where it has any
    most[l]  >= the rate of every flow on l that is no member of it
    moved[l]  bytes that each member has moved as of as_of[l]; a member ends at moved[l] = due

The functions are parts of one compiled loop (engine.py). Costs: `enter` and `leave` take the links
of a route, `list_faster` all flows of a link, `raise_level` the links that its members are on, and
`capture` and `release` the links of each route whose bottleneck changes.
"""

from __future__ import annotations

import numpy as np

from hccl_py.simulator.contended.dirty import (
    ENOUGH,
    LEFT,
    mark,
    next_dirty,
    note,
    settle,
    start_search,
)
from hccl_py.simulator.contended.heap import drop, put
from hccl_py.simulator.contended.members import (
    admit,
    couple,
    dismiss,
    move_slot,
    set_slot,
    uncouple,
)
from hccl_py.simulator.contended.state import Coupling, Dirty, Heap, Members, Sharing

SAME = 1e-12
"""Rates that differ by less, relatively, are the same."""

STEADY = 1e-13
"""A level that would change by less, relatively, stays."""

UNKNOWN = 2
"""In Sharing.was_slowed until a flow has a rate: events that are taken together are a little apart,
in which it moves nothing yet, however fast it would be alone.
"""

FRESH, TOUCHED = 0, 1
"""Places in Sharing.counts: lengths of the lists of the same names."""


def touch(s: Sharing, m: Members, link: int, t: float) -> None:
    """Bring what a link's members have moved up to date, before its level or a member changes."""
    if not s.is_touched[link]:
        s.is_touched[link] = 1
        s.touched[s.counts[TOUCHED]] = link
        s.counts[TOUCHED] += 1
    if m.size[link]:
        s.moved[link] += s.level[link] * (t - s.as_of[link])
    else:
        s.moved[link] = 0.0
    s.as_of[link] = t


def enter(
    s: Sharing, m: Members, dirty: Dirty, entity: int, route: int, size: float, us: float, t: float
) -> None:
    """Let bytes flow from `t`; they take `us` at full speed."""
    full = size / us
    s.bottleneck[entity], s.was_slowed[entity] = -1, UNKNOWN
    s.full[entity], s.left[entity], s.since[entity] = full, us, t
    s.fresh[s.counts[FRESH]] = entity
    s.counts[FRESH] += 1
    s.hop[entity] = s.route_first[route]
    s.hops[entity] = s.route_first[route + 1] - s.route_first[route]
    slot, weighs = s.slot_first[entity], len(m.own) > 0
    for hop in range(s.route_first[route], s.route_first[route + 1]):
        link, weight = s.link[hop], 1.0
        if weighs:
            weight = m.own[slot] = s.weight[hop]
        set_slot(m, link, m.flows[link], slot, -1)
        m.flows[link] += 1
        if weighs:
            m.load[link] += weight
        s.room[link] -= full * weight
        s.most[link] = max(s.most[link], full)
        note(s, m, dirty, link)
        slot += 1


def leave(s: Sharing, m: Members, c: Coupling, dirty: Dirty, entity: int, t: float) -> None:
    """Take an entity's flow off its links."""
    bottleneck = s.bottleneck[entity]
    rate = s.level[bottleneck] if bottleneck >= 0 else s.full[entity]
    slot, weighs = s.slot_first[entity], len(m.own) > 0
    for hop in range(s.hop[entity], s.hop[entity] + s.hops[entity]):
        link, weight = s.link[hop], m.own[slot] if weighs else 1.0
        if link == bottleneck:
            touch(s, m, link, t)
            dismiss(m, link, slot, weight, -1)
        else:
            s.room[link] += rate * weight
            if bottleneck >= 0:
                uncouple(c, bottleneck, slot, weight)
        m.flows[link] -= 1
        move_slot(m, link, m.flows[link], m.place[slot])
        if m.flows[link] == 0:
            s.room[link], s.most[link] = s.capacity[link], 0.0
        if weighs:
            m.load[link] = m.load[link] - weight if m.flows[link] else 0.0
        note(s, m, dirty, link)
        slot += 1


def list_faster(s: Sharing, m: Members, link: int) -> int:
    """List the flows that become members of a link because they would have more than its level,
    and return their number; the room that all others leave is summed up anew.
    """
    first, size, found, weighs = m.first[link], m.size[link], 0, len(m.own) > 0
    weight = m.weight[link] if weighs else float(size)
    share = s.room[link] / weight if size else -1.0
    if s.most[link] <= share * (1 + SAME):
        return 0
    # Candidates are faster than the level is now. With them as members the level rises, as they
    # give back what they had; those that it overtakes are no candidates, until none is overtaken.
    most, slower, bound = 0.0, 0.0, share * (1 + SAME)
    for k in range(first + size, first + m.flows[link]):
        bottleneck = m.bottleneck[k]
        rate = s.level[bottleneck] if bottleneck >= 0 else s.full[m.owner[m.slot[k]]]
        most = max(most, rate)
        if rate > bound:
            s.faster[found], s.faster_rate[found] = k, rate
            found += 1
            weight += m.own[m.slot[k]] if weighs else 1.0
        else:
            slower += rate * m.own[m.slot[k]] if weighs else rate
    s.most[link], listed = most, -1
    while found != listed and found > 0:
        share, listed, found = (s.capacity[link] - slower) / weight, found, 0
        for k in range(listed):
            place, rate = s.faster[k], s.faster_rate[k]
            if rate > share * (1 + SAME):
                s.faster[found], s.faster_rate[found] = place, rate
                found += 1
            else:
                own = m.own[m.slot[place]] if weighs else 1.0
                slower, weight = slower + rate * own, weight - own
    for k in range(found):
        s.faster[k] = m.slot[s.faster[k]]
    s.room[link] = s.capacity[link] - slower
    return found


def raise_level(s: Sharing, m: Members, c: Coupling, dirty: Dirty, link: int, level: float) -> None:
    """Give the members of a link another level, and their other links what that takes."""
    more, first = level - s.level[link], c.first[link]
    weight = c.weight if len(c.weight) else c.flows
    s.level[link] = level
    for k in range(first, first + c.active[link]):
        other = c.link[k]
        s.room[other] -= more * weight[k]
        if more > 0:  # otherwise they had more before
            s.most[other] = max(s.most[other], level)
        if not dirty.is_dirty[other]:
            mark(s, m, dirty, other)


def capture(
    s: Sharing,
    m: Members,
    c: Coupling,
    dirty: Dirty,
    events: Heap,
    link: int,
    slot: int,
    rate: float,
    t: float,
) -> None:
    """Make a flow that had a higher rate a member of a link, whose room and level are those with
    the flow.
    """
    entity, level, weighs = m.owner[slot], s.level[link], len(m.own) > 0
    old = s.bottleneck[entity]
    if old >= 0:
        touch(s, m, old, t)
        work = m.due[entity] - s.moved[old]
    else:
        drop(events, entity)
        moving = 0.0 if s.was_slowed[entity] == UNKNOWN else t - s.since[entity]
        work = (s.left[entity] - moving) * s.full[entity]
    other_slot = s.slot_first[entity]
    for hop in range(s.hop[entity], s.hop[entity] + s.hops[entity]):
        other, weight = s.link[hop], m.own[other_slot] if weighs else 1.0
        if other == old:
            dismiss(m, other, other_slot, weight, link)
            s.room[other] -= level * weight
            s.most[other] = max(s.most[other], level)
        elif old >= 0:
            uncouple(c, old, other_slot, weight)
        if other != link:
            if other != old:
                m.bottleneck[m.first[other] + m.place[other_slot]] = link
                s.room[other] += (rate - level) * weight
            couple(c, link, other, other_slot, weight)
            if not dirty.is_dirty[other]:
                mark(s, m, dirty, other)
        other_slot += 1
    # From now on its work is counted in bytes that every member of the link moves.
    s.bottleneck[entity], s.was_slowed[entity] = link, 1
    m.due[entity] = s.moved[link] + max(work, 0.0)
    m.least[link] = min(m.least[link], s.full[entity]) if m.size[link] else s.full[entity]
    admit(m, link, slot, m.own[slot] if weighs else 1.0)


def release(
    s: Sharing, m: Members, c: Coupling, dirty: Dirty, events: Heap, link: int, t: float
) -> None:
    """Let members of a link that could not use its level have their full speed."""
    level, least, found, weighs = s.level[link], np.inf, 0, len(m.own) > 0
    for k in range(m.first[link], m.first[link] + m.size[link]):
        slot = m.slot[k]
        full = s.full[m.owner[slot]]
        if full <= level * (1 + SAME):
            s.faster[found] = slot
            found += 1
        else:
            least = min(least, full)
    m.least[link] = least
    for k in range(found):
        slot = s.faster[k]
        entity = m.owner[slot]
        full = s.full[entity]
        s.bottleneck[entity], s.since[entity] = -1, t
        s.left[entity] = max(m.due[entity] - s.moved[link], 0.0) / full
        other_slot = s.slot_first[entity]
        for hop in range(s.hop[entity], s.hop[entity] + s.hops[entity]):
            other, weight = s.link[hop], m.own[other_slot] if weighs else 1.0
            if other == link:
                dismiss(m, link, slot, weight, -1)
                s.room[link] -= full * weight
            else:
                m.bottleneck[m.first[other] + m.place[other_slot]] = -1
                uncouple(c, link, other_slot, weight)
                s.room[other] -= (full - level) * weight
            s.most[other] = max(s.most[other], full)
            if not dirty.is_dirty[other]:
                mark(s, m, dirty, other)
            other_slot += 1
        put(events, entity, t + s.left[entity])


def find_level(
    s: Sharing, m: Members, c: Coupling, dirty: Dirty, events: Heap, link: int, t: float
) -> None:
    """Find the level of a link for the rates that other links give now."""
    if m.size[link] == 0 and s.room[link] >= -ENOUGH * s.capacity[link]:
        return
    touch(s, m, link, t)
    found, size = list_faster(s, m, link), m.size[link]
    if size + found == 0:
        return
    weight = float(size + found)
    if len(m.own):
        weight = m.weight[link]
        for k in range(found):
            weight += m.own[s.faster[k]]
    level, some_full = s.room[link] / weight, False
    if size == 0:
        s.level[link] = level
        settle(s, dirty, link)
    elif abs(level - s.level[link]) > STEADY * s.level[link]:
        some_full = m.least[link] <= level * (1 + SAME)
        raise_level(s, m, c, dirty, link, level)
        settle(s, dirty, link)
    for k in range(found):
        capture(s, m, c, dirty, events, link, s.faster[k], s.faster_rate[k], t)
    if some_full:
        release(s, m, c, dirty, events, link, t)


def find_rates(s: Sharing, m: Members, c: Coupling, dirty: Dirty, events: Heap, t: float) -> None:
    """Find rates after a change, and when the flows that have other ones end."""
    start_search(s, m, dirty)
    while dirty.counts[LEFT] > 0:
        find_level(s, m, c, dirty, events, next_dirty(dirty), t)
    entities = len(s.full)
    for k in range(s.counts[TOUCHED]):
        link = s.touched[k]
        s.is_touched[link] = 0
        if m.size[link]:
            more = m.soonest[link] - s.moved[link]
            put(events, entities + link, t + max(more, 0.0) / s.level[link])
        else:
            drop(events, entities + link)
    for k in range(s.counts[FRESH]):
        entity = s.fresh[k]
        if s.was_slowed[entity] == UNKNOWN:
            s.was_slowed[entity] = 0
        if s.bottleneck[entity] < 0:
            put(events, entity, s.since[entity] + s.left[entity])
    s.counts[FRESH] = s.counts[TOUCHED] = 0


HELPERS = (
    touch,
    enter,
    leave,
    list_faster,
    raise_level,
    capture,
    release,
    find_level,
    find_rates,
)
