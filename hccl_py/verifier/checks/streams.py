"""Sub streams that work before their main has started them, or after it has ended."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from hccl_py.program.describe import format_stream
from hccl_py.values import IntArray
from hccl_py.verifier.analysis.clocks import emissions
from hccl_py.verifier.analysis.ordering import Ordering
from hccl_py.verifier.analysis.unrolled import Unrolled
from hccl_py.verifier.finding import Finding
from hccl_py.verifier.subject import Subject, limited


@dataclass(frozen=True, eq=False)
class LooseStreams:
    """Sub streams that do not start after main, by their first such row, and sub streams that main
    does not join, by their last row.
    """

    unstarted: IntArray
    unjoined: IntArray

    def queues(self, subject: Subject) -> IntArray:
        """Return the streams: rank · streams of a rank + stream."""
        tasks, rows = subject.tasks, np.concatenate([self.unstarted, self.unjoined])
        return np.unique(
            tasks.rank[rows].astype(np.int64) * subject.program.streams + tasks.stream[rows]
        )


def loose_streams(run: Unrolled, ordering: Ordering) -> LooseStreams:
    """Return the sub streams that are not between the beginning and the end of main."""
    emitted = ordering.emitted.astype(np.int64)
    early = emitted[emitted[:, 0] == emissions.NOT_STARTED][:, 1]
    late = emitted[emitted[:, 0] == emissions.NOT_JOINED][:, 2]
    last = run.nodes[run.first[np.unique(late) + 1] - 1].astype(np.int64)
    # A stream that is loose is so in every copy.
    return LooseStreams(np.unique(early[early < run.rows]), last % max(run.rows, 1))


def find_loose_streams(subject: Subject, loose: LooseStreams) -> Iterator[Finding]:
    """Yield STREAM_NOT_STARTED and STREAM_NOT_JOINED, once for each stream."""
    for rows, make in ((loose.unstarted, _not_started), (loose.unjoined, _not_joined)):
        yield from limited(rows.tolist(), subject.source, partial(make, subject))


def _not_started(subject: Subject, row: int) -> Finding:
    stream = format_stream(subject.stream(row), subject.program.stream_names)
    return subject.finding(
        "STREAM_NOT_STARTED",
        f"{subject.place(row)} runs without knowing that main has begun: it may run while the "
        "caller's earlier work on main is still going on.",
        f"Let main post a notify that {stream} waits for first (rank.fork() does).",
        rows=[(row, 0)],
    )


def _not_joined(subject: Subject, row: int) -> Finding:
    stream = format_stream(subject.stream(row), subject.program.stream_names)
    return subject.finding(
        "STREAM_NOT_JOINED",
        f"{subject.place(row)} may still run when main's last task is done: for the caller the op "
        "is over by then.",
        f"Let {stream} post a notify at its end that main waits for (rank.fork() does).",
        rows=[(row, 0)],
    )
