"""Sub streams that work before their main has started them, or after it has ended."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hccl_py.program.describe import spell_stream
from hccl_py.verifier.analysis import clocks
from hccl_py.verifier.analysis.ordering import Ordering
from hccl_py.verifier.analysis.unrolled import Unrolled
from hccl_py.verifier.finding import Finding
from hccl_py.verifier.subject import Subject, limited

__all__ = ["find_loose_streams"]


def find_loose_streams(subject: Subject, run: Unrolled, ordering: Ordering) -> Iterator[Finding]:
    """Yield STREAM_NOT_STARTED and STREAM_NOT_JOINED, once for each stream."""
    emitted = ordering.emitted.astype(np.int64)
    early = emitted[emitted[:, 0] == clocks.NOT_STARTED][:, 1]
    rows = np.unique(early[early < run.rows])  # a stream that is loose is so in every copy
    yield from limited((subject.source(row), _not_started(subject, row)) for row in rows.tolist())
    late = emitted[emitted[:, 0] == clocks.NOT_JOINED][:, 1:3]
    queues = np.unique(late[:, 1]) if len(late) else late[:, 1]
    ends = [_last_row(run, queue) for queue in queues.tolist()]
    yield from limited((subject.source(row), _not_joined(subject, row)) for row in ends)


def _last_row(run: Unrolled, queue: int) -> int:
    return int(run.nodes[run.first[queue + 1] - 1]) % run.rows


def _not_started(subject: Subject, row: int) -> Finding:
    rank, stream = int(subject.tasks.rank[row]), subject.stream(row)
    return subject.finding(
        "STREAM_NOT_STARTED",
        f"{subject.place(row)} runs without knowing that main has begun: it may run while the "
        "caller's earlier work on main is still going on.",
        f"Let main post a notify that {spell_stream(stream)} waits for first (rank.fork() does).",
        rows=[(row, 0)],
        ranks=[rank],
    )


def _not_joined(subject: Subject, row: int) -> Finding:
    rank, stream = int(subject.tasks.rank[row]), subject.stream(row)
    return subject.finding(
        "STREAM_NOT_JOINED",
        f"{subject.place(row)} may still run when main's last task is done: for the caller the op "
        "is over by then.",
        f"Let {spell_stream(stream)} post a notify at its end that main waits for (rank.fork() "
        "does).",
        rows=[(row, 0)],
        ranks=[rank],
    )
