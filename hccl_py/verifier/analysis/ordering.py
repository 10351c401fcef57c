"""The accesses and synchronisation that are in no order, over several copies of a program: the
arrays around the loop over clocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from hccl_py.enums import DataType, ReduceOp, TaskKind
from hccl_py.errors import NotSupportedError
from hccl_py.program.program import Program
from hccl_py.values import IntArray, count_up
from hccl_py.verifier.analysis.clocks import arrays, run_clocks
from hccl_py.verifier.analysis.clocks.arrays import AccessedIntervals, ClockState, DependencyGraph
from hccl_py.verifier.analysis.dependencies import graph_of, narrow
from hccl_py.verifier.analysis.memory import MemoryIntervals
from hccl_py.verifier.analysis.unrolled import Unrolled

Int32s = npt.NDArray[np.int32]

MOST_BYTES = 8 << 30
"""Memory that clocks may take: some 30 000 ranks with one stream each."""

AT_FIRST = 1 << 17
"""Entries of the sparse parts of all chains together, at first: where chains are few, each has so
much room that the loop seldom runs again.
"""

MOST_EMITTED = 1 << 20
"""Emissions from which the loop ends instead of making room for more."""

MOST_PASSES = 16
"""Passes after which any post of a shared notify is taken as one that may come before any wait."""

WIDER = 8
"""Factor of the room of a main stream's sparse part: it joins many other streams."""

Room: TypeAlias = dict[int, int]
"""Entries of the arrays whose size shows only in the loop, by the status of a loop that found one
full: WIDTH (of a clock's sparse part), SLOTS, LISTS, EMITTED.
"""


@dataclass(frozen=True, eq=False)
class Ordering:
    """The loop's emissions: rows of (kind, earlier node, later node, first interval, last + 1).

    `is_implied` marks waits whose post was known to be over anyway, in every copy, by row.
    `met[r, x]` is the last place of the main stream of `ranks[x]` that rank `ranks[r]` knew to be
    over at its end of the first copy (ops that only synchronise).
    """

    emitted: Int32s
    is_implied: npt.NDArray[np.bool_]
    ranks: IntArray
    met: Int32s


def ordering_of(run: Unrolled, memory: MemoryIntervals, *, meets: bool) -> Ordering:
    """Find everything that is in no order; `meets` also finds which ranks knew of each other.

    The loop runs again with more room where an array was too small, and with the posts that it has
    found where notifies count, until a pass finds what it was given.
    """
    ranks = _ranks_that_matter(run)
    graph = graph_of(run, ranks)
    accessed = _accessed(run.program, memory)
    accesses = int((memory.intervals.src_stop - memory.intervals.src).sum())
    wide = graph.mains + run.program.streams
    steps = len(run.order) * (2 + wide // 8) + 2 * accesses * run.copies
    steps += len(graph.shared_posts) * len(graph.shared_waits) * graph.mains
    room: Room = {
        arrays.WIDTH: 8 + 2 * min(run.program.streams, 128) + AT_FIRST // (1 + len(graph.home)),
        arrays.SLOTS: 2 * len(graph.home) + 64,
        arrays.LISTS: accesses + len(memory.intervals) + 64,
        arrays.EMITTED: 1 << 12,
    }
    prior: ClockState | None = None
    passes = 0
    while True:
        state = _state(run, graph, memory, room, meets)
        if passes > MOST_PASSES:
            state.may_overtake[:] = 0  # sound: less is known, and never too much
        elif prior is not None:
            _take_over(graph, state, prior)
        status = run_clocks.sized(steps)(graph, accessed, state, run.post_of)
        if status == arrays.EMITTED and room[status] >= MOST_EMITTED:
            break
        if status != arrays.ENOUGH:
            room[status] *= 4
            prior = None
        elif passes > MOST_PASSES or _is_as_given(graph, state, prior):
            break
        else:
            prior, passes = state, passes + 1
    rows, copies = run.rows, run.copies
    implied = np.all(state.is_implied[: rows * copies].reshape(copies, rows), axis=0)
    emitted = _as_laid_out(state.emitted[: int(state.counts[arrays.EMISSIONS])], memory)
    return Ordering(emitted, implied, ranks, state.met)


def _take_over(graph: DependencyGraph, state: ClockState, prior: ClockState) -> None:
    """Give a pass the results of the one before it: the posts of shared cells that may come before
    waits that the walk meets earlier, their clocks, and the folds of main streams.
    """
    np.minimum(prior.may_overtake, prior.overtakes, out=state.may_overtake)
    held = slice(graph.shared_base, graph.shared_base + len(graph.shared_posts))
    state.dense[held], state.width[held] = prior.dense[held], prior.width[held]
    entries = slice(int(state.sparse_first[held.start]), int(state.sparse_first[held.stop]))
    state.sparse_chain[entries] = prior.sparse_chain[entries]
    state.sparse_place[entries] = prior.sparse_place[entries]
    state.has_clock[:] = 1
    state.prior_upto[:], state.prior_main[:] = prior.record_upto, prior.record_main
    state.prior_records[:] = prior.records


def _is_as_given(graph: DependencyGraph, state: ClockState, prior: ClockState | None) -> bool:
    """True if a pass has found what it was given: then its result is sound."""
    if (state.overtakes < state.may_overtake).any():
        return False
    used = np.flatnonzero(state.may_overtake != arrays.NONE)
    if prior is None or not len(used):
        return not len(used)
    if (state.records != prior.records).any():
        return False
    held = graph.shared_base + used
    same = (state.dense[held] == prior.dense[held]).all()
    same &= (state.width[held] == prior.width[held]).all()
    spans = [(int(state.sparse_first[h]), int(state.width[h])) for h in held.tolist()]
    for first, width in spans:
        part = slice(first, first + width)
        same &= (state.sparse_chain[part] == prior.sparse_chain[part]).all()
        same &= (state.sparse_place[part] == prior.sparse_place[part]).all()
    recorded = np.repeat(graph.record_first[:-1], state.records)
    recorded = recorded + count_up(state.records.astype(np.int64))
    same &= (state.record_main[recorded] == prior.record_main[recorded]).all()
    same &= (state.record_upto[recorded] == prior.record_upto[recorded]).all()
    return bool(same)


def _as_laid_out(emitted: Int32s, memory: MemoryIntervals) -> Int32s:
    """Return the emissions with the intervals of alternating buffers as in even copies."""
    intervals = len(memory.intervals)
    is_odd = emitted[:, 3] >= intervals
    emitted[is_odd, 3:5] -= intervals
    return emitted


def _ranks_that_matter(run: Unrolled) -> IntArray:
    """Return the ranks that have tasks or that tasks of others reach; the caller of any other rank
    is in order with everything.
    """
    tasks = run.program.tasks
    matters = np.diff(tasks.first) > 0
    matters[tasks.peer[tasks.peer >= 0]] = True
    return np.flatnonzero(matters)


def _slots(run: Unrolled, room: Room) -> int:
    """Return the number of posts that may be under way at once."""
    program = run.program
    most = int((run.kind == TaskKind.NOTIFY_POST).sum()) if program.counts_posts else program.cells
    return min(room[arrays.SLOTS], max(most, 1))


def _accessed(program: Program, memory: MemoryIntervals) -> AccessedIntervals:
    tasks, moves, intervals = program.tasks, memory.transfers, memory.intervals
    move = np.full(len(tasks), -1, np.int32)
    move[moves.row] = np.arange(len(moves))
    at = tasks.instruction[moves.row]
    kind, dtype, reduce = (getattr(tasks.table, name)[at] for name in ("kind", "dtype", "reduce"))
    how = np.full(len(moves), arrays.COPY, np.int8)
    how[np.isin(kind, [k for k in TaskKind if k.reduces])] = arrays.PLAIN
    how[np.isin(kind, [k for k in TaskKind if k.is_atomic])] = arrays.ATOMIC
    how[kind == TaskKind.RDMA_WRITE_REDUCE] = arrays.ATOMIC_RDMA
    floats = [t.number for t in DataType if t.is_float]
    rounds = np.isin(dtype, floats) & np.isin(reduce, (ReduceOp.SUM, ReduceOp.PROD))
    into, out = memory.owned("IN"), memory.owned("OUT")
    alternates = np.array([name in program.alternating for name in program.buffers], bool)
    src_odd, dst_odd = (
        first + len(intervals) * alternates[getattr(tasks.table, f"{side}_buffer")[at]]
        for side, first in (("src", intervals.src), ("dst", intervals.dst))
    )
    return AccessedIntervals(
        move=move,
        src=narrow(intervals.src),
        src_stop=narrow(intervals.src_stop),
        dst=narrow(intervals.dst),
        dst_stop=narrow(intervals.dst_stop),
        src_odd=narrow(src_odd),
        dst_odd=narrow(dst_odd),
        how=how,
        alike=reduce.astype(np.int32) * 256 + dtype,
        rounds=rounds,
        into=narrow(into[0]),
        into_stop=narrow(into[1]),
        out=narrow(out[0]),
        out_stop=narrow(out[1]),
    )


def _state(
    run: Unrolled, graph: DependencyGraph, memory: MemoryIntervals, room: Room, meets: bool
) -> ClockState:
    program, chains, nodes = run.program, len(graph.home), len(run.kind)
    cells = max(program.cells, 1)
    slots, intervals = _slots(run, room), max(len(memory.intervals), 1)
    if program.alternating:
        intervals *= 2
    kept = graph.shared_base + len(graph.shared_posts)
    holders = kept + slots
    widths = np.full(holders, room[arrays.WIDTH])
    widths[:chains][graph.is_main] *= WIDER
    _check_room(run, 4 * (holders * graph.mains + 2 * int(widths.sum())))
    records = int(graph.record_first[-1])
    return ClockState(
        dense=_full((holders, graph.mains)),
        width=np.zeros(holders, np.int32),
        sparse_first=np.concatenate([[0], np.cumsum(widths)]),
        sparse_chain=np.empty(int(widths.sum()), np.int32),
        sparse_place=np.empty(int(widths.sum()), np.int32),
        record_upto=np.empty(records, np.int32),
        record_main=np.empty(records, np.int32),
        records=np.zeros(chains, np.int32),
        free_slots=np.concatenate([[slots], np.arange(kept, holders)[::-1]]).astype(np.int32),
        slot_of_cell=_full(cells),
        slot_of_post=_slots_of_posts(graph, nodes),
        waits_seen=np.zeros(len(graph.shared_wait_first), np.int32),
        wait_number=_full(nodes if graph.counts else 0),
        posts_over=graph.shared_first[:-1].copy(),
        has_clock=np.zeros(len(graph.shared_posts), np.int8),
        may_overtake=np.full(len(graph.shared_posts), arrays.NONE, np.int32),
        overtakes=np.full(len(graph.shared_posts), arrays.NONE, np.int32),
        chain_met_by=_full(chains),
        met_by=_full(len(run.first)),
        candidates=_full(len(graph.shared_posts)),
        values=_full(len(graph.shared_posts)),
        prior_upto=np.empty(records, np.int32),
        prior_main=np.empty(records, np.int32),
        prior_records=np.zeros(chains, np.int32),
        last_wait=_full(cells),
        conn_place=_full(chains),
        issue_of_end=_full(max(len(program.transports), 1)),
        issue_place=_full(nodes),
        event_chain=np.empty(nodes, np.int32),
        event_place=np.empty(nodes, np.int32),
        writer=_full(intervals),
        readers=_full(intervals),
        reducers=_full(intervals),
        list_node=np.empty(room[arrays.LISTS], np.int32),
        list_next=np.append(np.arange(1, room[arrays.LISTS]), -1).astype(np.int32),
        scratch=np.empty((2, 2 * WIDER * room[arrays.WIDTH] + 2), np.int32),
        emitted=np.empty((room[arrays.EMITTED], 5), np.int32),
        is_implied=np.zeros(nodes, bool),
        post_of_wait=_full(nodes),
        started=_full(chains),
        counts=np.zeros(3, np.int64),
        met=_full((graph.mains, graph.mains)) if meets else _full((0, 0)),
    )


def _slots_of_posts(graph: DependencyGraph, nodes: int) -> Int32s:
    """Return the holder of each post; so far, only those of shared cells have one."""
    found = _full(nodes if graph.counts else 0)
    found[graph.shared_posts] = graph.shared_base + np.arange(len(graph.shared_posts))
    return found


def _full(shape: int | tuple[int, int]) -> Int32s:
    return np.full(shape, -1, np.int32)


def _check_room(run: Unrolled, bytes_needed: int) -> None:
    if bytes_needed > MOST_BYTES:
        program = run.program
        raise NotSupportedError(
            f"{program.ranks * program.streams} streams (ranks {program.ranks}, streams of a rank "
            f"{program.streams}) need {bytes_needed >> 30} GiB to keep what each knows of the "
            "others.",
            "Verify a program of fewer ranks or streams: most defects show there too.",
        )
