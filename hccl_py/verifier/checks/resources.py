"""Streams, notifies and transports that are used without a request, and requests that disagree.

Only files can have such defects: a recording refuses them, or cannot express them. Requests that a
file leaves out count as made.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from hccl_py.enums import LinkKind
from hccl_py.program.describe import format_stream
from hccl_py.program.transports import Transports
from hccl_py.values import IntArray
from hccl_py.verifier.analysis.moves import Mask
from hccl_py.verifier.checks.culprits import findings_at, first_of_each
from hccl_py.verifier.finding import Finding
from hccl_py.verifier.subject import Subject, shortened

STREAMS, TRANSPORTS = 0, 2
"""The columns of Declared.stated."""


@dataclass(frozen=True, eq=False)
class LocalUse:
    """Tasks that post or wait for a local notify: row, rank, and stream and index of the notify.

    `requested` are the notifies of every stream that exists or owns one, [ranks, streams].
    """

    row: IntArray
    rank: IntArray
    stream: IntArray
    index: IntArray
    requested: IntArray


def find_resources(subject: Subject) -> Iterator[Finding]:
    """Yield UNDECLARED_STREAM, NOTIFY_INDEX_OUT_OF_RANGE, UNDECLARED_CHANNEL and
    RESOURCE_MISMATCH.
    """
    yield from _undeclared_streams(subject)
    yield from _local_notifies(subject)
    yield from _undeclared_channels(subject)
    yield from _transport_notifies(subject)
    yield from _mismatches(subject)


def local_use(subject: Subject) -> LocalUse:
    """Return the tasks that use local notifies."""
    program, tasks = subject.program, subject.tasks
    row = np.flatnonzero(tasks.cell >= program.transports.cells)
    slots = np.array(program.local_notifies.slots, np.int64).reshape(-1, 2)
    stated = program.declared.local_notifies
    width = max(program.streams, stated.shape[1], int(slots[:, 0].max(initial=0)) + 1)
    requested = np.zeros((program.ranks, width), np.int64)
    requested[:, : stated.shape[1]] = stated
    rank, slot = np.divmod(tasks.cell[row] - program.transports.cells, max(len(slots), 1))
    return LocalUse(row, rank, slots[slot, 0], slots[slot, 1], requested)


def _undeclared_streams(subject: Subject) -> Iterator[Finding]:
    """Judge each stream by its first task."""
    tasks, declared = subject.tasks, subject.program.declared
    if int(tasks.table.stream.max(initial=0)) <= int(declared.sub_streams.min()):
        return
    rows = np.flatnonzero(tasks.stream > declared.sub_streams[tasks.rank])
    queue = tasks.rank[rows].astype(np.int64) * subject.program.streams + tasks.stream[rows]

    def make(row: int) -> Finding:
        rank, stream = int(tasks.rank[row]), subject.stream(row)
        count = int(subject.queue_lengths[rank, stream])
        all_of = f"{count} tasks run" if count > 1 else "a task runs"
        return _undeclared_stream(
            subject,
            row,
            stream,
            f"{all_of} on rank {rank} {format_stream(stream, subject.program.stream_names)}",
        )

    yield from findings_at(subject, first_of_each(rows, queue), make)


def _undeclared_stream(subject: Subject, row: int, stream: int, what: str) -> Finding:
    rank = int(subject.tasks.rank[row])
    subs = int(subject.program.declared.sub_streams[rank])
    return subject.finding(
        "UNDECLARED_STREAM",
        f"{what}, but rank {rank} requested {_number(subs, 'sub stream')}: {_subs(subs)}.",
        f"Request {stream}: ResourceRequest(sub_streams={stream}); in a program file, "
        f'"streams": {stream + 1}, as main counts there.',
        rows=[(row, 0)],
    )


def _local_notifies(subject: Subject) -> Iterator[Finding]:
    """Judge posts and waits inside a rank. A stream that does not exist has no notifies: it is
    reported here where it has no task, else by `_undeclared_streams`.
    """
    declared, use = subject.program.declared, local_use(subject)
    counts, lengths = use.requested, subject.queue_lengths
    nowhere = declared.stated[use.rank, STREAMS] & (use.stream > declared.sub_streams[use.rank])
    beyond = (use.index >= counts[use.rank, use.stream]) & ~nowhere
    busy: Mask = np.zeros(counts.shape, bool)
    busy[:, : lengths.shape[1]] = lengths > 0
    idle = nowhere & ~busy[use.rank, use.stream]
    first = first_of_each(use.row[idle], use.rank[idle] * busy.shape[1] + use.stream[idle])

    def make_stream(row: int) -> Finding:
        stream, _ = _local_notify(subject, row)
        what = f"{subject.place(row)} {subject.action(row)}"
        return _undeclared_stream(subject, row, stream, what)

    def make_notify(row: int) -> Finding:
        rank, (stream, index) = int(subject.tasks.rank[row]), _local_notify(subject, row)
        have = _number(int(counts[rank, stream]), "notify")
        return subject.finding(
            "NOTIFY_INDEX_OUT_OF_RANGE",
            f"{subject.place(row)} {subject.action(row)}, "
            f"but rank {rank} requested {have} for that stream.",
            f"Request {index + 1} (ResourceRequest(notifies=...), local_notifies in a program "
            "file), or use one that exists: they count from 0.",
            rows=[(row, 0)],
        )

    yield from findings_at(subject, first, make_stream)
    yield from findings_at(subject, use.row[beyond], make_notify)


def _local_notify(subject: Subject, row: int) -> tuple[int, int]:
    program = subject.program
    slot = int(subject.tasks.cell[row]) - program.transports.cells
    return program.local_notifies.slots[slot % len(program.local_notifies.slots)]


def _undeclared_channels(subject: Subject) -> Iterator[Finding]:
    """Judge each transport end by the first task of its rank that uses it."""
    tasks, transports = subject.tasks, subject.program.transports
    if transports.notifies.all():
        return
    rows = np.flatnonzero(tasks.end >= 0)
    rows = rows[transports.notifies[tasks.end[rows]] == 0]

    def make(row: int) -> Finding:
        end = int(tasks.end[row])
        peer = int(transports.peer[end])
        return subject.finding(
            "UNDECLARED_CHANNEL",
            f"{subject.place(row)} {subject.action(row)}, "
            f"but rank {int(transports.rank[end])} never requested the transport to rank {peer} "
            f"on plane {_plane(transports, end)}.",
            "Request it at both ends: a PlaneRequest whose pattern reaches the peer, "
            "links or channel_notifies in a program file.",
            rows=[(row, 0)],
            ranks=[int(transports.rank[end]), peer],
        )

    yield from findings_at(subject, first_of_each(rows, tasks.end[rows]), make)


def _transport_notifies(subject: Subject) -> Iterator[Finding]:
    """Judge posts and waits between ranks by the smaller request of the two ends; ends without a
    request are judged by `_undeclared_channels`.
    """
    tasks, transports = subject.tasks, subject.program.transports
    if (transports.notifies == transports.stride).all():
        return
    rows = np.flatnonzero((tasks.cell >= 0) & (tasks.cell < transports.cells))
    owner, index = np.divmod(tasks.cell[rows], transports.stride)
    limit = np.minimum(transports.notifies[owner], transports.notifies[tasks.end[rows]])
    beyond = (limit > 0) & (index >= limit)

    def make(row: int) -> Finding:
        end, (owner, index) = int(tasks.end[row]), divmod(int(tasks.cell[row]), transports.stride)
        have = {int(transports.notifies[e]) for e in (owner, end)}
        ranks = sorted({int(transports.rank[end]), int(transports.peer[end])})
        were = "was" if min(have) == 1 else "were"
        requested = f"{_number(min(have), 'notify')} {were} requested there"
        return subject.finding(
            "NOTIFY_INDEX_OUT_OF_RANGE",
            f"{subject.place(row)} {subject.action(row)}: that is notify {index} of the transport "
            f"between ranks {ranks[0]} and {ranks[1]}, but {requested}.",
            f"Request {index + 1} at both ends (PlaneRequest(extra_notifies=...), notifies or "
            "channel_notifies in a program file), or use one that exists: they count from 0.",
            rows=[(row, 0)],
            ranks=ranks,
        )

    yield from findings_at(subject, rows[beyond], make)


def _mismatches(subject: Subject) -> Iterator[Finding]:
    """Compare the requests of the two ends of each transport.

    An end that its own rank uses without a request is judged by its tasks instead.
    """
    tasks, transports = subject.tasks, subject.program.transports
    here, there = transports.notifies, transports.notifies[transports.far]
    kinds = transports.kind != transports.kind[transports.far]
    if not (kinds | (here != there)).any():
        return
    stated = subject.program.declared.stated[transports.rank, TRANSPORTS]
    used = np.zeros(len(transports), bool)
    used[tasks.end[tasks.end >= 0]] = True
    missing = (here == 0) & (there > 0) & ~used
    differ = (here != there) & (here > 0) & (there > 0) & stated & stated[transports.far]
    first = np.arange(len(transports)) < transports.far
    ends = np.flatnonzero(missing | (first & (differ | kinds)))
    yield from shortened(ends.tolist(), partial(_mismatch, subject))


def _mismatch(subject: Subject, end: int) -> Finding:
    transports, far = subject.program.transports, int(subject.program.transports.far[end])
    rank, peer = int(transports.rank[end]), int(transports.peer[end])
    here, there = int(transports.notifies[end]), int(transports.notifies[far])
    what = f"the transport on plane {_plane(transports, end)}"
    kinds = [LinkKind(int(transports.kind[e])).name for e in (end, far)]
    if kinds[0] != kinds[1]:
        found = f"rank {rank} has {what} to rank {peer} as {kinds[0]}, rank {peer} as {kinds[1]}."
    elif not here:
        found = f"rank {peer} counts on {what} to rank {rank}, which never requested it."
    else:
        found = (
            f"rank {rank} requested {what} to rank {peer} with {_number(here, 'notify')}, "
            f"rank {peer} with {there}."
        )
    return subject.finding(
        "RESOURCE_MISMATCH",
        found,
        "Both ends of a transport must be requested alike.",
        rows=[(row, 0) for e in (far, end) for row in _first_row(subject, e)],
        ranks=[rank, peer],
    )


def _first_row(subject: Subject, end: int) -> list[int]:
    rows: list[int] = np.flatnonzero(subject.tasks.end == end)[:1].tolist()
    return rows


def _plane(transports: Transports, end: int) -> str:
    return transports.planes[int(transports.plane[end])]


def _number(count: int, what: str) -> str:
    plural = what.removesuffix("y") + "ies" if what.endswith("y") else what + "s"
    return f"{count} {what if count == 1 else plural}"


def _subs(subs: int) -> str:
    if subs <= 1:
        return "sub 0" if subs else "main is all it has"
    return f"sub 0 to sub {subs - 1}"
