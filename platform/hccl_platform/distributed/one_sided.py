"""The loop that runs one rank's part of a program in shared memory.

A rank reads and writes its peers' memory itself, and posts notifies there: what an NPU does over
SDMA. Its streams are queues, and one thread goes round them: a queue runs until a wait finds its
notify missing. Notifies are counts that only grow, so that nobody has to reset them.

    my streams      copy ─ post ─ wait ...        a copy or reduction: numpy on mapped memory
                    wait ─ reduce ─ post ...      a post: count + 1 in the waiter's file, and ring

A count has a mark beside it, part of the digest of the call in which it was posted: ranks that call
different things find out at the first notify between them.

RDMA writes are over when they return, and notifies come after them: the strictest order that
hardware may show. What hardware does atomically, when several ranks reduce into one place, a lock
on these bytes of the owner's file does here; the kernel takes it from a process that dies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fcntl import LOCK_EX, LOCK_NB, LOCK_UN, lockf
from typing import Any, NamedTuple, TypeAlias

from hccl_platform.distributed.bells import MARK_BITS, MOST_MARK, Bells
from hccl_platform.distributed.fences import fence, order_accesses
from hccl_platform.lowering.moves import Bytes
from hccl_platform.lowering.reducing import Reduce

COPY, REDUCE, LOCKED, POST_REMOTE, WAIT_REMOTE, POST_LOCAL, WAIT_LOCAL = range(7)

Item: TypeAlias = tuple[int, Any, Any, Any]
"""What to do, and three things that depend on that:

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
    """Bytes of a file."""

    file: int
    start: int
    size: int

    def take(self) -> bool:
        """Take the lock unless another process has it."""
        try:
            lockf(self.file, LOCK_EX | LOCK_NB, self.size, self.start)
        except (BlockingIOError, PermissionError):  # EAGAIN or EACCES: somebody has it
            return False
        return True

    def release(self) -> None:
        """Let others have it."""
        lockf(self.file, LOCK_UN, self.size, self.start)


class Counts:
    """How often this rank has posted and waited, by notify; those between its own streams count
    from 0 in every run.
    """

    def __init__(self, notifies: int) -> None:
        self.posted = [0] * notifies
        self.waited = [0] * notifies


class Blocked(NamedTuple):
    """The first item of each queue that cannot go on."""

    queue: int
    place: int


Explain: TypeAlias = Callable[[Sequence[Blocked]], str]


def run_queues(
    queues: Sequence[Queue],
    counts: Counts,
    local: int,
    words: memoryview[int],
    bells: Bells,
    explain: Explain,
) -> None:
    """Run all queues to their ends.

    `local` is how many notifies there are between this rank's own streams, `words` are those of its
    own file; `explain` says what blocked queues wait for.
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
            if kind == WAIT_REMOTE and words[word] >> MARK_BITS <= counts.waited[count]:
                continue
            if kind == WAIT_LOCAL and not flags[count]:
                continue
            stop, why = _advance(queue, start, counts, flags, words, bells)
            is_moving |= stop > start
            is_locked |= why == LOCKED
            at[q] = stop
            if stop == len(queue):
                live.remove(q)
        if is_moving:
            if is_pausing:
                bells.wake_up()
                is_pausing = False
        elif live:
            is_pausing = True
            bells.pause(blocked, *([_LOCK_MS] if is_locked else []))


def _advance(
    queue: Queue,
    at: int,
    counts: Counts,
    flags: list[int],
    words: memoryview[int],
    bells: Bells,
) -> tuple[int, int]:
    """Run a queue until it ends or blocks; return how far it came, and what blocks it, if so."""
    posted, waited, mark = counts.posted, counts.waited, bells.mark
    for place in range(at, len(queue)):
        kind, first, second, third = queue[place]
        if kind == COPY:
            first[...] = second
        elif kind == WAIT_REMOTE:
            count = words[second] >> MARK_BITS
            if count <= waited[first]:
                return place, kind
            waited[first] += 1
            if count == waited[first] and words[second] & MOST_MARK != mark:
                bells.check_calls()
            order_accesses()
        elif kind == POST_REMOTE:
            posted[first] = count = posted[first] + 1
            order_accesses()
            second[0][second[1]] = count << MARK_BITS | mark
            fence()
            bells.ring_if_asleep(third)
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
    """Reduce where other ranks may at the same time; False where one of them is at it."""
    if not lock.take():
        return False
    try:
        reduce(into, what)
        order_accesses()
    finally:
        lock.release()
    return True
