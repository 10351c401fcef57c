"""The dependency graph of a walk: its nodes with their chains and RDMA connections, and the
notifies that several streams share.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hccl_py.enums import TaskKind
from hccl_py.program.matching import shared_cells
from hccl_py.values import IntArray
from hccl_py.verifier.analysis.clocks.arrays import DependencyGraph, Int32s
from hccl_py.verifier.analysis.unrolled import Unrolled


def graph_of(run: Unrolled, ranks: IntArray) -> DependencyGraph:
    """Return the graph of a walk; clocks know the main streams of these ranks."""
    program, transports = run.program, run.program.transports
    lengths = np.diff(run.first)
    main_of_rank = np.full(program.ranks, -1)
    main_of_rank[ranks] = np.arange(len(ranks))
    used = np.flatnonzero((lengths > 0) & np.repeat(main_of_rank >= 0, program.streams))
    chain_of_queue = np.full(len(lengths), -1, np.int32)
    chain_of_queue[used] = np.arange(len(used))
    chain = chain_of_queue[run.queue]
    conn, end, of_end, streams = _connections(run, chain, len(used))
    owners = np.concatenate([used // program.streams, transports.rank[of_end]])
    home = narrow(main_of_rank[owners])
    is_main = np.concatenate([used % program.streams == 0, np.zeros(len(of_end), bool)])
    issues = np.bincount(conn[conn >= 0], minlength=len(home))
    calls = (np.arange(len(lengths)) % program.streams == 0) * (run.copies + 1)
    order = run.order[chain[run.order] >= 0]
    cells = np.full(len(run.kind), -1, np.int64)
    cells[: run.rows * run.copies] = np.tile(program.tasks.cell, run.copies)
    shared = np.full(max(program.cells, 1), -1, np.int32)
    if program.counts_posts:
        number = shared_cells(program)
        shared[number] = np.arange(len(number))
    posts, post_first = _by_cell(run, order, TaskKind.NOTIFY_POST, cells, shared)
    waits, wait_first = _by_cell(run, order, TaskKind.NOTIFY_WAIT, cells, shared)
    return DependencyGraph(
        order=order,
        first=run.first,
        nodes=run.nodes,
        queue=run.queue,
        kind=run.kind,
        chain=chain,
        place=run.place,
        cell=cells,
        conn=conn,
        end=end,
        conn_first=narrow(
            len(used) + np.searchsorted(of_end, np.arange(max(len(transports), 1) + 1))
        ),
        stream_of_conn=narrow(np.concatenate([np.full(len(used), -1), streams])),
        issue_first=narrow(np.cumsum(issues) - issues),
        home=home,
        is_main=is_main,
        record_first=_record_first(run, chain, conn, len(home)),
        chain_of_queue=chain_of_queue,
        length_of_queue=narrow((lengths - calls) // run.copies),
        rows=run.rows,
        copies=run.copies,
        ranks=program.ranks,
        streams=program.streams,
        mains=len(ranks),
        counts=program.counts_posts,
        shared=shared,
        shared_first=post_first,
        shared_posts=posts,
        shared_posters=_posters(run, posts, post_first),
        shared_wait_first=wait_first,
        shared_waits=waits,
        shared_base=len(home),
    )


def _connections(
    run: Unrolled, chain: Int32s, streams: int
) -> tuple[Int32s, Int32s, IntArray, IntArray]:
    """Return by node the chain of its RDMA connection and its transport end, -1 for none; and by
    such chain, numbered from `streams` on, the end and the stream that issues there.
    """
    program, transports = run.program, run.program.transports
    conn = np.full(len(run.kind), -1, np.int32)
    end = np.full(len(run.kind), -1, np.int32)
    if not len(transports) or not transports.is_rdma.any():
        return conn, end, np.zeros(0, np.int64), np.zeros(0, np.int64)
    issued = np.flatnonzero(_issues(run))
    end[: run.rows * run.copies] = np.tile(program.tasks.end, run.copies)
    key = end[issued].astype(np.int64) * streams + chain[issued]
    distinct, which = np.unique(key, return_inverse=True)
    conn[issued] = streams + which.reshape(-1)
    return conn, end, *np.divmod(distinct, streams)


def _record_first(run: Unrolled, chain: Int32s, conn: Int32s, chains: int) -> IntArray:
    """Return the beginning of each chain's fold records, and their end: a main stream learns of a
    chain at most once for each of its posts and issues.
    """
    tells = (run.kind == TaskKind.NOTIFY_POST) | (conn >= 0)
    events = np.where(conn >= 0, conn, chain)
    counts = [np.bincount(column[tells], minlength=chains) for column in (chain, events)]
    return np.concatenate([[0], np.cumsum(np.maximum(*counts))]).astype(np.int64)


def _by_cell(
    run: Unrolled, order: Int32s, kind: TaskKind, cells: IntArray, shared: Int32s
) -> tuple[Int32s, IntArray]:
    """Return the posts or waits of shared cells, in walk order, and the first of each cell."""
    nodes = order[np.equal(run.kind[order], kind)]
    number = shared[cells[nodes]]
    nodes, number = nodes[number >= 0], number[number >= 0]
    counts = np.bincount(number, minlength=int(shared.max(initial=-1)) + 1)
    first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return nodes[np.argsort(number, kind="stable")], first


def _posters(run: Unrolled, posts: Int32s, first: IntArray) -> Int32s:
    """Return the number of streams that post each shared cell."""
    cells = np.repeat(np.arange(len(first) - 1), np.diff(first))
    pairs = np.unique(np.stack([cells, run.queue[posts]]), axis=1)[0]
    return narrow(np.bincount(pairs, minlength=len(first) - 1))


def _issues(run: Unrolled) -> npt.NDArray[np.bool_]:
    """Mark the tasks that go through an RDMA connection: writes, and posts to the other end."""
    program = run.program
    end = np.tile(program.tasks.end, run.copies)
    kind = run.kind[: len(end)]
    goes = np.isin(kind, (TaskKind.RDMA_WRITE, TaskKind.RDMA_WRITE_REDUCE, TaskKind.NOTIFY_POST))
    is_rdma: npt.NDArray[np.bool_] = program.transports.is_rdma[np.maximum(end, 0)]
    return goes & (end >= 0) & is_rdma


def narrow(column: IntArray) -> Int32s:
    """Return a column in 32 bits."""
    return column.astype(np.int32)
