"""How a rank waits: it yields, then sleeps until a peer rings; and what it looks at meanwhile.

    waiter                               poster
    1  asleep = 1                        1  notify += 1
       ---- fence ----                      ---- fence ----
    2  is the notify there? go on        2  is the waiter asleep? ring
    3  sleep until the bell rings

One of the two sees what the other wrote, so no ring is missed; a time-out stands behind that all
the same. With more ranks than cores, who sleeps leaves its core to the one it waits for: that is
several times faster than to go on looking.

Who sleeps also watches the peers' processes, and looks now and then at what they call. So ranks
that call different things, or end, are found at no cost for calls that go well.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from hccl_platform.distributed.fences import fence
from hccl_platform.distributed.header import (
    ASLEEP,
    CALL,
    CLOSED,
    DONE,
    FAILED_BY,
    Header,
)
from hccl_platform.distributed.rendezvous import Descriptors
from hccl_platform.lowering.call import Call
from hccl_py.errors import ExecTimeoutError, MismatchError, PeerLostError

YIELDS = 30
"""How often a blocked rank lets others run before it sleeps."""

CROWDED_S = 100e-6
"""A yield that takes longer has let somebody have a whole time slice: sleeping is better then,
because the kernel prefers who is woken up.
"""

CROWDED_PAUSES = 64
"""How often a rank then sleeps at once before it tries to yield again."""

LOOK_MS = 100
"""How long it sleeps at most before it looks at its peers."""

SUSPECT_S = 1.0
"""Who is blocked for so long asks whether the program can end at all."""

MARK_BITS = 24
MOST_MARK = (1 << MARK_BITS) - 1
"""The part of a call's digest that its notifies carry."""

_LOOK_EVERY = 16
"""After so many rings it looks at its peers too."""


class Bells:
    """The bells of a group's ranks, of which one is this rank's own."""

    def __init__(
        self,
        rank: int,
        headers: Sequence[Header],
        descriptors: Sequence[Descriptors],
        limit_s: float | None,
    ) -> None:
        self.rank = rank
        self.headers = list(headers)
        self.number = 0
        """The number of the call that this rank is in, or was in last."""
        self.call = Call(b"", 0)
        self.mark = 0
        self._bells = [d.bell for d in descriptors]
        self._limit_s = limit_s
        self._processes = {d.process: r for r, d in enumerate(descriptors) if r != rank}
        self._ended: set[int] = set()
        self._poll = select.poll()
        for descriptor in (self._bells[rank], *self._processes):
            self._poll.register(descriptor, select.POLLIN)
        self._check: Callable[[], None] | None = None
        self._is_asleep = False
        self._pauses, self._crowded = 0, 0
        self._sleeps, self._since = 0, 0.0

    @property
    def _own(self) -> memoryview[int]:
        return self.headers[self.rank].words

    def begin(self, call: Call, check: Callable[[], None] | None = None) -> None:
        """Begin the next call; it fails at once where another rank has failed. `check` raises where
        the call can never end; it is asked once, where this rank has been blocked for a while.
        """
        self._check_failed()
        self.number += 1
        self.call, self._check = call, check
        self.mark = call.digest & MOST_MARK
        self._since = 0.0
        self.headers[self.rank].begin(self.number, call)

    def end(self) -> None:
        """End the call."""
        self._own[DONE] = self.number
        self._check = None

    def ring(self, rank: int) -> None:
        """Wake a rank."""
        with suppress(BlockingIOError):  # it has not heard the last 2^64 rings
            os.eventfd_write(self._bells[rank], 1)

    def ring_if_asleep(self, rank: int) -> None:
        """Wake a rank that sleeps; after what it may wait for was written, and a fence."""
        if self.headers[rank].words[ASLEEP]:
            self.ring(rank)

    def pause(self, explain: Callable[[], str], most_ms: int = LOOK_MS) -> None:
        """Let time pass where this rank finds nothing to do; `explain` says what it waits for.

        It yields some times, then says that it is asleep, so that the caller looks once more, then
        sleeps. Raises ExecTimeoutError, MismatchError, PeerLostError, or what made another rank
        fail.
        """
        self._pauses += 1
        if self._is_asleep:
            self._sleep(explain, most_ms)
        elif self._pauses <= YIELDS and not self._crowded:
            self._yield()
        else:
            self._crowded = max(self._crowded - 1, 0)
            self._is_asleep = True
            self._own[ASLEEP] = 1
            fence()

    def wake_up(self) -> None:
        """Go on, after pauses."""
        if self._is_asleep:
            self._is_asleep = False
            self._own[ASLEEP] = 0
        self._pauses, self._since = 0, 0.0

    def wait_until(self, is_there: Callable[[], bool], explain: Callable[[], str]) -> None:
        """Wait for something that a peer writes and rings for."""
        while not is_there():
            self.pause(explain)
        self.wake_up()

    def check_calls(self) -> None:
        """Compare this rank's call with that of each rank that has begun it; MismatchError where
        they differ.
        """
        for rank, header in enumerate(self.headers):
            digest = header.digest_of(self.number)
            if digest is not None and digest != self.call.digest:
                theirs = Call(header.text_of(self.number).encode(), digest)
                raise mismatch({self.rank: (self.number, self.call), rank: (self.number, theirs)})

    def fail(self, error: BaseException) -> None:
        """Let all ranks know that this one has failed, unless one has before."""
        self.wake_up()
        self.tell(error)

    def tell(self, error: BaseException) -> None:
        """Do so from any thread: the one that waits for this rank wakes up, and raises it."""
        if self._own[FAILED_BY]:
            return
        self.headers[self.rank].publish(error, self.rank)
        for header in self.headers:
            if not header.words[FAILED_BY]:
                header.words[FAILED_BY] = 1 + self.rank
        fence()
        for rank in range(len(self.headers)):
            self.ring(rank)

    def close(self) -> None:
        """Let who waits for this rank know that it will not call again."""
        self._own[CLOSED] = 1
        fence()
        for rank in range(len(self.headers)):
            self.ring_if_asleep(rank)

    def _yield(self) -> None:
        """Let others run; where they take long, there are more of them than cores."""
        start = time.perf_counter()
        os.sched_yield()
        if time.perf_counter() - start > CROWDED_S:
            self._crowded = CROWDED_PAUSES

    def _sleep(self, explain: Callable[[], str], most_ms: int) -> None:
        self._sleeps += 1
        self._since = self._since or time.monotonic()
        events = self._poll.poll(min(most_ms, LOOK_MS))
        for descriptor, _ in events:
            if descriptor == self._bells[self.rank]:
                with suppress(BlockingIOError):
                    os.eventfd_read(descriptor)
            else:
                self._poll.unregister(descriptor)
                self._ended.add(self._processes[descriptor])
        self._check_failed()
        if not events or self._sleeps % _LOOK_EVERY == 0 or self._ended:
            self._look(explain)

    def _look(self, explain: Callable[[], str]) -> None:
        self.check_calls()
        self._check_ended()
        blocked_s = time.monotonic() - self._since
        if blocked_s > SUSPECT_S and self._check is not None:
            check, self._check = self._check, None
            check()
        if self._limit_s is not None and blocked_s > self._limit_s:
            raise ExecTimeoutError(
                f"{explain()} for {self._limit_s:g} s, longer than HCCL_EXEC_TIMEOUT allows.",
                self._peers_in_words(),
            )

    def _check_failed(self) -> None:
        failed_by = self._own[FAILED_BY]
        if failed_by:
            raise self.headers[failed_by - 1].reason()

    def _check_ended(self) -> None:
        """Find peers that have ended, or closed, before they have done this call."""
        for rank, header in enumerate(self.headers):
            if header.words[CLOSED]:
                self._check_done(rank, " has closed its communicator")
            elif rank in self._ended:
                self._check_done(rank, "'s process has ended")

    def _check_done(self, rank: int, what: str) -> None:
        words = self.headers[rank].words
        if words[DONE] < self.number:
            when = "in" if words[CALL] == self.number else "before"
            raise PeerLostError(
                f"Rank {rank}{what} {when} call {self.number}, which rank {self.rank} is in.",
                "Its own output says why. Start the job anew.",
            )

    def _peers_in_words(self) -> str:
        late = [r for r, h in enumerate(self.headers) if h.words[CALL] < self.number]
        if late:
            ranks = ", ".join(map(str, late))
            return f"Rank {ranks} has not begun this call: it is busy, stopped, or in another."
        return "All ranks have begun this call: one of them is stopped, or starved."


def mismatch(calls: Mapping[int, tuple[int, Call]]) -> MismatchError:
    """Return the error of ranks that make different calls, each with its number."""
    number = max(number for number, _ in calls.values())
    said = "; ".join(
        f"rank {rank} {call.text.decode(errors='replace')}"
        + (f" in call {theirs}" if theirs != number else "")
        for rank, (theirs, call) in sorted(calls.items())
    )
    return MismatchError(
        f"Ranks differ in call {number}: {said}.",
        "All ranks of a communicator make the same calls with the same arguments, in the same "
        "order.",
    )
