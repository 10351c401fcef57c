"""Posts that no wait consumes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hccl_py.enums import TaskKind
from hccl_py.program.describe import format_notify
from hccl_py.verifier.checks.culprits import findings_at
from hccl_py.verifier.finding import Finding
from hccl_py.verifier.subject import Subject


def find_leftovers(subject: Subject) -> Iterator[Finding]:
    """Yield UNMATCHED_POST, once for every notify that has more posts than waits."""
    cell, surplus = subject.tasks.cell, subject.posts_per_cell > subject.waits_per_cell
    is_post = np.equal(subject.tasks.kind, TaskKind.NOTIFY_POST)
    rows = np.flatnonzero(is_post)
    rows = rows[surplus[cell[rows]]][::-1]
    last = rows[np.unique(cell[rows], return_index=True)[1]]

    left = (
        "a post that is left over lets a wait of the next op pass too early."
        if subject.program.counts_posts
        else "the notify stays set, and the next op takes it for its own."
    )

    def make(row: int) -> Finding:
        posts, waits = subject.posts_per_cell, subject.waits_per_cell
        mine = int(cell[row])
        fate = (
            f"it is posted {posts[mine]} times and waited for {waits[mine]} times"
            if waits[mine]
            else "no task waits for it"
        )
        return subject.finding(
            "UNMATCHED_POST",
            f"{subject.place(row)} posts {format_notify(subject.program, row)}, but {fate}: {left}",
            "Add the wait at the other end, or remove the post."
            + subject.beside(row, TaskKind.NOTIFY_WAIT, waits - posts),
            rows=[(row, 0)],
        )

    yield from findings_at(subject, np.sort(last), make)
