"""Requests that no task uses: streams, notifies, transports and scratch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from hccl_py.enums import Buffer
from hccl_py.program.describe import format_ranks, format_stream
from hccl_py.program.transports import NOTIFY_NAMES, OWN_NOTIFIES
from hccl_py.values import IntArray
from hccl_py.verifier.analysis.moves import moves_of
from hccl_py.verifier.checks.resources import local_use
from hccl_py.verifier.finding import Finding
from hccl_py.verifier.subject import Subject, shortened


class Spare(NamedTuple):
    """One kind of resource (singular and plural), the number requested and the number used, by
    rank.

    `example` names an unused one, by rank, where that helps.
    """

    what: tuple[str, str]
    requested: IntArray
    used: IntArray
    example: dict[int, str]
    hint: str


def find_unused(subject: Subject) -> Iterator[Finding]:
    """Yield RESOURCE_UNUSED, one for each kind of resource and set of ranks that are alike."""
    for spare in (
        _streams(subject),
        _notifies(subject),
        *_transports(subject),
        _scratch(subject),
    ):
        yield from _hints(subject, spare)


def _hints(subject: Subject, spare: Spare) -> Iterator[Finding]:
    ranks = np.flatnonzero(spare.used < spare.requested)
    if not len(ranks):
        return
    pairs = np.stack([spare.requested[ranks], spare.used[ranks]])
    groups, at = np.unique(pairs, axis=1, return_inverse=True)

    def make(group: int) -> Finding:
        requested, used = groups[:, group].tolist()
        return _hint(subject, spare, ranks[at.reshape(-1) == group].tolist(), requested, used)

    yield from shortened(range(groups.shape[1]), make)


def _hint(subject: Subject, spare: Spare, ranks: list[int], requested: int, used: int) -> Finding:
    what = f"{requested} {spare.what[requested > 1]}"
    some = str(used) if used else "none"
    example = spare.example.get(ranks[0], "")
    if len(ranks) == 1:
        found = f"{format_ranks(ranks)} requests {what} and uses {some}"
    else:
        found = f"{format_ranks(ranks)} request {what} each and use {some}"
        example = example and f"at rank {ranks[0]}, {example}"
    return subject.finding(
        "RESOURCE_UNUSED",
        f"{found}{': ' + example if example else ''}.",
        spare.hint,
        ranks=ranks,
    )


def _remedy(subject: Subject, on_planes: str) -> str:
    """Return a hint; executors on threads and channels have no requests of planes."""
    if subject.program.transports.notify_names == NOTIFY_NAMES:
        return on_planes
    return "Ask for as many as the tasks use."


def _streams(subject: Subject) -> Spare:
    """Sub streams without a task; one whose tasks move 0 bytes is used."""
    requested = subject.program.declared.sub_streams
    number = np.arange(1, subject.program.streams)
    stated = subject.program.declared.stated[:, :1]  # what is left out is requested as used
    is_idle = stated & (number <= requested[:, None]) & (subject.queue_lengths[:, 1:] == 0)
    idle = is_idle.sum(axis=1)
    first = is_idle.argmax(axis=1) if is_idle.shape[1] else np.zeros(len(idle), np.int64)
    return Spare(
        ("sub stream", "sub streams"),
        requested,
        requested - idle,
        {
            r: f"{format_stream(int(first[r]) + 1, subject.program.stream_names)} has no task"
            for r in np.flatnonzero(idle).tolist()
        },
        _remedy(subject, "Request as many as the tasks need: ResourceRequest(sub_streams=...)."),
    )


def _notifies(subject: Subject) -> Spare:
    """Local notifies that no task posts or waits for."""
    use = local_use(subject)
    is_known = use.index < use.requested[use.rank, use.stream]
    keys = np.stack([use.rank, use.stream, use.index])[:, is_known]
    used = np.bincount(np.unique(keys, axis=1)[0], minlength=subject.program.ranks)
    requested = use.requested.sum(axis=1)
    return Spare(
        ("notify between streams", "notifies between streams"),
        requested,
        np.where(subject.program.declared.stated[:, 1], used, requested),
        {},
        _remedy(
            subject,
            "Leave ResourceRequest.notifies out: the default is two per sub stream that is "
            "requested.",
        ),
    )


def _transports(subject: Subject) -> tuple[Spare, Spare]:
    """Transports that neither end uses, and extra notifies of those that are used."""
    tasks, transports, ranks = subject.tasks, subject.program.transports, subject.program.ranks
    used = np.zeros(len(transports), bool)
    used[tasks.end[tasks.end >= 0]] = True
    used |= used[transports.far]
    requested = transports.notifies > 0
    idle = np.flatnonzero(requested & ~used)
    first = {
        int(transports.rank[e]): f"nothing goes to or from rank {int(transports.peer[e])}"
        for e in idle[np.unique(transports.rank[idle], return_index=True)[1]].tolist()
    }
    cells = np.unique(tasks.cell[(tasks.cell >= 0) & (tasks.cell < transports.cells)])
    owner, index = np.divmod(cells, transports.stride)
    extra_used = owner[(index >= OWN_NOTIFIES) & (index < transports.notifies[owner])]
    extra = np.where(used, np.maximum(transports.notifies - OWN_NOTIFIES, 0), 0)
    by_rank = np.bincount(transports.rank, extra, ranks).astype(np.int64)
    extra_by_rank = np.bincount(transports.rank[extra_used], minlength=ranks)
    return (
        Spare(
            ("transport", "transports"),
            np.bincount(transports.rank[requested], minlength=ranks),
            np.bincount(transports.rank[requested & used], minlength=ranks),
            first,
            _remedy(
                subject,
                "Request only the peers that the algorithm talks to: PlaneRequest's pattern.",
            ),
        ),
        Spare(
            ("extra notify of a transport", "extra notifies of transports"),
            by_rank,
            np.where(subject.program.declared.stated[:, 2], extra_by_rank, by_rank),
            {},
            _remedy(
                subject,
                "Request as many as the tasks use: PlaneRequest(extra_notifies=..., barrier=...).",
            ),
        ),
    )


def _scratch(subject: Subject) -> Spare:
    """Scratch counts as used where any of it is: sizes are rounded up."""
    program, requested = subject.program, subject.program.declared.scratch_bytes
    touched = np.zeros(program.ranks, bool)
    name = Buffer.SCRATCH.spelling
    number = program.buffers.index(name) if name in program.buffers else -1

    for moves in moves_of(subject) if requested.any() else ():
        for side in (moves.src, moves.dst):
            touched[side.owner[side.buffer == number]] = True
    return Spare(
        ("byte of scratch", "bytes of scratch"),
        requested,
        np.where(touched, requested, 0),
        {},
        "Leave ResourceRequest.scratch_bytes out where nothing lies there.",
    )
