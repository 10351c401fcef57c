"""Streams that wait forever."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cached_property

import numpy as np

from hccl_py.enums import TaskKind
from hccl_py.program.describe import format_notify
from hccl_py.verifier.analysis.unrolled import Unrolled
from hccl_py.verifier.finding import Finding
from hccl_py.verifier.subject import Subject, limited

SHOWN_IN_CYCLE = 12


def find_deadlocks(subject: Subject, run: Unrolled) -> Iterator[Finding]:
    """Yield WAIT_WITHOUT_POST and DEADLOCK_CYCLE.

    A wait behind another stuck stream is no finding of its own, nor is one whose post a notify
    overrun has lost.
    """
    if not len(run.stuck):
        return
    blocked = _Blocked(subject, run)
    yield from limited(blocked.roots, blocked.source, blocked.without_post)
    yield from limited(
        blocked.cycles(),
        lambda nodes: frozenset(map(blocked.source, nodes)),
        blocked.cycle,
    )


class _Blocked:
    """The waits that block a stream, and the posts that would set them free."""

    def __init__(self, subject: Subject, run: Unrolled) -> None:
        self.subject, self.run = subject, run
        self.stuck = {int(run.queue[node]): int(node) for node in run.stuck.tolist()}
        executed = np.zeros(len(run.kind), bool)
        executed[run.order] = True
        self.posts: dict[int, list[int]] = defaultdict(list)
        left = np.flatnonzero(np.equal(run.kind, TaskKind.NOTIFY_POST) & ~executed)
        for node in left.tolist():
            self.posts[self._cell(node)].append(node)

    @cached_property
    def roots(self) -> list[int]:
        """The waits for which no post is left, and none was lost."""
        lost = {self._cell(int(late)) for late, _ in self.run.overruns.tolist()}
        cells = {node: self._cell(node) for node in self.stuck.values()}
        return sorted(n for n, cell in cells.items() if cell not in self.posts and cell not in lost)

    @cached_property
    def behind(self) -> Counter[int]:
        """The number of other streams that each root holds up."""
        held: Counter[int] = Counter()
        ends: dict[int, int | None] = {}
        for node in self.stuck.values():
            path, at = [], node
            while at not in ends:
                path.append(at)
                ends[at] = None
                following = self._next(at)
                if following is None:
                    ends[at] = at
                    break
                at = following
            for visited in path:
                ends[visited] = ends[at]
        held.update(end for node, end in ends.items() if end is not None and end != node)
        return held

    def source(self, node: int) -> str:
        """Return the author's line of a node."""
        return self.subject.source(self.run.task(node)[0]) or ""

    def without_post(self, node: int) -> Finding:
        """Return the finding of a wait for which no post is left."""
        subject = self.subject
        row, copy = self.run.task(node)
        cell = self._cell(node)
        posts, waits = subject.posts_per_cell, subject.waits_per_cell
        behind = self.behind[node]
        streams = "stream waits" if behind == 1 else "streams wait"
        held = f" {behind} other {streams} behind it." if behind else ""
        return subject.finding(
            "WAIT_WITHOUT_POST",
            f"{subject.place(row, copy)} waits for ever for {format_notify(subject.program, row)}: "
            f"it is {_balance(posts[cell], waits[cell])}.{held}",
            self._must_post(cell) + subject.beside(row, TaskKind.NOTIFY_POST, posts - waits),
            rows=[(row, copy)],
        )

    def cycles(self) -> list[list[int]]:
        """Return every cycle of waits, each once, beginning with its smallest node."""
        colour: dict[int, int] = {}
        found = []
        for number, start in enumerate(sorted(self.stuck.values())):
            at: int | None = start
            path = []
            while at is not None and at not in colour:
                colour[at] = number
                path.append(at)
                at = self._next(at)
            if at is not None and colour[at] == number:
                cycle = path[path.index(at) :]
                low = cycle.index(min(cycle))
                found.append(cycle[low:] + cycle[:low])
        return found

    def cycle(self, nodes: list[int]) -> Finding:
        """Return the finding of a cycle."""
        lines = [f"  {self._link(node)}" for node in nodes[:SHOWN_IN_CYCLE]]
        if len(nodes) > SHOWN_IN_CYCLE:
            lines.append(f"  ... and {len(nodes) - SHOWN_IN_CYCLE} more")
        head = (
            f"{len(nodes)} streams wait for each other in a cycle:"
            if len(nodes) > 1
            else "A stream waits for a post of its own that comes later:"
        )
        return self.subject.finding(
            "DEADLOCK_CYCLE",
            "\n".join([head, *lines]),
            self._missing(nodes)
            or "Post before you wait: on one stream of the cycle, move the post before the wait.",
            rows=[self.run.task(node) for node in nodes],
        )

    def _missing(self, nodes: list[int]) -> str:
        """Return a sentence about the first notify of a cycle with too few posts; empty if none."""
        subject = self.subject
        posts, waits = subject.posts_per_cell, subject.waits_per_cell
        for row, _ in map(self.run.task, nodes):
            cell = int(subject.tasks.cell[row])
            if posts[cell] < waits[cell]:
                rank = int(subject.tasks.rank[row])
                return (
                    f"A post is missing: {format_notify(subject.program, row)}, for which "
                    f"rank {rank} waits, is {_balance(posts[cell], waits[cell])}. "
                    + self._must_post(cell)
                )
        return ""

    def _link(self, node: int) -> str:
        """Return one line of a cycle: the wait, and the post that would end it."""
        subject = self.subject
        row, copy = self.run.task(node)
        post = self.run.task(self.posts[self._cell(node)][0])
        return (
            f"{subject.place(row, copy)} {subject.action(row)}, which {subject.place(*post)} would "
            "post"
        )

    def _next(self, node: int) -> int | None:
        """Return the stuck wait of a stream that would post what this one waits for."""
        posts = self.posts.get(self._cell(node))
        return self.stuck.get(int(self.run.queue[posts[0]])) if posts else None

    def _cell(self, node: int) -> int:
        return int(self.subject.tasks.cell[self.run.task(node)[0]])

    def _must_post(self, cell: int) -> str:
        """Return a sentence that names the rank or stream that must post a notify."""
        transports = self.subject.program.transports
        if cell >= transports.cells:
            return "Another stream of this rank must post it once for each wait."
        rank = int(transports.peer[cell // transports.stride])
        begin, end = self.subject.tasks.first[rank : rank + 2]
        if begin == end:
            return f"Rank {rank} must post it once for each wait, but it issues no task at all."
        return f"Rank {rank} must post it once for each wait."


def _balance(posts: int, waits: int) -> str:
    if not posts:
        return "never posted"
    return f"posted {_times(posts)} and waited for {_times(waits)}"


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"
