"""The loop that runs one rank's part of a program in shared memory.

A rank reads and writes its peers' memory itself, and posts notifies there, as an NPU does over
SDMA. Its streams are queues, and one thread serves them in turn: a queue runs until a wait finds
its notify missing. Notifies are counts that only grow, so no count is ever reset.

    streams     copy ─ post ─ wait ...        a copy or reduction: numpy on mapped memory
                wait ─ reduce ─ post ...      a post: count + 1 in the waiter's file, and a wakeup

A count has a mark beside it, part of the digest of the call in which it was posted: ranks that make
different calls find out at the first notify between them.

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
from hccl_platform.distributed.wakeups import MARK_BITS, MOST_MARK, Wakeups
from hccl_platform.lowering.moves import Bytes
from hccl_platform.lowering.reducing import Reduce

COPY, REDUCE, LOCKED, POST_REMOTE, WAIT_REMOTE, POST_LOCAL, WAIT_LOCAL = range(7)

Item: TypeAlias = tuple[int, Any, Any, Any]
"""A task of a queue: its kind, and three values that depend on it:

    COPY            destination, source
    REDUCE          destination, source, Reduce
    LOCKED          destination, source, (Reduce, Lock)
    POST_REMOTE     number of the count here, (words of the waiter, word), the waiter's rank
    WAIT_REMOTE     number of the count here, word of the own words
    POST_LOCAL      number of the count here
    WAIT_LOCAL      number of the count here
"""

Queue: TypeAlias = Sequence[Item]

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
    """The number of posts and waits of this rank so far, by notify. Notifies between its own
    streams are not among them: they count from 0 in every run.
    """

    def __init__(self, notifies: int) -> None:
        self.posted = [0] * notifies
        self.waited = [0] * notifies


class Blocked(NamedTuple):
    """The first item of a queue that cannot go on."""

    queue: int
    place: int


Explain: TypeAlias = Callable[[Sequence[Blocked]], str]


def run_queues(
    queues: Sequence[Queue],
    counts: Counts,
    local: int,
    words: memoryview[int],
    wakeups: Wakeups,
    explain: Explain,
) -> None:
    """Run all queues to their ends.

    `local` is the number of notifies between this rank's own streams, `words` are the words of its
    own file; `explain` describes the waits of blocked queues.

    `at[q]` is the first item of queue q that is not done, `live` has the queues with such items,
    `flags` the posts of local notifies not yet taken. Each round tries every live queue once and
    runs it as far as it goes. A round in which no queue moves pauses: only a peer can help then, by
    a notify or by releasing a lock, and `pause` sees to it that no notify is missed. So a rank runs
    all that it can before it waits, whichever stream that is on, and never waits for itself.
    """
    at, live = [0] * len(queues), [q for q, queue in enumerate(queues) if queue]
    flags, is_pausing = [0] * local, False

    def blocked() -> str:
        return explain([Blocked(q, at[q]) for q in live])

    while live:
        is_moving, is_locked = False, False
        for q in tuple(live):
            queue, start = queues[q], at[q]
            kind, count, word, _ = queue[start]
            # The two common reasons for a queue to stay blocked, checked without a call.
            if kind == WAIT_REMOTE and words[word] >> MARK_BITS <= counts.waited[count]:
                continue
            if kind == WAIT_LOCAL and not flags[count]:
                continue
            stop, why = _advance(queue, start, counts, flags, words, wakeups)
            is_moving |= stop > start
            is_locked |= why == LOCKED
            at[q] = stop
            if stop == len(queue):
                live.remove(q)
        if is_moving:
            if is_pausing:
                wakeups.resume()
                is_pausing = False
        elif live:
            is_pausing = True
            wakeups.pause(blocked, *([_LOCK_MS] if is_locked else []))


def _advance(
    queue: Queue,
    at: int,
    counts: Counts,
    flags: list[int],
    words: memoryview[int],
    wakeups: Wakeups,
) -> tuple[int, int]:
    """Run a queue until it ends or blocks; return its position and the kind of the blocking item,
    -1 at the end.
    """
    posted, waited, mark = counts.posted, counts.waited, wakeups.mark
    for place in range(at, len(queue)):
        kind, first, second, third = queue[place]
        if kind == COPY:
            first[...] = second
        elif kind == WAIT_REMOTE:
            count = words[second] >> MARK_BITS
            if count <= waited[first]:
                return place, kind
            waited[first] += 1
            # The mark is that of the last post: if it is this wait's, it must be of this call.
            if count == waited[first] and words[second] & MOST_MARK != mark:
                wakeups.check_calls()
            order_accesses()
        elif kind == POST_REMOTE:
            posted[first] = count = posted[first] + 1
            order_accesses()
            second[0][second[1]] = count << MARK_BITS | mark
            fence()  # the count is written before ASLEEP is read (wakeups.py)
            wakeups.wake_if_asleep(third)
        elif kind == REDUCE:
            third(first, second)
        elif kind == WAIT_LOCAL:
            if not flags[first]:
                return place, kind
            flags[first] -= 1
        elif kind == POST_LOCAL:
            flags[first] += 1
        elif not _reduce_locked(first, second, *third):
            return place, kind
    return len(queue), -1


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
