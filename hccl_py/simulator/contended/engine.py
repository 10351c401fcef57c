"""The event loop of the contended simulation.

Whatever acts is an entity: first the queues (a stream of a rank each), then the RDMA connections.
An entity has at most one flow, a data task on its way, and one event to come, in a heap by time and
then by number. Events at the same time are all taken; then rates are found anew.

Rates are max-min fair: a flow has its full speed, the one that it has alone, or there is a link on
its route, its bottleneck, that is full and on which nobody is faster. The flows that have the same
bottleneck, its members, have the same rate: the link's level. So rates are kept by link, and so is
what members have moved since the link had none. A member ends when its link has moved `due` bytes
for each of them; only the first of a link's members has an event.

A level is what others leave of the link, by the members. Where flows begin or end, or others on the
link change, it is dirty, and its level is found anew, the lowest first: others that are faster
become members, and what members gain or lose is taken from their other links, which are dirty then.
What is not connected, or slower than the change, is never looked at. When no link is dirty, every
flow has a bottleneck or its full speed, and rates of that kind are unique.

The work of a flow at full speed is kept as the time that it still needs. So what nobody disturbs
ends exactly where the uncontended simulation says. Flows that were slowed down and end at the same
time but for rounding end together, at the earliest of their times: otherwise the differences grow
from event to event, until what is symmetric takes one event each.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hccl_py.enums import POST, WAIT
from hccl_py.program.kernels import kernel_calling
from hccl_py.values import Floats

__all__ = ["ENOUGH", "EngineState", "FlowWork", "Heap", "Members", "Sharing", "run_events"]

Int8s = npt.NDArray[np.int8]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

AT_ONCE = 1e-10
"""Events that are apart by less, relative to the clock, are taken together: far more than what
levels that are the same may differ by.
"""

ENOUGH = 1e-11
"""A link that lacks less than this share of its capacity does not bind."""

SAME = 1e-12
"""Rates that differ by less, relatively, are the same."""

STEADY = 1e-13
"""A level that would change by less, relatively, stays."""

TURNS = 4
"""How often each link has its turn, on average, in order of levels; after that in order of time,
in which every search for rates comes to an end.
"""

READY, HELD, FLOWING = 0, 1, 2
"""What an entity's next event is: its next task, the begin of its flow, the end of its flow."""

FRESH, TOUCHED, TAKEN = 0, 1, 2
"""Places in Sharing.counts: lengths of the lists of the same names, and the turns of links in the
search under way.
"""

BEGUN = 0
"""Place in EngineState.counts: the length of the list of the same name."""


class FlowWork(NamedTuple):
    """What there is to do. By queue: its rows `rows[first[q] : first[q + 1]]`. By row: kind, queue,
    the post of a wait and the wait of a post (-1: none), bytes, times and connection as in
    TaskCosts, route of its data (-1: it shares no link).
    """

    first: Int64s
    rows: Int32s
    task_us: Floats
    kind: Int8s
    queue: Int32s
    post_of: Int32s
    wait_of: Int32s
    size: Int64s
    on_stream: Floats
    after: Floats
    connection: Int64s
    route: Int32s


class EngineState(NamedTuple):
    """What the walk over tasks changes.

    By row: times and `behind`, as in Timeline (-1: not yet), and what follows it on its connection.
    By queue: its next row. By connection: until when it sends, its last write that ended, and the
    first and the last row that it has to serve. By entity: what its event is, and the row of its
    flow. `begun` lists the entities whose flows begin now.
    """

    start: Floats
    end: Floats
    effect: Floats
    behind: Int32s
    following: Int32s
    counter: Int64s
    busy: Floats
    sent: Int32s
    front: Int32s
    back: Int32s
    phase: Int8s
    flowing: Int32s
    begun: Int32s
    counts: Int64s


class Heap(NamedTuple):
    """Numbered things by key, ties by number; `place` is -1 for what is not in the heap."""

    key: Floats
    item: Int32s
    place: Int32s
    size: Int64s


class Members(NamedTuple):
    """The flows on every link: link l has them at `slot[first[l]] ..`, `flows[l]` of them, its
    `size[l]` members before the others, as a heap by what the link has moved when they are `due`.

    An entity has a slot for each link of a route; `place` is where a slot stands on its link,
    counted from `first`, `owner` its entity.
    """

    first: Int64s
    slot: Int32s
    flows: Int32s
    size: Int32s
    place: Int32s
    owner: Int32s
    due: Floats


class Sharing(NamedTuple):
    """Who shares links, and at which rates, in bytes a µs.

    Route k is `link[route_first[k] : route_first[k + 1]]`, the last one is empty. By entity: its
    first slot, its flow's bottleneck (-1: none), where its route begins and how many links that
    has, its full speed, and for flows without a bottleneck the time that they need as of `since`;
    whether the flow ever had less than its full speed. By link: capacity, what flows that are no
    members leave of it, its level, no less than what any of these flows has, bytes that each of
    its members has moved as of a time, and whether that was touched at this one. The rest are
    lists: flows that began, links that were touched, and flows that become members with their
    rates.
    """

    route_first: Int64s
    link: Int32s
    slot_first: Int64s
    bottleneck: Int32s
    hop: Int64s
    hops: Int32s
    full: Floats
    left: Floats
    since: Floats
    was_slowed: Int8s
    capacity: Floats
    room: Floats
    level: Floats
    most: Floats
    moved: Floats
    as_of: Floats
    is_touched: Int8s
    fresh: Int32s
    touched: Int32s
    faster: Int32s
    faster_rate: Floats
    counts: Int64s


def _is_sooner(heap: Heap, one: int, other: int) -> bool:
    a, b = heap.key[one], heap.key[other]
    return bool(a < b or (a == b and one < other))


def _rise(heap: Heap, at: int, thing: int) -> int:
    """Move a hole up from `at` to where the thing may stand; return that place."""
    while at > 0:
        above = (at - 1) >> 1
        other = heap.item[above]
        if not _is_sooner(heap, thing, other):
            break
        heap.item[at] = other
        heap.place[other] = at
        at = above
    return at


def _sink(heap: Heap, at: int, thing: int) -> int:
    """Move a hole down from `at` to where the thing may stand; return that place."""
    size = heap.size[0]
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        if below + 1 < size and _is_sooner(heap, heap.item[below + 1], heap.item[below]):
            below += 1
        other = heap.item[below]
        if not _is_sooner(heap, other, thing):
            break
        heap.item[at] = other
        heap.place[other] = at
        at = below
    return at


def _put(heap: Heap, thing: int, key: float) -> None:
    """Give a thing a key, whether it is in the heap or not."""
    at = heap.place[thing]
    if at < 0:
        at = heap.size[0]
        heap.size[0] += 1
    heap.key[thing] = key
    at = _rise(heap, at, thing)
    at = _sink(heap, at, thing)
    heap.item[at] = thing
    heap.place[thing] = at


def _take(heap: Heap) -> int:
    """Remove the first thing."""
    thing = heap.item[0]
    heap.place[thing] = -1
    heap.size[0] -= 1
    if heap.size[0] > 0:
        last = heap.item[heap.size[0]]
        at = _sink(heap, 0, last)
        heap.item[at] = last
        heap.place[last] = at
    return int(thing)


def _drop(heap: Heap, thing: int) -> None:
    """Remove a thing, if it is there."""
    at = heap.place[thing]
    if at < 0:
        return
    heap.place[thing] = -1
    heap.size[0] -= 1
    last = heap.item[heap.size[0]]
    if last != thing:
        at = _rise(heap, at, last)
        at = _sink(heap, at, last)
        heap.item[at] = last
        heap.place[last] = at


def _set(m: Members, link: int, at: int, slot: int) -> None:
    m.slot[m.first[link] + at] = slot
    m.place[slot] = at


def _sift(m: Members, link: int, at: int, slot: int, size: int) -> None:
    """Put a slot into the heap of a link's first `size` slots, in which there is a hole."""
    first, due = m.first[link], m.due[m.owner[slot]]
    while at > 0:
        above = m.slot[first + ((at - 1) >> 1)]
        if m.due[m.owner[above]] <= due:
            break
        _set(m, link, at, above)
        at = (at - 1) >> 1
    while True:
        below = 2 * at + 1
        if below >= size:
            break
        lower = m.slot[first + below]
        if below + 1 < size:
            right = m.slot[first + below + 1]
            if m.due[m.owner[right]] < m.due[m.owner[lower]]:
                below, lower = below + 1, right
        if m.due[m.owner[lower]] >= due:
            break
        _set(m, link, at, lower)
        at = below
    _set(m, link, at, slot)


def _admit(m: Members, link: int, slot: int) -> None:
    """Make a flow on a link a member."""
    size = m.size[link]
    _set(m, link, m.place[slot], m.slot[m.first[link] + size])
    m.size[link] = size + 1
    _sift(m, link, size, slot, size + 1)


def _dismiss(m: Members, link: int, slot: int) -> None:
    """Let a member be one of the others."""
    size = m.size[link] - 1
    m.size[link] = size
    last = m.slot[m.first[link] + size]
    if last != slot:
        _sift(m, link, m.place[slot], last, size)
    _set(m, link, size, slot)


def _touch(s: Sharing, m: Members, link: int, t: float) -> None:
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


def _mark(s: Sharing, m: Members, dirty: Heap, link: int) -> None:
    """Note that a link's level may be another one, if it has members, or gets some."""
    if dirty.place[link] >= 0:
        return
    if m.size[link]:
        key = s.level[link]
    elif s.room[link] < -ENOUGH * s.capacity[link]:
        key = s.capacity[link] / m.flows[link]
    else:
        return
    if s.counts[TAKEN] > TURNS * len(s.level):
        key = 1.0 * s.counts[TAKEN]
    _put(dirty, link, key)


def _enter(
    s: Sharing, m: Members, dirty: Heap, entity: int, route: int, size: float, us: float, t: float
) -> None:
    """Let bytes flow from `t`; they take `us` at full speed."""
    full = size / us
    s.bottleneck[entity], s.was_slowed[entity] = -1, 0
    s.full[entity], s.left[entity], s.since[entity] = full, us, t
    s.fresh[s.counts[FRESH]] = entity
    s.counts[FRESH] += 1
    s.hop[entity] = s.route_first[route]
    s.hops[entity] = s.route_first[route + 1] - s.route_first[route]
    slot = s.slot_first[entity]
    for hop in range(s.route_first[route], s.route_first[route + 1]):
        link = s.link[hop]
        _set(m, link, m.flows[link], slot)
        m.flows[link] += 1
        s.room[link] -= full
        s.most[link] = max(s.most[link], full)
        _mark(s, m, dirty, link)
        slot += 1


def _leave(s: Sharing, m: Members, dirty: Heap, entity: int, t: float) -> None:
    """Take an entity's flow off its links."""
    bottleneck = s.bottleneck[entity]
    rate = s.level[bottleneck] if bottleneck >= 0 else s.full[entity]
    slot = s.slot_first[entity]
    for hop in range(s.hop[entity], s.hop[entity] + s.hops[entity]):
        link = s.link[hop]
        if link == bottleneck:
            _touch(s, m, link, t)
            _dismiss(m, link, slot)
        else:
            s.room[link] += rate
        m.flows[link] -= 1
        _set(m, link, m.place[slot], m.slot[m.first[link] + m.flows[link]])
        if m.flows[link] == 0:
            s.room[link], s.most[link] = s.capacity[link], 0.0
        _mark(s, m, dirty, link)
        slot += 1


def _faster(s: Sharing, m: Members, link: int) -> int:
    """List the flows that become members of a link because they would have more than its level,
    and return how many there are; what the others leave is summed up anew.
    """
    first, size, found = m.first[link], m.size[link], 0
    share = s.room[link] / size if size else -1.0
    if s.most[link] <= share * (1 + SAME):
        return 0
    most, slower = 0.0, 0.0
    for k in range(first + size, first + m.flows[link]):
        entity = m.owner[m.slot[k]]
        bottleneck = s.bottleneck[entity]
        rate = s.level[bottleneck] if bottleneck >= 0 else s.full[entity]
        most = max(most, rate)
        if rate > share * (1 + SAME):
            s.faster[found], s.faster_rate[found] = m.slot[k], rate
            found += 1
        else:
            slower += rate
    s.most[link], listed = most, -1
    while found != listed and found > 0:
        listed, found, share = found, 0, (s.capacity[link] - slower) / (size + found)
        for k in range(listed):
            rate = s.faster_rate[k]
            if rate > share * (1 + SAME):
                s.faster[found], s.faster_rate[found] = s.faster[k], rate
                found += 1
            else:
                slower += rate
    s.room[link] = s.capacity[link] - slower
    return found


def _raise(s: Sharing, m: Members, dirty: Heap, link: int, level: float) -> bool:
    """Give the members of a link another level, and their other links what that takes; return
    whether some of them have their full speed by that.
    """
    more, first, some_full = level - s.level[link], m.first[link], False
    s.level[link] = level
    for k in range(first, first + m.size[link]):
        entity = m.owner[m.slot[k]]
        some_full = some_full or s.full[entity] <= level * (1 + SAME)
        for hop in range(s.hop[entity], s.hop[entity] + s.hops[entity]):
            other = s.link[hop]
            if other == link:
                continue
            s.room[other] -= more
            s.most[other] = max(s.most[other], level)
            if dirty.place[other] < 0:
                _mark(s, m, dirty, other)
    return some_full


def _capture(
    s: Sharing, m: Members, dirty: Heap, events: Heap, link: int, slot: int, rate: float, t: float
) -> None:
    """Make a flow that had a higher rate a member of a link, whose room and level are those with
    the flow.
    """
    entity, level = m.owner[slot], s.level[link]
    old = s.bottleneck[entity]
    if old >= 0:
        _touch(s, m, old, t)
        work = m.due[entity] - s.moved[old]
    else:
        _drop(events, entity)
        work = (s.left[entity] - (t - s.since[entity])) * s.full[entity]
    other_slot = s.slot_first[entity]
    for hop in range(s.hop[entity], s.hop[entity] + s.hops[entity]):
        other = s.link[hop]
        if other == old:
            _dismiss(m, other, other_slot)
            s.room[other] -= level
            s.most[other] = max(s.most[other], level)
        elif other != link:
            s.room[other] += rate - level
        if other != link:
            _mark(s, m, dirty, other)
        other_slot += 1
    s.bottleneck[entity], s.was_slowed[entity] = link, 1
    m.due[entity] = s.moved[link] + max(work, 0.0)
    _admit(m, link, slot)


def _release(s: Sharing, m: Members, dirty: Heap, events: Heap, link: int, t: float) -> None:
    """Let members of a link that could not use its level have their full speed."""
    level, k, found = s.level[link], 0, 0
    while k < m.size[link]:
        slot = m.slot[m.first[link] + k]
        if s.full[m.owner[slot]] <= level * (1 + SAME):
            s.faster[found] = slot
            found += 1
        k += 1
    for k in range(found):
        slot = s.faster[k]
        entity = m.owner[slot]
        full = s.full[entity]
        _dismiss(m, link, slot)
        s.bottleneck[entity], s.since[entity] = -1, t
        s.left[entity] = max(m.due[entity] - s.moved[link], 0.0) / full
        for hop in range(s.hop[entity], s.hop[entity] + s.hops[entity]):
            other = s.link[hop]
            s.room[other] -= full if other == link else full - level
            s.most[other] = max(s.most[other], full)
            _mark(s, m, dirty, other)
        _put(events, entity, t + s.left[entity])


def _level(s: Sharing, m: Members, dirty: Heap, events: Heap, link: int, t: float) -> None:
    """Find the level of a link for the rates that other links give now."""
    if m.size[link] == 0 and s.room[link] >= -ENOUGH * s.capacity[link]:
        return
    _touch(s, m, link, t)
    found, size = _faster(s, m, link), m.size[link]
    if size + found == 0:
        return
    level, some_full = s.room[link] / (size + found), False
    if size == 0:
        s.level[link] = level
    elif abs(level - s.level[link]) > STEADY * s.level[link]:
        some_full = _raise(s, m, dirty, link, level)
    for k in range(found):
        _capture(s, m, dirty, events, link, s.faster[k], s.faster_rate[k], t)
    if some_full:
        _release(s, m, dirty, events, link, t)


def _share(s: Sharing, m: Members, dirty: Heap, events: Heap, t: float) -> None:
    """Find rates after a change, and when the flows that have other ones end."""
    s.counts[TAKEN] = 0
    while dirty.size[0] > 0:
        s.counts[TAKEN] += 1
        _level(s, m, dirty, events, _take(dirty), t)
    entities = len(s.full)
    for k in range(s.counts[TOUCHED]):
        link = s.touched[k]
        s.is_touched[link] = 0
        if m.size[link]:
            more = m.due[m.owner[m.slot[m.first[link]]]] - s.moved[link]
            _put(events, entities + link, t + max(more, 0.0) / s.level[link])
        else:
            _drop(events, entities + link)
    for k in range(s.counts[FRESH]):
        entity = s.fresh[k]
        if s.bottleneck[entity] < 0:
            _put(events, entity, s.since[entity] + s.left[entity])
    s.counts[FRESH] = s.counts[TOUCHED] = 0


def _arrive(w: FlowWork, s: EngineState, events: Heap, row: int, t: float) -> None:
    """Let a post take effect, known beforehand; who waits for it goes on then."""
    s.effect[row] = t
    wait = w.wait_of[row]
    if wait >= 0 and s.start[wait] >= 0:
        queue = w.queue[wait]
        s.end[wait] = s.effect[wait] = max(s.start[wait], t) + w.on_stream[wait]
        s.counter[queue] += 1
        _put(events, queue, s.end[wait])


def _serve(w: FlowWork, s: EngineState, events: Heap, row: int, t: float) -> bool:
    """Let a connection that is free go on with a row; return whether that keeps it busy."""
    connection = w.connection[row]
    s.behind[row] = s.sent[connection]
    begin = max(s.end[row], s.busy[connection])
    if w.kind[row] == POST:
        _arrive(w, s, events, row, begin + w.after[row])
        return False
    entity = len(s.counter) + connection
    if begin > t:
        s.phase[entity] = HELD
        _put(events, entity, begin)
    else:
        _begin(s, entity, row)
    return True


def _begin(s: EngineState, entity: int, row: int) -> None:
    """Note that a row's data flows from now on."""
    s.phase[entity], s.flowing[entity] = FLOWING, row
    s.begun[s.counts[BEGUN]] = entity
    s.counts[BEGUN] += 1


def _send(w: FlowWork, s: EngineState, events: Heap, row: int, t: float) -> None:
    """Issue a row on its connection, behind what is there."""
    connection = w.connection[row]
    if s.front[connection] >= 0:
        s.following[s.back[connection]] = row
        s.back[connection] = row
    elif _serve(w, s, events, row, t):
        s.front[connection] = s.back[connection] = row


def _advance_connection(w: FlowWork, s: EngineState, events: Heap, entity: int, t: float) -> None:
    """Begin or end the write at the front of a connection; what is behind an end follows."""
    connection = entity - len(s.counter)
    row = s.front[connection]
    if s.phase[entity] == HELD:
        _begin(s, entity, row)
        return
    s.phase[entity] = READY
    s.effect[row] = s.busy[connection] = t
    s.sent[connection] = row
    row = s.following[row]
    while row >= 0 and not _serve(w, s, events, row, t):
        row = s.following[row]
    s.front[connection] = row


def _issue(w: FlowWork, s: EngineState, events: Heap, queue: int, row: int, t: float) -> bool:
    """Start moving a row's data; return whether the stream has to wait for it."""
    if w.connection[row] >= 0:
        s.end[row] = t
        _send(w, s, events, row, t)
        return False
    _begin(s, queue, row)
    return True


def _resume(w: FlowWork, s: EngineState, events: Heap, queue: int, t: float) -> bool:
    """Go on inside a data task; return whether it keeps its stream still."""
    phase, row = s.phase[queue], w.rows[s.counter[queue]]
    s.phase[queue] = READY
    if phase == HELD:
        if _issue(w, s, events, queue, row, t):
            return True
    else:
        s.end[row] = s.effect[row] = t
    s.counter[queue] += 1
    return False


def _advance_queue(w: FlowWork, s: EngineState, events: Heap, queue: int, t: float) -> None:
    """Do a stream's tasks until one takes time or has to wait."""
    if s.phase[queue] != READY and _resume(w, s, events, queue, t):
        return
    while s.counter[queue] < w.first[queue + 1]:
        row = w.rows[s.counter[queue]]
        s.start[row] = t
        done = t
        if w.kind[row] == WAIT:
            done = s.effect[w.post_of[row]]
            if done < 0:
                return
            done = max(t, done) + w.on_stream[row]
            s.end[row] = s.effect[row] = done
        elif w.kind[row] == POST:
            done = t + w.on_stream[row]
            s.end[row] = done
            if w.connection[row] < 0:
                _arrive(w, s, events, row, done + w.after[row])
            elif done > t:
                s.phase[queue] = HELD
                _put(events, queue, done)
                return
            else:
                _send(w, s, events, row, t)
        elif w.connection[row] >= 0 or w.route[row] >= 0:
            if w.task_us[row] > 0:
                s.phase[queue] = HELD
                _put(events, queue, t + w.task_us[row])
                return
            if _issue(w, s, events, queue, row, t):
                return
        else:
            done = t + w.on_stream[row]
            s.end[row] = s.effect[row] = done
        s.counter[queue] += 1
        if done > t:
            _put(events, queue, done)
            return


@kernel_calling(
    lambda: (
        _is_sooner,
        _rise,
        _sink,
        _put,
        _take,
        _drop,
        _set,
        _sift,
        _admit,
        _dismiss,
        _touch,
        _mark,
        _enter,
        _leave,
        _faster,
        _raise,
        _capture,
        _release,
        _level,
        _share,
        _arrive,
        _begin,
        _serve,
        _send,
        _advance_connection,
        _issue,
        _resume,
        _advance_queue,
    ),
    allocates=False,
)
def run_events(
    w: FlowWork,
    s: EngineState,
    flows: Sharing,
    m: Members,
    events: Heap,
    dirty: Heap,
    begin: float,
) -> None:
    """Take events, from the begin of all queues on, until there are none; those of links are behind
    those of entities.
    """
    queues, entities = len(s.counter), len(s.phase)
    for queue in range(queues):
        if w.first[queue] < w.first[queue + 1]:
            _put(events, queue, begin)
    while events.size[0] > 0:
        first = last = events.key[events.item[0]]
        horizon = first * (1 + AT_ONCE)
        link = -1
        while True:
            if link >= 0 and m.size[link] > 0:
                entity, t = m.owner[m.slot[m.first[link]]], first
                if m.due[entity] - flows.moved[link] > (horizon - first) * flows.level[link]:
                    link = -1
                    continue
            elif events.size[0] > 0 and events.key[events.item[0]] <= horizon:
                entity = _take(events)
                last = events.key[entity]
                if entity >= entities:
                    link = entity - entities
                    _touch(flows, m, link, first)
                    continue
                t = first if flows.was_slowed[entity] else last
            else:
                break
            if s.phase[entity] == FLOWING:
                _leave(flows, m, dirty, entity, t)
            if entity < queues:
                _advance_queue(w, s, events, entity, t)
            else:
                _advance_connection(w, s, events, entity, t)
            for k in range(s.counts[BEGUN]):
                entity = s.begun[k]
                row = s.flowing[entity]
                us = w.after[row] if entity >= queues else w.on_stream[row] - w.task_us[row]
                route = w.route[row] if w.route[row] >= 0 else len(flows.route_first) - 2
                _enter(flows, m, dirty, entity, route, w.size[row], us, t)
            s.counts[BEGUN] = 0
        if flows.counts[FRESH] or flows.counts[TOUCHED] or dirty.size[0]:
            _share(flows, m, dirty, events, last)
