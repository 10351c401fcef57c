"""The loop that runs one rank's part of a program in shared memory.

A rank reads and writes its peers' memory itself, and posts notifies there, as an NPU does over
SDMA. One thread runs the steps of all its streams (lowering/steps.py). Notifies are counts that
only grow, so no count is ever reset.

    step    wait, wait, ...     until the counts in the own file have grown far enough
            copy, reduce        numpy on mapped memory
            post                count + 1 in the waiter's file, and a wakeup

A count has a mark beside it, part of the digest of the call in which it was posted: ranks that make
different calls find out when such a post has come.

RDMA writes are over when they return, and notifies come after them: the strictest order that
hardware may show. Where several ranks reduce into one place at once, which hardware does
atomically, a lock on these bytes of the owner's file takes its place; the kernel releases the lock
of a process that dies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fcntl import LOCK_EX, LOCK_NB, LOCK_UN, lockf
from typing import Any, NamedTuple, TypeAlias

from hccl_platform.distributed.fences import fence, order_accesses
from hccl_platform.distributed.header import ASLEEP
from hccl_platform.distributed.wakeups import MARK_BITS, MOST_MARK, Wakeups
from hccl_platform.lowering.moves import Bytes
from hccl_platform.lowering.reducing import Reduce

COPY, REDUCE, LOCKED, POST = range(4)

Item: TypeAlias = tuple[int, Any, Any, Any]
"""A task of a step: its kind, and three values that depend on it:

    COPY      destination, source
    REDUCE    destination, source, Reduce
    LOCKED    destination, source, (Reduce, Lock)
    POST      number of the count here, (words of the waiter, word), the waiter's rank
"""

Wait: TypeAlias = tuple[int, int, int]
"""A wait of a step: number of the count here, word of the own words, posts of this run."""


class BoundStep(NamedTuple):
    """A step bound to memory: waits, then items. It runs after `before` others; `then` are those
    that it is before.
    """

    waits: Sequence[Wait]
    items: list[Item]
    before: int
    then: Sequence[int]


_LOCK_MS = 1


class Lock(NamedTuple):
    """A lock on bytes of a file."""

    file: int
    start: int
    size: int

    def take(self) -> bool:
        """Take the lock unless another process has it."""
        try:
            lockf(self.file, LOCK_EX | LOCK_NB, self.size, self.start)
        except (BlockingIOError, PermissionError):  # EAGAIN or EACCES: it is taken
            return False
        return True

    def release(self) -> None:
        """Release the lock."""
        lockf(self.file, LOCK_UN, self.size, self.start)


class Counts:
    """The number of posts of this rank so far, by notify, and of its waits in all runs before."""

    def __init__(self, notifies: int) -> None:
        self.posted = [0] * notifies
        self.waited = [0] * notifies


class Blocked(NamedTuple):
    """A step that cannot go on: at its first wait that is not over, or at an item that another
    rank's lock holds up.
    """

    step: int
    is_waiting: bool
    at: int


Explain: TypeAlias = Callable[[Sequence[Blocked]], str]


class _Ready:
    """A step whose turn has come: `waited` of its waits are over, `done` of its items."""

    def __init__(self, number: int, step: BoundStep) -> None:
        self.number, self.step = number, step
        self.waited = self.done = 0
        self.is_due = self.is_held_up = False

    @property
    def blocked(self) -> Blocked:
        """The place where it cannot go on."""
        return Blocked(self.number, not self.is_due, self.done if self.is_due else self.waited)


def run_steps(
    steps: Sequence[BoundStep],
    counts: Counts,
    words: memoryview[int],
    wakeups: Wakeups,
    explain: Explain,
) -> None:
    """Run all steps.

    `words` are the words of this rank's own file; `explain` describes what steps wait for.

    `left[n]` is the number of steps that step n still comes after, `ready` has those with none
    left that have not run. Each round tries all of these. A round in which none runs pauses: only a
    peer can help then, by a notify or by releasing a lock, and `pause` sees to it that no notify is
    missed. If one step is ready and waits, this rank sleeps until all its notifies have come; if
    several are, until one has. So a rank runs all that it can before it waits, on any stream, and
    never waits for itself.
    """
    left = [step.before for step in steps]
    ready = [_Ready(n, step) for n, step in enumerate(steps) if not step.before]

    def blocked() -> str:
        return explain([entry.blocked for entry in ready])

    def missing() -> list[tuple[int, int]]:
        return _missing(ready, counts, words)

    while ready:
        has_run, is_locked = False, False
        for entry in tuple(ready):
            if not entry.is_due:
                if not _is_due(entry, counts, words, wakeups):
                    continue
                entry.is_due = True
                wakeups.resume()
            if not _run_items(entry, counts, wakeups):
                is_locked = entry.is_held_up = True
                continue
            has_run = True
            if entry.is_held_up:
                wakeups.resume()
            ready.remove(entry)
            for number in entry.step.then:
                left[number] -= 1
                if not left[number]:
                    ready.append(_Ready(number, steps[number]))
        if has_run or not ready:
            continue
        if is_locked:
            wakeups.pause(blocked, _LOCK_MS)
        else:
            wakeups.pause(blocked, missing=missing)


def _is_due(entry: _Ready, counts: Counts, words: memoryview[int], wakeups: Wakeups) -> bool:
    """Return True if all waits of a step are over."""
    waits = entry.step.waits
    while entry.waited < len(waits):
        count, word, posts = waits[entry.waited]
        needed, value = counts.waited[count] + posts, words[word]
        if value >> MARK_BITS < needed:
            return False
        entry.waited += 1
        # The mark is that of the last post: if it is this wait's, it must be of this call.
        if value >> MARK_BITS == needed and value & MOST_MARK != wakeups.mark:
            wakeups.check_calls()
    order_accesses()
    return True


def _missing(
    ready: Sequence[_Ready], counts: Counts, words: memoryview[int]
) -> list[tuple[int, int]]:
    """Return the words that the only step which is ready still waits for, each with the least value
    that it needs; nothing where any notify may help.
    """
    if len(ready) > 1:
        return []
    least = (
        (word, counts.waited[n] + posts << MARK_BITS) for n, word, posts in ready[0].step.waits
    )
    return [(word, value) for word, value in least if words[word] < value]


def _run_items(entry: _Ready, counts: Counts, wakeups: Wakeups) -> bool:
    """Run the items of a step; False where another rank's lock holds one up."""
    posted, mark = counts.posted, wakeups.mark
    items = entry.step.items
    for at in range(entry.done, len(items)):
        kind, first, second, third = items[at]
        if kind == COPY:
            first[...] = second
        elif kind == POST:
            posted[first] = count = posted[first] + 1
            theirs, word = second
            order_accesses()
            theirs[word] = count << MARK_BITS | mark
            fence()  # the count is written before ASLEEP is read (pauses.py)
            if theirs[ASLEEP]:
                wakeups.wake_if_ready(third)
        elif kind == REDUCE:
            third(first, second)
        elif not _reduce_locked(first, second, *third):
            entry.done = at
            return False
    return True


def _reduce_locked(into: Bytes, what: Bytes, reduce: Reduce, lock: Lock) -> bool:
    """Reduce into memory that other ranks may reduce into; False if one of them is doing so."""
    if not lock.take():
        return False
    try:
        reduce(into, what)
        order_accesses()
    finally:
        lock.release()
    return True
