"""Pauses of a rank that has nothing to do: it yields, then sleeps until a peer wakes it.

    waiter                               poster
    1  asleep = 1                        1  notify += 1
       ---- fence ----                      ---- fence ----
    2  is the notify set? go on          2  is the waiter asleep? asleep = 0, wake it
    3  sleep until woken; again from 1

At least one of the two sees the other's write, so no wakeup is missed; the poster of one notify of
several that are missing leaves the wakeup to the last (wakeups.py); sleeps end after LOOK_MS all
the same. The first poster clears the word, and those that come before the waiter runs need no
system call. With more ranks than cores, a sleeping rank leaves its core to the rank that it waits
for: several times faster than polling.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from hccl_platform.distributed.fences import fence
from hccl_platform.distributed.header import FAILED_BY, Header
from hccl_platform.distributed.rendezvous import Descriptors

CROWDED_S = 100e-6
"""A yield that takes longer has given another process a whole time slice: sleeping is better then,
because the kernel prefers processes that are woken up.
"""

CROWDED_PAUSES = 64
"""Pauses without a yield after such a yield."""

LOOK_MS = 100
"""Longest sleep before a rank looks at its peers."""

_LOOK_EVERY = 16
"""Sleeps after which a rank looks at its peers, even if every sleep was ended by a peer."""


class Pauses:
    """Pauses of one thread of this rank, and wakeups of the same threads of its peers: an eventfd
    for every rank of the group, and the word of a header that says who sleeps.

    A sleeping rank also watches its peers' processes; `_ended` has the ranks of those that ended.
    """

    def __init__(
        self,
        rank: int,
        headers: Sequence[Header],
        descriptors: Sequence[Descriptors],
        events: Sequence[int],
        word: int,
        yields: int,
    ) -> None:
        self.rank = rank
        self.headers = list(headers)
        self._events, self._word, self._yields = list(events), word, yields
        own = descriptors[rank].process  # stands in for those of other hosts, too
        self._processes = {d.process: r for r, d in enumerate(descriptors) if d.process != own}
        self._ended: set[int] = set()
        self._poll = select.poll()
        for descriptor in (self._events[rank], *self._processes):
            self._poll.register(descriptor, select.POLLIN)
        self._is_asleep = False
        self._pauses, self._crowded, self._sleeps = 0, 0, 0

    @property
    def _own(self) -> memoryview[int]:
        return self.headers[self.rank].words

    def wake(self, rank: int) -> None:
        """Wake a rank."""
        with suppress(BlockingIOError):  # the counter is full: it is woken anyway
            os.eventfd_write(self._events[rank], 1)

    def wake_if_asleep(self, rank: int, wants: int = -1) -> None:
        """Wake a rank that sleeps and wants one of these. The caller has written what the rank
        waits for, and made a fence.
        """
        words = self.headers[rank].words
        if words[self._word] & wants:
            words[self._word] = 0
            self.wake(rank)

    def pause(self, explain: Callable[[], str], most_ms: int = LOOK_MS, wants: int = 1) -> None:
        """Let time pass while this rank has nothing to do; `explain` describes its wait, `wants`
        says for what.

        The first pauses yield; a later one marks this rank as asleep, so that its caller looks once
        more; those after it sleep. Raises what `_look` raises, or the error of another rank that
        has failed.
        """
        self._pauses += 1
        if self._is_asleep:
            self._sleep(explain, most_ms)
        elif self._pauses <= self._yields and not self._crowded:
            self._yield()
            return
        else:
            self._crowded = max(self._crowded - 1, 0)
            self._is_asleep = True
            self._announce()
        self._own[self._word] = wants  # again after a sleep: who wakes this rank clears it
        fence()

    def resume(self) -> None:
        """End the pauses: this rank has found something to do."""
        if self._is_asleep:
            self._is_asleep = False
            self._own[self._word] = 0
        self._pauses = 0

    def _announce(self) -> None:
        """Publish the wants of this rank, before it is marked as asleep."""

    def _yield(self) -> None:
        """Let other processes run; if they take long, there are more ranks than cores."""
        start = time.perf_counter()
        os.sched_yield()
        if time.perf_counter() - start > CROWDED_S:
            self._crowded = CROWDED_PAUSES

    def _sleep(self, explain: Callable[[], str], most_ms: int) -> None:
        self._sleeps += 1
        events = self._poll.poll(min(most_ms, LOOK_MS))
        for descriptor, _ in events:
            if descriptor == self._events[self.rank]:
                with suppress(BlockingIOError):
                    os.eventfd_read(descriptor)
            else:
                self._poll.unregister(descriptor)
                self._ended.add(self._processes[descriptor])
        self._check_failed()
        if not events or self._sleeps % _LOOK_EVERY == 0 or self._ended:
            self._look(explain)

    def _look(self, explain: Callable[[], str]) -> None:
        """Look at the peers; raise where they keep this rank from going on."""
        raise NotImplementedError

    def _check_failed(self) -> None:
        failed_by = self._own[FAILED_BY]
        if failed_by:
            raise self.headers[failed_by - 1].reason()
