"""Several copies of a program back to back, with the caller in between: the nodes of the order.

    rank r main   │ call 0 │ tasks of copy 0 │ call 1 │ tasks of copy 1 │ call 2 │
    rank r sub k  │ tasks of copy 0 │ tasks of copy 1 │

Node copy·n + row is a task of a copy; the nodes behind those are the calls. A call stands for what
the caller may do between two ops on the stream: write the input, read and write the output. Nothing
else separates the copies: ranks may be in different ones at the same time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hccl_py.program.kernels import reading
from hccl_py.program.matching import match_tasks, queues_of
from hccl_py.program.program import Program

Nodes = npt.NDArray[np.int32]

CALL = 100
"""The kind of a call node, beside those of TaskKind."""


@dataclass(frozen=True, eq=False)
class Unrolled:
    """Nodes with their queues, and the result of the untimed walk over all copies.

    Queue q = rank·streams + stream has nodes[first[q] : first[q + 1]]; `place` is a node's position
    in its queue. The other members are those of `Linked`, with nodes for rows; the walk is patient:
    it loses a post only where nothing else can move. Where notifies count, no post is lost, and
    posts that a copy leaves over are there for the next.
    """

    program: Program
    copies: int
    kind: npt.NDArray[np.int8]
    first: npt.NDArray[np.int64]
    nodes: Nodes
    queue: Nodes
    place: Nodes
    order: Nodes
    post_of: Nodes
    overruns: Nodes
    leftover: Nodes
    stuck: Nodes

    @property
    def rows(self) -> int:
        """Tasks of one copy."""
        return len(self.program.tasks)

    def task(self, node: int) -> tuple[int, int]:
        """Return (row, copy) of a node that is no call."""
        copy, row = divmod(node, self.rows)
        return row, copy

    def call(self, node: int) -> tuple[int, int] | None:
        """Return (rank, number) of a call, None for tasks."""
        number, rank = divmod(node - self.copies * self.rows, self.program.ranks)
        return (rank, number) if number >= 0 else None


def unrolled(program: Program, copies: int) -> Unrolled:
    """Lay out and walk `copies` of a program."""
    tasks, ranks, streams = program.tasks, program.ranks, program.streams
    rows, calls = len(tasks), (copies + 1) * ranks
    total = copies * rows + calls
    queues = queues_of(program)
    lengths = np.diff(queues.first)
    is_main = np.arange(len(lengths)) % streams == 0
    first = np.concatenate([[0], np.cumsum(lengths * copies + is_main * (copies + 1))])
    nodes = np.empty(total, np.int32)
    queue_of_entry = np.repeat(np.arange(len(lengths)), lengths)
    inside = np.arange(rows) - np.repeat(queues.first[:-1], lengths)
    for copy in range(copies):
        offset = first[:-1] + lengths * copy + is_main * (copy + 1)
        nodes[offset[queue_of_entry] + inside] = queues.rows + copy * rows
    for call in range(copies + 1):
        mains = np.flatnonzero(is_main)
        at = first[mains] + call * (lengths[mains] + 1)
        nodes[at] = copies * rows + call * ranks + np.arange(ranks)
    queue, place = np.empty(total, np.int32), np.empty(total, np.int32)
    spans = np.diff(first)
    queue[nodes] = np.repeat(np.arange(len(spans)), spans)
    place[nodes] = np.arange(total) - np.repeat(first[:-1], spans)
    counts = program.counts_posts
    kind = np.concatenate([np.tile(tasks.kind, copies), np.full(calls, CALL, np.int8)])
    cell = np.concatenate([np.tile(tasks.cell, copies), np.full(calls, -1, np.int64)])
    order, done, post_of, late, early, overruns, counter, holder = match_tasks.sized(total)(
        reading(first),
        reading(nodes),
        reading(np.arange(total, dtype=np.int32)),
        reading(kind),
        reading(cell),
        program.cells,
        not counts,
        counts,
    )
    return Unrolled(
        program,
        copies,
        kind,
        first,
        nodes,
        queue,
        place,
        _copy_by_copy(order[:done], post_of, copies, rows, ranks),
        post_of,
        np.column_stack([late[: 0 if counts else overruns], early[: 0 if counts else overruns]]),
        np.sort(holder[holder >= 0]),
        nodes[counter[counter < first[1:]]],
    )


def _copy_by_copy(order: Nodes, post_of: Nodes, copies: int, rows: int, ranks: int) -> Nodes:
    """Return the same walk with each copy before the next one, so that a defect within one copy is
    seen there first; unchanged where a copy waits for another one's posts.
    """
    calls = order - copies * rows
    number = np.where(calls < 0, order // max(rows, 1), calls // ranks)
    waits = np.flatnonzero(post_of >= 0)
    if (waits // max(rows, 1) != post_of[waits] // max(rows, 1)).any():
        return order
    return order[np.argsort(number, kind="stable")]
