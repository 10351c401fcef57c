"""Notifies used again too early, connections without order, and waits that are not needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from hccl_py.program.describe import format_notify
from hccl_py.values import IntArray
from hccl_py.verifier.analysis.clocks import emissions
from hccl_py.verifier.analysis.ordering import Ordering
from hccl_py.verifier.analysis.unrolled import Unrolled
from hccl_py.verifier.checks.culprits import findings_at
from hccl_py.verifier.finding import Finding
from hccl_py.verifier.subject import Subject

Words: TypeAlias = Callable[[Subject, int, str, str], tuple[str, str, str]]
"""Given the later task's row and the places of the later and the earlier task, returns class,
message and hint.
"""


def find_overruns(
    subject: Subject, run: Unrolled, ordering: Ordering, loose: IntArray
) -> Iterator[Finding]:
    """Yield NOTIFY_OVERRUN, for certain or in another timing than that of the walk, and
    WAITS_UNORDERED where notifies count. Local notifies that `loose` streams use again in the next
    op have findings already.
    """
    lost = run.overruns.astype(np.int64)[:, ::-1]
    late = _emitted(ordering, emissions.OVERRUN)
    late = late[~np.isin(late[:, 1], lost[:, 1])]
    for pairs, words in (
        (lost, _lost),
        (late, _may_be_lost),
        (_emitted(ordering, emissions.TWO_WAITS), _two_waits),
    ):
        pairs = _first_of_each(run, pairs)
        yield from _each(subject, run, pairs[~_are_loose(run, pairs, loose)], words)


def find_unordered_connections(
    subject: Subject, run: Unrolled, ordering: Ordering
) -> Iterator[Finding]:
    """Yield CONNECTION_UNORDERED."""
    pairs = _first_of_each(run, _emitted(ordering, emissions.CONNECTION))
    yield from _each(subject, run, pairs, _unordered)


def find_implied(
    subject: Subject, run: Unrolled, implied: npt.NDArray[np.bool_]
) -> Iterator[Finding]:
    """Yield REDUNDANT_SYNC: waits whose post is known to be over without them."""

    def make(row: int) -> Finding:
        post = int(run.post_of[row])
        return subject.finding(
            "REDUNDANT_SYNC",
            f"{subject.place(row)} waits for {format_notify(subject.program, row)}, but everything "
            f"before the post ({subject.place(*run.task(post))}) is already known to be over.",
            "The post and the wait can go, unless they are there for the reader.",
            rows=[(row, 0), run.task(post)],
        )

    yield from findings_at(subject, np.flatnonzero(implied), make, shown=2)


def _emitted(ordering: Ordering, what: int) -> IntArray:
    """Return the pairs (earlier node, later node) of one kind of emission."""
    emitted = ordering.emitted.astype(np.int64)
    pairs: IntArray = emitted[emitted[:, 0] == what][:, 1:3]
    return pairs


def _first_of_each(run: Unrolled, pairs: IntArray) -> IntArray:
    """Return one pair for each later task, in the first copy that shows it, by tasks."""
    pairs = pairs[np.argsort(pairs[:, 1], kind="stable")]
    return pairs[np.unique(pairs[:, 1] % max(run.rows, 1), return_index=True)[1]]


def _are_loose(run: Unrolled, pairs: IntArray, loose: IntArray) -> npt.NDArray[np.bool_]:
    """Mark pairs of one rank that span copies and touch a loose stream."""
    queue = run.queue[pairs]
    same_rank = queue[:, 0] // run.program.streams == queue[:, 1] // run.program.streams
    found: npt.NDArray[np.bool_] = same_rank & (pairs >= run.rows).any(axis=1)
    return found & np.isin(queue, loose).any(axis=1)


def _each(subject: Subject, run: Unrolled, pairs: IntArray, words: Words) -> Iterator[Finding]:
    """Yield findings about pairs of nodes, each with a later task of its own."""
    rows = pairs[:, 1] % max(run.rows, 1)
    chosen = dict(zip(rows.tolist(), pairs.tolist(), strict=True))

    def make(row: int) -> Finding:
        early, late = map(run.task, chosen[row])
        name, message, hint = words(subject, row, subject.place(*late), subject.place(*early))
        return subject.finding(name, message, hint, rows=[late, early])

    yield from findings_at(subject, rows, make)


def _lost(subject: Subject, row: int, late: str, early: str) -> tuple[str, str, str]:
    return (
        "NOTIFY_OVERRUN",
        f"{late} posts {format_notify(subject.program, row)} while the post of {early} is still "
        "not consumed: a notify is one bit, so one of them is lost.",
        "Wait for the notify before it is posted again, or use another one.",
    )


def _may_be_lost(subject: Subject, row: int, late: str, early: str) -> tuple[str, str, str]:
    return (
        "NOTIFY_OVERRUN",
        f"{late} posts {format_notify(subject.program, row)} again without knowing that {early} "
        "has consumed the previous post: where that is late, one of the two is lost.",
        "Let the waiting side answer, and wait for the answer before the next post.",
    )


def _two_waits(subject: Subject, row: int, late: str, early: str) -> tuple[str, str, str]:
    return (
        "WAITS_UNORDERED" if subject.program.counts_posts else "NOTIFY_OVERRUN",
        f"{late} and {early} wait for the same notify ({format_notify(subject.program, row)}) in "
        "no order: either may take the other's post.",
        "Let one stream do all waits of a notify, or use one notify for each.",
    )


def _unordered(subject: Subject, row: int, late: str, early: str) -> tuple[str, str, str]:
    return (
        "CONNECTION_UNORDERED",
        f"{late} and {early} issue on the RDMA connection to rank {int(subject.tasks.peer[row])} "
        "in no order: what arrives first is open, so no later post proves that both have arrived.",
        "Use one stream for each connection, or order the two with a local notify.",
    )
