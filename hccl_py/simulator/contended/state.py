"""Columns that the event loop of the contended simulation reads and changes.

Entities are the queues (a stream of a rank each) and, behind them, the RDMA connections. An entity
has at most one flow, a data task on its way.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hccl_py.values import Floats

Int8s = npt.NDArray[np.int8]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Uint32s = npt.NDArray[np.uint32]
"""Numbers of links and flows: compiled code spends time on numbers that may be negative."""


class FlowWork(NamedTuple):
    """All tasks. By queue: its rows `rows[first[q] : first[q + 1]]`. By row: kind, queue,
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
    """The progress of the walk over tasks.

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


class Dirty(NamedTuple):
    """Links whose levels have to be found anew. All links stand in the order of their levels, in
    `link`; `place` is where each stands, `block` how many
    dirty ones there are among 2^BLOCK neighbours.
    """

    is_dirty: Int8s
    noted: Uint32s
    link: Uint32s
    place: Int32s
    block: Int32s
    counts: Int64s


class Members(NamedTuple):
    """The flows on every link: link l has them at `slot[first[l]] ..`, `flows[l]` of them, its
    `size[l]` members before the others, as a heap by what the link has moved when they are `due`.
    `weight[l]` is the sum of what its members weigh there, `load[l]` of what all flows do (both
    empty where all weigh 1).

    An entity has a slot for each link of a route; `place` is where a slot stands on its link,
    counted from `first`, `owner` its entity, `own` what its flow weighs there (empty where all
    weigh 1). Beside each slot stands the bottleneck of its flow (-1: none). By link: no more than
    the full speed of any member, and when the first of them is due.
    """

    first: Int64s
    slot: Uint32s
    flows: Int32s
    size: Int32s
    weight: Floats
    load: Floats
    bottleneck: Int32s
    least: Floats
    soonest: Floats
    place: Int32s
    owner: Uint32s
    own: Floats
    due: Floats


class Coupling(NamedTuple):
    """The other links that the members of each link are on, the number of members there, and their
    weight (empty where all weigh 1).

    Pair k, in `first[l] <= k < first[l + 1]`, is link l with link `end[k]`, which some route has,
    too. The pairs of l that any of its members makes stand first in `link`, `flows` and `weight`,
    `active[l]` of them; `pair` says which pair stands where, `place` where each stands. `table`
    finds pairs by their links; `of_slot` has those that members make.
    """

    first: Int64s
    end: Uint32s
    link: Uint32s
    flows: Floats
    weight: Floats
    pair: Int32s
    place: Int32s
    active: Int32s
    table: Int32s
    of_slot: Int32s


class Sharing(NamedTuple):
    """The flows that share links, and their rates in bytes a µs.

    Route k is `link[route_first[k] : route_first[k + 1]]`, the last one is empty. On each of them a
    flow takes `weight` times its rate; the column is empty where all weights are 1. By entity: its
    first slot, its flow's bottleneck (-1: none), where its route begins and how many links that
    has, its full speed, and for flows without a bottleneck the time that they need as of `since`;
    whether the flow ever had less than its full speed. By link: capacity, what flows that are no
    members leave of it, its level, no less than what any of these flows has, bytes that each of
    its members has moved as of a time, and whether that was touched at this one. The rest are
    lists: flows that began, links that were touched, and flows that become members with their
    rates.
    """

    route_first: Int64s
    link: Uint32s
    weight: Floats
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
