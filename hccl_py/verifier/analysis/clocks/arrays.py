"""The columns that the loop reads, changes and emits."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

COPY, PLAIN, ATOMIC, ATOMIC_RDMA = 0, 1, 2, 3
"""How a move writes: a copy; a reduction that reads and writes; one that hardware makes atomic,
over SDMA or over RDMA. No source says that two over RDMA are atomic with each other.
"""

ENOUGH, WIDTH, SLOTS, LISTS, EMITTED = 0, 1, 2, 3, 4
"""How the loop ended: well, or because an array was too small."""

NONE = 2**31 - 1
"""No wait: a post that comes after all those that the walk has met before it."""

FREE, EMISSIONS, STATUS = 0, 1, 2
"""Places in ClockState.counts: head of the free list nodes, emissions so far, how it ended."""


class DependencyGraph(NamedTuple):
    """Nodes in walk order and by queue, and what order depends on.

    By node: kind, chain, place on it, cell, chain of the RDMA connection it issues on (-1: none)
    and the end of that connection. By end: the first chain of its connection. By such a chain: its
    stream, and where its issues begin. By chain: the number of its rank among the `mains` that
    clocks know, whether it is a main stream, where its records of folding begin. By queue: its
    chain (-1: none) and how many nodes a copy has there.

    Where notifies count posts (`counts`), those that several streams post or wait for are `shared`
    (by cell: their number, or -1), each with its posts and waits of all copies, in walk order, and
    how many streams post it. The clock of the k-th such post is kept by holder `shared_base` + k.
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


class Touched(NamedTuple):
    """Which intervals a node touches. By row: its move or -1. By move: intervals, where they begin
    in odd calls, how it writes, which reductions are alike, whether their order shows. By rank: the
    caller's intervals of IN and OUT.
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
    """What the loop changes. Holders of clocks are the chains, then the posts of shared cells, then
    slots for other posts under way. `prior_...` are the records of the pass before; `has_clock` is
    1 where the clock of a shared cell's post is from there, 2 where it is of this pass.
    `may_overtake` has, for each of these posts, the first wait that it may come before, by what the
    pass is given, and `overtakes` by what it finds.
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
