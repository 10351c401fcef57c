"""Memory that two tasks touch in no order: races, reused RDMA sources, sums in an open order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hccl_py.enums import TaskKind
from hccl_py.values import IntArray
from hccl_py.verifier.analysis.clocks import emissions
from hccl_py.verifier.analysis.memory import MemoryIntervals
from hccl_py.verifier.analysis.ordering import Ordering
from hccl_py.verifier.analysis.unrolled import Unrolled
from hccl_py.verifier.classes import Severity
from hccl_py.verifier.finding import Finding, MemoryRange
from hccl_py.verifier.subject import Subject, shortened

_RACES = (
    emissions.BESIDE_READ,
    emissions.BESIDE_WRITE,
    emissions.UNORDERED_SUM,
    emissions.REUSE,
)


class _Pair(NamedTuple):
    """Two nodes, in the order that is probably meant, and the intervals that both touch."""

    what: int
    early: int
    late: int
    ranges: tuple[tuple[int, int], ...]


class _RacingAccess(NamedTuple):
    """One side of a race: the owner of the memory, the buffer, and whether it writes."""

    rank: int
    buffer: int
    writes: bool


def find_races(
    subject: Subject, run: Unrolled, memory: MemoryIntervals, ordering: Ordering, loose: IntArray
) -> Iterator[Finding]:
    """Yield RACE_RW, RACE_WW, RDMA_SOURCE_REUSE, INPLACE_CLOBBER and REDUCE_ORDER_NONDET; races of
    `loose` streams with their own caller have findings already.
    """
    finder = _Finder(subject, run, memory)
    emitted = ordering.emitted[np.isin(ordering.emitted[:, 0], _RACES)].astype(np.int64)
    emitted = emitted[~_with_own_caller(run, emitted, loose)]
    if len(emitted):
        pairs = _Pairs(run, emitted)
        for alike in pairs.groups:
            yield from shortened(alike, lambda k: finder.finding(pairs.pair(k)))


def _with_own_caller(run: Unrolled, emitted: IntArray, loose: IntArray) -> npt.NDArray[np.bool_]:
    """Mark pairs of a task on a loose stream and the caller of its own rank."""
    nodes = emitted[:, 1:3]
    is_call = nodes >= run.copies * run.rows
    streams = run.program.streams
    queue = run.queue[nodes]
    same_rank = queue[:, 0] // streams == queue[:, 1] // streams
    found: npt.NDArray[np.bool_] = is_call.any(axis=1) & same_rank
    return found & (np.isin(queue, loose) & ~is_call).any(axis=1)


def racing_rows(run: Unrolled, ordering: Ordering) -> IntArray:
    """Return the task rows that take part in a race: the data that they read depends on timing."""
    emitted = ordering.emitted
    races = np.isin(emitted[:, 0], (emissions.BESIDE_READ, emissions.BESIDE_WRITE, emissions.REUSE))
    nodes = emitted[races, 1:3].reshape(-1)
    return np.unique(nodes[nodes < run.rows * run.copies] % max(run.rows, 1)).astype(np.int64)


class _Pairs:
    """The emitted pairs of nodes, each once, in the first copies that show it.

    `groups` has the numbers of pairs, those at the same lines together.
    """

    def __init__(self, run: Unrolled, found: IntArray) -> None:
        turned = _is_turned(run, found)
        found[turned, 1:3] = found[turned, 2:0:-1]
        row, copy = _rows_and_copies(run, found[:, 1:3])
        early, late = row.T
        lag = copy[:, 1] - copy[:, 0]
        order = np.lexsort((found[:, 3], copy[:, 0], lag, late, early, found[:, 0]))
        found, copy = found[order], copy[order]
        keys = np.stack([found[:, 0], early[order], late[order], lag[order]], axis=1)
        pair, first = _numbered(keys)
        kept = copy[:, 0] == copy[first[pair], 0]  # later copies show the same again
        lines = [keys[first, 0], *(_lines(run, keys[first, k]) for k in (1, 2))]
        _, alike = np.unique(np.stack(lines, axis=1), axis=0, return_inverse=True)
        alike = alike.reshape(-1)
        together = np.argsort(alike, kind="stable")
        self._emitted, self._kept, self._first = found, kept, np.append(first, len(found))
        self.groups = [
            group.tolist() for group in np.split(together, np.cumsum(np.bincount(alike))[:-1])
        ]

    def pair(self, number: int) -> _Pair:
        """Return a pair, with the first few ranges that both touch."""
        span = slice(*self._first[number : number + 2])
        ranges = self._emitted[span, 3:5][self._kept[span]]
        what, early, late = self._emitted[self._first[number], :3].tolist()
        return _Pair(what, early, late, tuple(map(tuple, ranges[:4].tolist())))


def _is_turned(run: Unrolled, found: IntArray) -> npt.NDArray[np.bool_]:
    """Mark pairs of tasks of which the second is probably meant to come first.

    The order in which the walk has met them is chance. Ranks run the same code, so the task that is
    recorded earlier on its rank is taken to be first. The order with a caller, and of RDMA issues,
    is known.
    """
    row, copy = _rows_and_copies(run, found[:, 1:3])
    are_tasks = (row < run.rows).all(axis=1) & (found[:, 0] != emissions.REUSE)
    tasks = run.program.tasks
    at = np.minimum(row, run.rows - 1)
    place = at - tasks.first[tasks.rank[at]] if run.rows else at
    later, same = np.zeros(len(found), bool), np.ones(len(found), bool)
    for key in (copy, place, row):
        later |= same & (key[:, 0] > key[:, 1])
        same &= key[:, 0] == key[:, 1]
    turned: npt.NDArray[np.bool_] = are_tasks & later
    return turned


def _rows_and_copies(run: Unrolled, nodes: IntArray) -> tuple[IntArray, IntArray]:
    """Return rows and copies of nodes; the rows of calls lie behind those of tasks."""
    tasks, rows = run.copies * run.rows, max(run.rows, 1)
    call = nodes - tasks
    row = np.where(call < 0, nodes % rows, rows + call % run.program.ranks)
    return row, np.where(call < 0, nodes // rows, call // run.program.ranks)


def _lines(run: Unrolled, rows: IntArray) -> IntArray:
    """Return the author's lines of rows, -2 for calls."""
    tasks = run.program.tasks
    is_task = rows < run.rows
    at = tasks.instruction[np.where(is_task, rows, 0)] if run.rows else rows
    return np.where(is_task, tasks.table.line[at], -2) if run.rows else np.full(len(rows), -2)


def _numbered(sorted_keys: IntArray) -> tuple[IntArray, IntArray]:
    """Return the number of every row's key, and the first row of every key; equal rows are
    neighbours.
    """
    is_new = np.ones(len(sorted_keys), bool)
    is_new[1:] = (sorted_keys[1:] != sorted_keys[:-1]).any(axis=1)
    return np.cumsum(is_new) - 1, np.flatnonzero(is_new)


class _Finder:
    """Makes the findings of pairs."""

    def __init__(self, subject: Subject, run: Unrolled, memory: MemoryIntervals) -> None:
        self.subject, self.run, self.memory = subject, run, memory
        self.transfer_of = np.full(max(run.rows, 1), -1, np.int64)
        self.transfer_of[memory.transfers.row] = np.arange(len(memory.transfers))
        self.owned = {name: memory.owned(name) for name in ("IN", "OUT")}

    def finding(self, pair: _Pair) -> Finding:
        """Return the finding of a pair."""
        calls = [self.run.call(node) for node in (pair.early, pair.late)]
        interval = pair.ranges[0][0]
        early, late = self._side(pair.early, interval, pair), self._side(pair.late, interval, pair)
        if pair.what == emissions.UNORDERED_SUM:
            return self._unordered_sum(pair, early)
        shared = self.memory.is_shared and None in calls and calls[0] == calls[1]
        if shared and early.buffer != late.buffer:
            return self._clobber(pair, early, late)
        if pair.what == emissions.REUSE:
            return self._reuse(pair, early, late)
        name = "RACE_WW" if early.writes and late.writes else "RACE_RW"
        for number, call in enumerate(calls):
            if call is not None:
                return self._against_caller(name, pair, number, early if number else late)
        return self._race(name, pair, early, late)

    def _race(self, name: str, pair: _Pair, early: _RacingAccess, late: _RacingAccess) -> Finding:
        memory = self._memory(pair, late)
        hint = (
            "Post a notify after the read and wait for it before the write (DataSignal)."
            if not early.writes
            else "Post a notify after the write and wait for it before the read (Ack)."
            if not late.writes
            else "Post a notify after one write and wait for it before the other."
        )
        what = "overlap" if early.writes and late.writes else "touch the same bytes"
        message = (
            f"{self._does(pair.early, early, memory[0])} and {self._does(pair.late, late)} in no "
            f"order: nothing makes one wait for the other, and they {what}."
        )
        return self._of(name, message, hint, pair, memory)

    def _reuse(self, pair: _Pair, early: _RacingAccess, late: _RacingAccess) -> Finding:
        memory = self._memory(pair, early)
        sends = self._place(pair.early)
        call = self.run.call(pair.late)
        who = "the op ends and the caller may overwrite" if call else self._place(pair.late)
        message = (
            f"{sends} sends {self.subject.words(memory[0])} by RDMA, and {who}"
            f"{'' if call else ' overwrites'} it before the transfer is known to be over: an RDMA "
            "task ends on its stream when it is issued."
        )
        hint = "Wait for the peer's DataAck (exchange() does) before the memory is used again."
        return self._of("RDMA_SOURCE_REUSE", message, hint, pair, memory)

    def _clobber(self, pair: _Pair, early: _RacingAccess, late: _RacingAccess) -> Finding:
        memory = self._memory(pair, late)
        message = (
            f"In place, {self._does(pair.early, early, memory[0])} and "
            f"{self._does(pair.late, late)} in no order: IN and OUT are the same memory."
        )
        hint = "Stage the input in CCL memory first, or order the two; or refuse calls in place."
        return self._of("INPLACE_CLOBBER", message, hint, pair, memory)

    def _against_caller(self, name: str, pair: _Pair, number: int, side: _RacingAccess) -> Finding:
        """Return the race of a task with the caller, before an op (number 0) or after it."""
        node = pair.late if number == 0 else pair.early
        memory = self._memory(pair, side)
        verb = "write" if side.writes else "read"
        call = self.run.call(pair.early if number == 0 else pair.late)
        assert call is not None
        if number == 0:
            message = (
                f"{self._place(node)} {verb}s {self.subject.words(memory[0])} without knowing that "
                f"rank {call[0]} has begun the op: its caller may still be using that memory."
            )
            hint = f"Wait for an Ack of rank {call[0]} before touching its user memory."
        else:
            message = (
                f"{self._place(node)} may still {verb} {self.subject.words(memory[0])} when the "
                f"op is over for rank {call[0]}: its caller may use that memory again."
            )
            hint = (
                f"Let rank {call[0]}'s main wait for a notify that is posted after the {verb} "
                "(DataSignal)."
            )
        return self._of(name, message, hint, pair, memory)

    def _unordered_sum(self, pair: _Pair, side: _RacingAccess) -> Finding:
        memory = self._memory(pair, side)
        message = (
            f"{self._place(pair.early)} and {self._place(pair.late)} add to "
            f"{self.subject.words(memory[0])} in no order: each sum is right, but its last bits "
            "differ from run to run."
        )
        hint = "Order the reductions where results must not vary (HCCL_DETERMINISTIC)."
        finding = self._of("REDUCE_ORDER_NONDET", message, hint, pair, memory)
        strict = self.subject.options.deterministic or self.subject.program.op.deterministic
        return replace(finding, severity=Severity.ERROR) if strict else finding

    def _of(
        self, name: str, message: str, hint: str, pair: _Pair, memory: list[MemoryRange]
    ) -> Finding:
        rows = [
            self.run.task(node) for node in (pair.late, pair.early) if self.run.call(node) is None
        ]
        return self.subject.finding(name, message, hint, rows=rows, memory=memory)

    def _side(self, node: int, interval: int, pair: _Pair) -> _RacingAccess:
        call = self.run.call(node)
        if call is not None:
            return self._caller_side(call[0], interval)
        row = self.run.task(node)[0]
        transfer = self.transfer_of[row]
        intervals = self.memory.intervals
        tasks, table = self.subject.tasks, self.subject.tasks.table
        at, kind = tasks.instruction[row], self.subject.kind(row)
        rank, peer = int(tasks.rank[row]), int(tasks.peer[row])
        writes = bool(intervals.dst[transfer] <= interval < intervals.dst_stop[transfer])
        if writes and not (pair.what == emissions.REUSE and node == pair.early):
            owner = peer if kind.writes_remote else rank
            return _RacingAccess(owner, int(table.dst_buffer[at]), True)
        owner = peer if kind.reads_remote else rank
        return _RacingAccess(owner, int(table.src_buffer[at]), False)

    def _caller_side(self, rank: int, interval: int) -> _RacingAccess:
        first, stop = self.owned["IN"]
        name = "IN" if first[rank] <= interval < stop[rank] else "OUT"
        return _RacingAccess(rank, self.subject.program.buffers.index(name), True)

    def _memory(self, pair: _Pair, side: _RacingAccess) -> list[MemoryRange]:
        """Return the ranges in one side's buffer; a pair may share bytes of two buffers."""
        start, spaces = self.memory.intervals.start, self.memory.spaces
        low = int(spaces.base[side.rank, side.buffer])
        high = low + int(spaces.size[side.rank, side.buffer])
        ends = [(int(start[first]), int(start[last])) for first, last in pair.ranges]
        return [
            self.memory.range_of(side.rank, side.buffer, first, last)
            for first, last in ends
            if low <= first < high
        ]

    def _place(self, node: int) -> str:
        return self.subject.place(*self.run.task(node))

    def _does(self, node: int, side: _RacingAccess, memory: MemoryRange | None = None) -> str:
        """Return `rank 0 main task 1 writes rank 0's CCL_In[0:64]`, or `... reads it`."""
        row, _ = self.run.task(node)
        reduces = side.writes and self.subject.kind(row) not in _COPIES
        verb = "reduces into" if reduces else "writes" if side.writes else "reads"
        what = self.subject.words(memory) if memory else "it"
        return f"{self._place(node)} {verb} {what}"


_COPIES = (TaskKind.COPY, TaskKind.READ, TaskKind.WRITE, TaskKind.RDMA_WRITE)
