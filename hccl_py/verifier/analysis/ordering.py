"""What is in no order, for a program that runs several times: the arrays around the loop of
clocks.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hccl_py.enums import DataType, ReduceOp, TaskKind
from hccl_py.errors import NotSupportedError
from hccl_py.program.program import Program
from hccl_py.values import IntArray
from hccl_py.verifier.analysis import clocks
from hccl_py.verifier.analysis.clocks import ClockState, DependencyGraph, Touched, run_clocks
from hccl_py.verifier.analysis.memory import MemoryIntervals
from hccl_py.verifier.analysis.unrolled import Unrolled

__all__ = ["Ordering", "ordering_of"]

Int32s = npt.NDArray[np.int32]

MOST_BYTES = 8 << 30
"""Memory that clocks may take: some 30 000 ranks with one stream each."""

MOST_EMITTED = 1 << 20

WIDER = 8
"""A main stream that joins many others knows much of them for a while."""


@dataclass(frozen=True, eq=False)
class Ordering:
    """What the loop emitted: rows of (what, earlier node, later node, first interval, last + 1).

    `is_implied` marks waits whose post was known to be over anyway, in every copy, by row.
    `met[r, x]` is how far rank `ranks[r]` knew the main stream of `ranks[x]` at its end of the
    first copy (ops that only synchronise).
    """

    emitted: Int32s
    is_implied: npt.NDArray[np.bool_]
    ranks: IntArray
    met: Int32s


@dataclass
class _Room:
    """Sizes of the arrays that nobody can know beforehand; `width` is that of a clock's sparse
    part.
    """

    width: int
    slots: int
    lists: int
    emitted: int

    def grow(self, status: int) -> bool:
        """Make room after the loop has ended early; False where there is enough of it."""
        if status == clocks.EMITTED and self.emitted >= MOST_EMITTED:
            return False
        name = {
            clocks.WIDTH: "width",
            clocks.SLOTS: "slots",
            clocks.LISTS: "lists",
            clocks.EMITTED: "emitted",
        }[status]
        setattr(self, name, 4 * getattr(self, name))
        return True


def ordering_of(run: Unrolled, memory: MemoryIntervals, *, meets: bool) -> Ordering:
    """Find everything that is in no order; `meets` keeps who knew of whom at the end."""
    ranks = _ranks_that_matter(run)
    graph = _graph(run, ranks)
    touched = _touched(run.program, memory)
    accesses = int((memory.intervals.src_stop - memory.intervals.src).sum())
    wide = graph.mains + run.program.streams
    steps = len(run.order) * (2 + wide // 8) + 2 * accesses * run.copies
    room = _Room(
        8 + 2 * min(run.program.streams, 128),
        2 * len(graph.home) + 64,
        accesses + len(memory.intervals) + 64,
        1 << 12,
    )
    while True:
        state = _state(run, graph, memory, room, meets)
        status = run_clocks.sized(steps)(graph, touched, state, run.post_of)
        if status == clocks.ENOUGH or not room.grow(status):
            break
    rows, copies = run.rows, run.copies
    implied = np.all(state.is_implied[: rows * copies].reshape(copies, rows), axis=0)
    emitted = state.emitted[: int(state.counts[clocks.EMISSIONS])]
    return Ordering(emitted, implied, ranks, state.met)


def _ranks_that_matter(run: Unrolled) -> IntArray:
    """Return the ranks that have tasks, or that tasks of others reach: the callers of all others
    are in order with everything.
    """
    tasks = run.program.tasks
    matters = np.diff(tasks.first) > 0
    matters[tasks.peer[tasks.peer >= 0]] = True
    return np.flatnonzero(matters)


def _graph(run: Unrolled, ranks: IntArray) -> DependencyGraph:
    program, transports = run.program, run.program.transports
    lengths = np.diff(run.first)
    main_of_rank = np.full(program.ranks, -1)
    main_of_rank[ranks] = np.arange(len(ranks))
    used = np.flatnonzero((lengths > 0) & np.repeat(main_of_rank >= 0, program.streams))
    chain_of_queue = np.full(len(lengths), -1, np.int32)
    chain_of_queue[used] = np.arange(len(used))
    chain = chain_of_queue[run.queue]
    conn = np.full(len(run.kind), -1, np.int32)
    end = np.full(len(run.kind), -1, np.int32)
    home, is_main = main_of_rank[used // program.streams], used % program.streams == 0
    tasks, ends = run.rows * run.copies, max(len(transports), 1)
    streams, of_end = np.zeros(0, np.int64), np.zeros(0, np.int64)
    if len(transports) and transports.is_rdma.any():
        issued = np.flatnonzero(_issues(run))
        end[:tasks] = np.tile(program.tasks.end, run.copies)
        key = end[issued].astype(np.int64) * len(used) + chain[issued]
        distinct, which = np.unique(key, return_inverse=True)
        of_end, streams = np.divmod(distinct, len(used))
        conn[issued] = len(used) + which.reshape(-1)
        home = np.concatenate([home, main_of_rank[transports.rank[of_end]]])
        is_main = np.concatenate([is_main, np.zeros(len(distinct), bool)])
    events = np.where(conn >= 0, conn, chain)
    issues = np.bincount(conn[conn >= 0], minlength=len(home))
    tells = (run.kind == TaskKind.NOTIFY_POST) | (conn >= 0)
    records = np.bincount(chain[tells], minlength=len(home))
    records = np.maximum(records, np.bincount(events[tells], minlength=len(home)))
    extra = (np.arange(len(lengths)) % program.streams == 0) * (run.copies + 1)
    return DependencyGraph(
        order=run.order[chain[run.order] >= 0],
        first=run.first,
        nodes=run.nodes,
        queue=run.queue,
        kind=run.kind,
        chain=chain,
        place=run.place,
        cell=np.concatenate(
            [np.tile(program.tasks.cell, run.copies), np.full(len(run.kind) - tasks, -1, np.int64)]
        ),
        conn=conn,
        end=end,
        conn_first=_narrow(len(used) + np.searchsorted(of_end, np.arange(ends + 1))),
        stream_of_conn=_narrow(np.concatenate([np.full(len(used), -1), streams])),
        issue_first=_narrow(np.cumsum(issues) - issues),
        home=home.astype(np.int32),
        is_main=is_main,
        record_first=np.concatenate([[0], np.cumsum(records)]).astype(np.int64),
        chain_of_queue=chain_of_queue,
        length_of_queue=((lengths - extra) // run.copies).astype(np.int32),
        rows=run.rows,
        copies=run.copies,
        ranks=program.ranks,
        streams=program.streams,
        mains=len(ranks),
    )


def _issues(run: Unrolled) -> npt.NDArray[np.bool_]:
    """Whether a node goes through an RDMA connection: writes, and posts to the other end."""
    program = run.program
    end = np.tile(program.tasks.end, run.copies)
    kind = run.kind[: len(end)]
    goes = np.isin(kind, (TaskKind.RDMA_WRITE, TaskKind.RDMA_WRITE_REDUCE, TaskKind.NOTIFY_POST))
    is_rdma: npt.NDArray[np.bool_] = program.transports.is_rdma[np.maximum(end, 0)]
    return goes & (end >= 0) & is_rdma


def _touched(program: Program, memory: MemoryIntervals) -> Touched:
    tasks, moves, intervals = program.tasks, memory.transfers, memory.intervals
    move = np.full(len(tasks), -1, np.int32)
    move[moves.row] = np.arange(len(moves))
    at = tasks.instruction[moves.row]
    kind, dtype, reduce = (getattr(tasks.table, name)[at] for name in ("kind", "dtype", "reduce"))
    how = np.full(len(moves), clocks.COPY, np.int8)
    how[np.isin(kind, [k for k in TaskKind if k.reduces])] = clocks.PLAIN
    how[np.isin(kind, [k for k in TaskKind if k.is_atomic])] = clocks.ATOMIC
    how[kind == TaskKind.RDMA_WRITE_REDUCE] = clocks.ATOMIC_RDMA
    floats = [t.number for t in DataType if t.is_float]
    rounds = np.isin(dtype, floats) & np.isin(reduce, (ReduceOp.SUM, ReduceOp.PROD))
    into, out = memory.owned("IN"), memory.owned("OUT")
    return Touched(
        move=move,
        src=_narrow(intervals.src),
        src_stop=_narrow(intervals.src_stop),
        dst=_narrow(intervals.dst),
        dst_stop=_narrow(intervals.dst_stop),
        how=how,
        alike=reduce.astype(np.int32) * 256 + dtype,
        rounds=rounds,
        into=_narrow(into[0]),
        into_stop=_narrow(into[1]),
        out=_narrow(out[0]),
        out_stop=_narrow(out[1]),
    )


def _narrow(column: IntArray) -> Int32s:
    return column.astype(np.int32)


def _state(
    run: Unrolled, graph: DependencyGraph, memory: MemoryIntervals, room: _Room, meets: bool
) -> ClockState:
    program, chains, nodes = run.program, len(graph.home), len(run.kind)
    cells = max(program.cells, 1)
    slots = min(room.slots, cells)
    holders, intervals = chains + slots, max(len(memory.intervals), 1)
    widths = np.full(holders, room.width)
    widths[:chains][graph.is_main] *= WIDER
    _check_room(run, 4 * (holders * graph.mains + 2 * int(widths.sum())))
    records = int(graph.record_first[-1])
    ends = max(len(program.transports), 1)
    following = np.arange(1, room.lists + 1, dtype=np.int32)
    following[-1] = -1
    return ClockState(
        dense=_full((holders, graph.mains)),
        width=np.zeros(holders, np.int32),
        sparse_first=np.concatenate([[0], np.cumsum(widths)]),
        sparse_chain=np.empty(int(widths.sum()), np.int32),
        sparse_place=np.empty(int(widths.sum()), np.int32),
        record_upto=np.empty(records, np.int32),
        record_main=np.empty(records, np.int32),
        records=np.zeros(chains, np.int32),
        free_slots=np.concatenate([[slots], np.arange(chains, holders)[::-1]]).astype(np.int32),
        slot_of_cell=_full(cells),
        last_wait=_full(cells),
        conn_place=_full(chains),
        issue_of_end=_full(ends),
        issue_place=_full(nodes),
        event_chain=np.empty(nodes, np.int32),
        event_place=np.empty(nodes, np.int32),
        writer=_full(intervals),
        readers=_full(intervals),
        reducers=_full(intervals),
        list_node=np.empty(room.lists, np.int32),
        list_next=following,
        scratch=np.empty((2, 2 * WIDER * room.width + 2), np.int32),
        emitted=np.empty((room.emitted, 5), np.int32),
        is_implied=np.zeros(nodes, bool),
        post_of_wait=_full(nodes),
        started=_full(chains),
        counts=np.zeros(3, np.int64),
        met=_full((graph.mains, graph.mains)) if meets else _full((0, 0)),
    )


def _full(shape: int | tuple[int, int]) -> Int32s:
    return np.full(shape, -1, np.int32)


def _check_room(run: Unrolled, bytes_needed: int) -> None:
    if bytes_needed > MOST_BYTES:
        program = run.program
        raise NotSupportedError(
            f"{program.ranks * program.streams} streams (ranks {program.ranks}, streams of a rank "
            f"{program.streams}) need {bytes_needed >> 30} GiB to keep what each knows of the "
            "others.",
            "Verify a program of fewer ranks or streams: what is wrong mostly shows there too.",
        )
