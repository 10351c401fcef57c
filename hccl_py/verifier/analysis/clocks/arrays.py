"""The columns that the loop reads, changes and emits.

Functions of the loop name them by a letter each:

    g   DependencyGraph     the nodes and the order that is known beforehand; never changed
    a   AccessedIntervals   the memory that each node touches; never changed
    s   ClockState          clocks and last accesses; changed at every node

`node` is a task of one copy of the op, or a call of the caller (unrolled.py). A `chain` is a
stream, or the traffic of one stream on one RDMA connection, and `place` a position on it. A
`holder` owns a clock: a chain, or a post under way.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

COPY, PLAIN, ATOMIC, ATOMIC_RDMA = 0, 1, 2, 3
"""Kinds of writes: a copy; a reduction that reads and writes; one that hardware makes atomic, over
SDMA or over RDMA. No source says that two over RDMA are atomic with each other.
"""

ENOUGH, WIDTH, SLOTS, LISTS, EMITTED = 0, 1, 2, 3, 4
"""Ends of the loop: success, or the kind of array that was too small."""

NONE = 2**31 - 1
"""No wait: the post comes after all waits that the walk has met before it."""

FREE, EMISSIONS, STATUS = 0, 1, 2
"""Places in ClockState.counts: head of the free list nodes, emissions so far, end of the loop."""


class DependencyGraph(NamedTuple):
    """Nodes in walk order and by queue, with all that their order depends on.

    The walk is `order`. Queue q holds nodes[first[q] : first[q + 1]].

    by node    queue, kind, chain, place on the chain, cell; conn: the chain of the RDMA connection
               that it issues on (-1: none); end: the transport end of that connection
    by end     conn_first: the first chain of its connection
    by chain   home: the number of its rank among the `mains` that clocks know; is_main;
               record_first: the beginning of its fold records; stream_of_conn and issue_first: for
               a connection, its stream and the beginning of its issues
    by queue   chain_of_queue (-1: none), length_of_queue: nodes of one copy

    Where notifies count posts (`counts`), a cell that several streams post or wait for is `shared`,
    by cell its number k or -1. Its posts are shared_posts[shared_first[k] : shared_first[k + 1]],
    of all copies in walk order, from `shared_posters[k]` streams; its waits likewise. The clock of
    shared_posts[i] belongs to holder `shared_base` + i.
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
    counts: bool
    shared: Int32s
    shared_first: Int64s
    shared_posts: Int32s
    shared_posters: Int32s
    shared_wait_first: Int64s
    shared_waits: Int32s
    shared_base: int


class AccessedIntervals(NamedTuple):
    """The intervals of memory that nodes access.

    by row    move: the number of its move, or -1
    by move   src .. src_stop and dst .. dst_stop: its intervals; src_odd and dst_odd: their
              beginning in odd copies, where buffers alternate; how it writes; alike: equal for
              reductions of one op and data type; rounds: whether their order shows in the result
    by rank   into .. into_stop and out .. out_stop: the caller's intervals of IN and OUT
    """

    move: Int32s
    src: Int32s
    src_stop: Int32s
    dst: Int32s
    dst_stop: Int32s
    src_odd: Int32s
    dst_odd: Int32s
    how: npt.NDArray[np.int8]
    alike: Int32s
    rounds: Bools
    into: Int32s
    into_stop: Int32s
    out: Int32s
    out_stop: Int32s


class ClockState(NamedTuple):
    """The arrays that the loop changes.

    Clocks, by holder: first the chains, then the posts of shared cells, then slots for other posts
    under way. `dense[holder, k]` is the last place of the k-th main stream that is known to be
    over, -1 for none. The sparse part, sorted by chain, is sparse_chain and sparse_place from
    `sparse_first[holder]` on, `width[holder]` entries.

    Folds, by chain, from `record_first` on: `records[chain]` pairs of which the k-th says that a
    clock that knows the main stream up to `record_main` knows this chain up to `record_upto`. Both
    columns grow. `prior_...` are those of the pass before.

    Posts under way: `slot_of_cell`, or `slot_of_post` where notifies count; `free_slots[0]` free
    ones follow its first entry. By shared cell: `waits_seen`, and `posts_over` (the posts before it
    are known to be over). By shared post: `has_clock` (1: a clock of the pass before, 2: one of
    this pass), `may_overtake` and `overtakes`: the first wait that the post may come before, as the
    pass is given it and as it finds it. `wait_number[wait]` is k where it is the k-th for certain.

    Accesses, by interval: `writer` is the last write, `readers` and `reducers` head the lists
    (list_node, list_next) of reads and atomic reductions since. `event_chain` and `event_place`
    are, by node, the chain and place at which its access is over.

    By cell: `last_wait`. By connection: `conn_place`, and `issue_place`, its issues' places on
    their stream. By end: `issue_of_end`, the last issue. By wait: `post_of_wait`, and `is_implied`,
    whether its post was known to be over without it. `started[chain]` is the last copy for which
    NOT_STARTED was emitted; `met[k]` is main k's dense clock at its end of the first copy.
    `met_by`, `chain_met_by`, `candidates`, `values` and `scratch` are working space.
    """

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
    slot_of_post: Int32s
    waits_seen: Int32s
    wait_number: Int32s
    posts_over: Int64s
    has_clock: npt.NDArray[np.int8]
    may_overtake: Int32s
    overtakes: Int32s
    met_by: Int32s
    chain_met_by: Int32s
    candidates: Int32s
    values: Int32s
    prior_upto: Int32s
    prior_main: Int32s
    prior_records: Int32s
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
