"""The event loop of the contended simulation.

Whatever acts is an entity: first the queues (a stream of a rank each), then the RDMA connections.
An entity has one event to come, in a heap by time and then by number, and at most one flow: a data
task on its way. Events at the same time are all taken; then the rates of the flows whose links
changed hands are found anew, and only flows whose rate differs get another end.

A flow's work is kept as the time that it still needs at full speed, the one that it has alone.
So what nobody disturbs ends exactly where the uncontended simulation says. Flows that were slowed
down and end at the same time but for rounding end together, at the earliest of their times:
otherwise the differences grow from event to event, until what is symmetric takes one event each.

Rates are max-min fair. All flows start from nothing and grow alike; a flow stops growing at its
full speed, or where a link on its route is full. A link binds where the flows on it would take more
than it lets through; only over such links do flows depend on each other. So a change reaches the
flows that are connected with it by binding links, and no others. Nor does it reach those with
smaller rates than the flow that comes or goes: while all grow alike, they stop before it matters.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hccl_py.enums import POST, WAIT
from hccl_py.program.kernels import kernel_calling
from hccl_py.values import Floats

__all__ = ["EngineState", "FlowWork", "Heap", "run_events"]

Int8s = npt.NDArray[np.int8]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]

AT_ONCE = 1e-12
"""Events that are apart by less, relative to the clock, are taken together."""

ENOUGH = 1e-9
"""A link that lacks less than this share of its capacity does not bind."""

SAME = 1e-12
"""Speeds that differ by less, relatively, are the same."""

READY, HELD, FLOWING = 0, 1, 2
"""What an entity's next event is: its next task, the begin of its flow, the end of its flow."""

DIRTY, STARTED, REACHED, BINDING = 0, 1, 2, 3
"""Places in EngineState.counts: lengths of the lists of the same names."""


class FlowWork(NamedTuple):
    """What there is to do. By queue: its rows `rows[first[q] : first[q + 1]]` and what the start of
    a data task costs. By row: kind, queue, the post of a wait and the wait of a post (-1: none),
    bytes, times and connection as in TaskCosts, route of its data (-1: it shares no link).

    A route is `link[route_first[k] : route_first[k + 1]]`; links let `capacity` bytes through in
    a µs. The last route is empty. An entity's route has its hops at `slot_first[e] ..`;
    `slot_owner` is the way back.
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
    route_first: Int64s
    link: Int32s
    capacity: Floats
    slot_first: Int64s
    slot_owner: Int32s


class Heap(NamedTuple):
    """Numbered things by key, ties by number; `place` is -1 for what is not in the heap."""

    key: Floats
    item: Int32s
    place: Int32s
    size: Int64s


class EngineState(NamedTuple):
    """What the loop changes.

    By row: times and `behind`, as in Timeline (-1: not yet), and what follows it on its connection.
    By queue: its next row. By connection: until when it sends, its last write that ended, and the
    first and the last row that it has to serve. By
    entity: what its event is, its flow's row, route, bytes a µs at full speed, share of that, time
    needed at full speed as of `since`, and whether it ever had less. By slot: its neighbours among
    those on the same link. By link: its first slot, how many flows it has, and bytes a µs of all of
    them at full speed. The rest belongs to finding rates: the smallest rate that may change; by
    link, whether it is dirty or known to bind, what is left of it and for how many flows; by
    entity, whether it was reached, and whether its rate is still open.
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
    row: Int32s
    route: Int32s
    full: Floats
    speed: Floats
    left: Floats
    since: Floats
    was_slowed: Int8s
    next_slot: Int64s
    previous_slot: Int64s
    first_slot: Int64s
    flows: Int32s
    demand: Floats
    floor: Floats
    is_dirty: Int8s
    is_binding: Int8s
    room: Floats
    sharers: Int32s
    is_reached: Int8s
    is_open: Int8s
    found: Floats
    dirty: Int32s
    started: Int32s
    reached: Int32s
    binding: Int32s
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


def _binds(w: FlowWork, s: EngineState, link: int) -> bool:
    return bool(s.demand[link] > w.capacity[link] * (1 + ENOUGH))


def _mark(w: FlowWork, s: EngineState, link: int, rate: float) -> None:
    """Note that the flows of a link may get other rates from this one on, if it binds."""
    if not _binds(w, s, link):
        return
    s.floor[0] = min(s.floor[0], rate)
    if not s.is_dirty[link]:
        s.is_dirty[link] = 1
        s.dirty[s.counts[DIRTY]] = link
        s.counts[DIRTY] += 1


def _enter(w: FlowWork, s: EngineState, entity: int, row: int, t: float, alone_us: float) -> None:
    """Let a row's data flow from `t`; it takes `alone_us` at full speed."""
    route = w.route[row] if w.route[row] >= 0 else len(w.route_first) - 2
    s.phase[entity], s.row[entity], s.route[entity] = FLOWING, row, route
    s.full[entity] = w.size[row] / alone_us
    s.speed[entity], s.left[entity], s.since[entity] = 0.0, alone_us, t
    s.started[s.counts[STARTED]] = entity
    s.counts[STARTED] += 1
    slot = w.slot_first[entity]
    for hop in range(w.route_first[route], w.route_first[route + 1]):
        link = w.link[hop]
        following = s.first_slot[link]
        s.next_slot[slot], s.previous_slot[slot] = following, -1
        if following >= 0:
            s.previous_slot[following] = slot
        s.first_slot[link] = slot
        s.flows[link] += 1
        s.demand[link] += s.full[entity]
        _mark(w, s, link, s.full[entity])
        slot += 1


def _leave(w: FlowWork, s: EngineState, entity: int) -> None:
    """Take an entity's flow off its links."""
    s.was_slowed[entity] = 0
    route = s.route[entity]
    slot = w.slot_first[entity]
    for hop in range(w.route_first[route], w.route_first[route + 1]):
        link = w.link[hop]
        before, after = s.previous_slot[slot], s.next_slot[slot]
        if before >= 0:
            s.next_slot[before] = after
        else:
            s.first_slot[link] = after
        if after >= 0:
            s.previous_slot[after] = before
        _mark(w, s, link, s.speed[entity] * s.full[entity])
        s.flows[link] -= 1
        s.demand[link] = s.demand[link] - s.full[entity] if s.flows[link] else 0.0
        slot += 1


def _reach(s: EngineState, entity: int) -> None:
    """Add a flow to those whose rates are found anew."""
    if not s.is_reached[entity]:
        s.is_reached[entity] = 1
        s.reached[s.counts[REACHED]] = entity
        s.counts[REACHED] += 1


def _reach_all(w: FlowWork, s: EngineState, link: int) -> None:
    """Add the flows of a link that may get other rates; sum up what all would take, and what is
    left for those.
    """
    s.demand[link], s.room[link], s.sharers[link] = 0.0, w.capacity[link], 0
    slot = s.first_slot[link]
    while slot >= 0:
        entity = w.slot_owner[slot]
        rate = s.speed[entity] * s.full[entity]
        s.demand[link] += s.full[entity]
        if s.is_reached[entity] or rate >= s.floor[0]:
            _reach(s, entity)
            s.sharers[link] += 1
        else:
            s.room[link] -= rate
        slot = s.next_slot[slot]


def _lower_floor(w: FlowWork, s: EngineState, entity: int) -> None:
    """Flows that a new one slows down get no less than it does, which is an even share of some
    link on its route, or more.
    """
    route = s.route[entity]
    for hop in range(w.route_first[route], w.route_first[route + 1]):
        link = w.link[hop]
        if _binds(w, s, link):
            s.floor[0] = min(s.floor[0], w.capacity[link] / s.flows[link])


def _explore(w: FlowWork, s: EngineState, shares: Heap) -> None:
    """Find the flows that changes reach, and the binding links between them, each with its share:
    what every flow on it would get if it had nothing else on its way.
    """
    for k in range(s.counts[STARTED]):
        _reach(s, s.started[k])
        _lower_floor(w, s, s.started[k])
    s.floor[0] *= 1 - ENOUGH
    for k in range(s.counts[DIRTY]):
        s.is_dirty[s.dirty[k]] = 0
        _reach_all(w, s, s.dirty[k])
    s.counts[STARTED] = s.counts[DIRTY] = 0
    at = 0
    while at < s.counts[REACHED]:
        entity = s.reached[at]
        at += 1
        s.found[entity], s.is_open[entity] = 1.0, 1
        route = s.route[entity]
        for hop in range(w.route_first[route], w.route_first[route + 1]):
            link = w.link[hop]
            if s.is_binding[link] or not _binds(w, s, link):
                continue
            s.is_binding[link] = 1
            s.binding[s.counts[BINDING]] = link
            s.counts[BINDING] += 1
            _reach_all(w, s, link)
            _put(shares, link, s.room[link] / s.sharers[link])
    s.floor[0] = np.inf


def _settle(w: FlowWork, s: EngineState, shares: Heap, entity: int, rate: float) -> None:
    """Fix a flow's rate: its links have less room, and fewer to share it."""
    s.is_open[entity] = 0
    s.found[entity] = min(1.0, rate / s.full[entity])
    route = s.route[entity]
    for hop in range(w.route_first[route], w.route_first[route + 1]):
        link = w.link[hop]
        if s.is_binding[link]:
            s.room[link] = max(s.room[link] - rate, 0.0)
            s.sharers[link] -= 1


def _fill(w: FlowWork, s: EngineState, shares: Heap) -> None:
    """Fix rates link by link, the one with the smallest share first.

    Shares only grow while flows are fixed, so a key in the heap is never too large. A flow that
    wants no more than the smallest share gets what it wants.
    """
    while shares.size[0] > 0:
        link = shares.item[0]
        if s.sharers[link] == 0:
            _take(shares)
            continue
        share = max(s.room[link] / s.sharers[link], shares.key[link])
        if share > shares.key[link] * (1 + SAME):
            _put(shares, link, share)
            continue
        modest = _settle_on(w, s, shares, link, share * (1 + SAME), True)
        if modest == 0:
            _settle_on(w, s, shares, link, share, False)


def _settle_on(
    w: FlowWork, s: EngineState, shares: Heap, link: int, share: float, only_modest: bool
) -> int:
    """Fix the open flows of a link, or those that want no more than the share; return how many."""
    settled = 0
    slot = s.first_slot[link]
    while slot >= 0:
        entity = w.slot_owner[slot]
        if s.is_open[entity] and (not only_modest or s.full[entity] <= share):
            _settle(w, s, shares, entity, min(share, s.full[entity]))
            settled += 1
        slot = s.next_slot[slot]
    return settled


def _share(w: FlowWork, s: EngineState, events: Heap, shares: Heap, t: float) -> None:
    """Give flows their rates after a change, and those with another rate another end."""
    _explore(w, s, shares)
    _fill(w, s, shares)
    for k in range(s.counts[BINDING]):
        s.is_binding[s.binding[k]] = 0
    for k in range(s.counts[REACHED]):
        entity = s.reached[k]
        s.is_reached[entity] = s.is_open[entity] = 0
        old, new = s.speed[entity], s.found[entity]
        if new > 1 - SAME:
            new = 1.0
        else:
            s.was_slowed[entity] = 1
        if abs(new - old) <= SAME * old:
            continue
        if old > 0:
            s.left[entity] = max(s.left[entity] - (t - s.since[entity]) * old, 0.0)
            s.since[entity] = t
        s.speed[entity] = new
        _put(events, entity, s.since[entity] + s.left[entity] / new)
    s.counts[REACHED] = s.counts[BINDING] = 0


def _arrive(w: FlowWork, s: EngineState, events: Heap, row: int, t: float) -> None:
    """Let a post take effect, known beforehand; who waits for it goes on then."""
    s.effect[row] = t
    wait = w.wait_of[row]
    if wait >= 0 and s.start[wait] >= 0:
        queue = w.queue[wait]
        s.end[wait] = s.effect[wait] = max(s.start[wait], t)
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
        _enter(w, s, entity, row, begin, w.after[row])
    return True


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
        _enter(w, s, entity, row, t, w.after[row])
        return
    _leave(w, s, entity)
    s.phase[entity] = READY
    s.effect[row] = s.busy[connection] = t
    s.sent[connection] = row
    row = s.following[row]
    while row >= 0 and not _serve(w, s, events, row, t):
        row = s.following[row]
    s.front[connection] = row


def _post(w: FlowWork, s: EngineState, events: Heap, row: int, t: float) -> None:
    s.end[row] = t
    if w.connection[row] >= 0:
        _send(w, s, events, row, t)
    else:
        _arrive(w, s, events, row, t + w.after[row])


def _issue(w: FlowWork, s: EngineState, events: Heap, queue: int, row: int, t: float) -> bool:
    """Start moving a row's data; return whether the stream has to wait for it."""
    if w.connection[row] >= 0:
        s.end[row] = t
        _send(w, s, events, row, t)
        return False
    _enter(w, s, queue, row, t, w.on_stream[row] - w.task_us[queue])
    return True


def _resume(w: FlowWork, s: EngineState, events: Heap, queue: int, t: float) -> bool:
    """Go on inside a data task; return whether it keeps its stream still."""
    phase, row = s.phase[queue], w.rows[s.counter[queue]]
    s.phase[queue] = READY
    if phase == HELD:
        if _issue(w, s, events, queue, row, t):
            return True
    else:
        _leave(w, s, queue)
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
            done = max(t, done)
            s.end[row] = s.effect[row] = done
        elif w.kind[row] == POST:
            _post(w, s, events, row, t)
        elif w.connection[row] >= 0 or w.route[row] >= 0:
            if w.task_us[queue] > 0:
                s.phase[queue] = HELD
                _put(events, queue, t + w.task_us[queue])
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
        _binds,
        _mark,
        _enter,
        _leave,
        _reach,
        _reach_all,
        _lower_floor,
        _explore,
        _settle,
        _settle_on,
        _fill,
        _share,
        _arrive,
        _serve,
        _send,
        _advance_connection,
        _post,
        _issue,
        _resume,
        _advance_queue,
    ),
    allocates=False,
)
def run_events(w: FlowWork, s: EngineState, events: Heap, shares: Heap) -> None:
    """Take events until there are none."""
    queues = len(s.counter)
    for queue in range(queues):
        if w.first[queue] < w.first[queue + 1]:
            _put(events, queue, 0.0)
    while events.size[0] > 0:
        first = last = events.key[events.item[0]]
        horizon = first * (1 + AT_ONCE)
        while events.size[0] > 0 and events.key[events.item[0]] <= horizon:
            entity = _take(events)
            last = events.key[entity]
            t = first if s.was_slowed[entity] else last
            if entity < queues:
                _advance_queue(w, s, events, entity, t)
            else:
                _advance_connection(w, s, events, entity, t)
        if s.counts[STARTED] or s.counts[DIRTY]:
            _share(w, s, events, shares, last)
