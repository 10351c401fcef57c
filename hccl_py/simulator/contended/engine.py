"""The event loop of the contended simulation.

Entities are the queues (a stream of a rank each) and, behind them, the RDMA connections. An entity
has at most one flow, a data task on its way, and one event to come, in a heap by time and then by
number. Events at the same time are all taken; then rates are found anew.

The work of a flow at full speed is kept as the time that it still needs. So a flow that shares no
full link ends exactly where the uncontended simulation says. Flows that were slowed down and end at
the same time but for rounding end together, at the earliest of their times: otherwise the
differences grow from event to event, until symmetric flows take one event each.

Legend of this file, rates.py, members.py, dirty.py and heap.py (state.py has every array):

    w  FlowWork: the tasks, which never change      s  EngineState here, Sharing in rates and dirty
    m  Members: the flows on each link              c  Coupling: the links that members share
    t  the time of the event, in µs                 row, queue, entity, link, slot: numbers
"""

from __future__ import annotations

from hccl_py.enums import POST, WAIT
from hccl_py.program.kernels import kernel_calling
from hccl_py.simulator.contended import dirty, heap, members, rates
from hccl_py.simulator.contended.dirty import NOTED
from hccl_py.simulator.contended.heap import put, take
from hccl_py.simulator.contended.rates import FRESH, TOUCHED, enter, find_rates, leave, touch
from hccl_py.simulator.contended.state import (
    Coupling,
    Dirty,
    EngineState,
    FlowWork,
    Heap,
    Members,
    Sharing,
)

AT_ONCE = 1e-10
"""Events that are apart by less, relative to the clock, are taken together: far more than what
levels that are the same may differ by.
"""

READY, HELD, FLOWING = 0, 1, 2
"""What an entity's next event is: its next task, the begin of its flow, the end of its flow."""

BEGUN = 0
"""Place in EngineState.counts: the length of the list of the same name."""


def _arrive(w: FlowWork, s: EngineState, events: Heap, row: int, t: float) -> None:
    """Let a post take effect, known beforehand; its wait, if that has begun, ends then."""
    s.effect[row] = t
    wait = w.wait_of[row]
    if wait >= 0 and s.start[wait] >= 0:
        queue = w.queue[wait]
        s.end[wait] = s.effect[wait] = max(s.start[wait], t) + w.on_stream[wait]
        s.counter[queue] += 1
        put(events, queue, s.end[wait])


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
        put(events, entity, begin)
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
                put(events, queue, done)
                return
            else:
                _send(w, s, events, row, t)
        elif w.connection[row] >= 0 or w.route[row] >= 0:
            if w.task_us[row] > 0:
                s.phase[queue] = HELD
                put(events, queue, t + w.task_us[row])
                return
            if _issue(w, s, events, queue, row, t):
                return
        else:
            done = t + w.on_stream[row]
            s.end[row] = s.effect[row] = done
        s.counter[queue] += 1
        if done > t:
            put(events, queue, done)
            return


# The arguments are as state.py says. An event costs O(log entities) in the heap; a change of flows
# also the members of the links whose levels change, and of those that such a change reaches.
@kernel_calling(
    lambda: (
        *heap.HELPERS,
        *members.HELPERS,
        *dirty.HELPERS,
        *rates.HELPERS,
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
    c: Coupling,
    events: Heap,
    links: Dirty,
    begin: float,
) -> None:
    """Take events, from the begin of all queues on, until there are none. Things of the heap are
    entities, each with its own event, and behind them links, each with the end of its first member.
    """
    # Invariant between rounds of the outer loop: all rates are max-min fair, every entity that can
    # act has its event in the heap, and so has every link that has members.
    queues, entities = len(s.counter), len(s.phase)
    for queue in range(queues):
        if w.first[queue] < w.first[queue + 1]:
            put(events, queue, begin)
    while events.size[0] > 0:
        first = last = events.key[events.item[0]]
        horizon = first * (1 + AT_ONCE)
        link = -1  # a link whose members that are due by the horizon are being ended
        while True:
            if link >= 0 and m.size[link] > 0:
                entity, t = m.owner[m.slot[m.first[link]]], first
                if m.due[entity] - flows.moved[link] > (horizon - first) * flows.level[link]:
                    link = -1
                    continue
            elif events.size[0] > 0 and events.key[events.item[0]] <= horizon:
                entity = take(events)
                last = events.key[entity]
                if entity >= entities:
                    link = entity - entities
                    touch(flows, m, link, first)
                    continue
                t = first if flows.was_slowed[entity] else last
            else:
                break
            # The entity acts: its flow, if it has one, is done, and it may begin others.
            if s.phase[entity] == FLOWING:
                leave(flows, m, c, links, entity, t)
            if entity < queues:
                _advance_queue(w, s, events, entity, t)
            else:
                _advance_connection(w, s, events, entity, t)
            for k in range(s.counts[BEGUN]):
                entity = s.begun[k]
                row = s.flowing[entity]
                us = w.after[row] if entity >= queues else w.on_stream[row] - w.task_us[row]
                route = w.route[row] if w.route[row] >= 0 else len(flows.route_first) - 2
                enter(flows, m, links, entity, route, w.size[row], us, t)
            s.counts[BEGUN] = 0
        # All events of this time are taken: rates change once for all of them.
        if flows.counts[FRESH] or flows.counts[TOUCHED] or links.counts[NOTED]:
            find_rates(flows, m, c, links, events, last)
