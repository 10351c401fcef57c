"""Waiting for peers of the same host, call by call.

A sleeping rank also compares its peers' calls with its own now and then. So ranks that make
different calls, or end, are found at no cost for calls that go well.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from hccl_platform.distributed.fences import fence
from hccl_platform.distributed.header import (
    ASLEEP,
    CALL,
    CLOSED,
    DONE,
    FAILED_BY,
    MISSING,
    MOST_MISSING,
    Header,
)
from hccl_platform.distributed.late_ranks import held_up
from hccl_platform.distributed.pauses import LOOK_MS, Pauses
from hccl_platform.distributed.rendezvous import Descriptors
from hccl_platform.lowering.call import CallIdentity
from hccl_py.errors import ExecTimeoutError, MismatchError, PeerLostError

YIELDS = 30
"""Yields of a blocked rank before it sleeps."""

SUSPECT_S = 1.0
"""A rank that is blocked for longer checks whether the program can end at all."""

MARK_BITS = 24
MOST_MARK = (1 << MARK_BITS) - 1
"""The part of a call's digest that its notifies carry."""

Missing: TypeAlias = Sequence[tuple[int, int]]
"""Words of a rank, each with the least value that it waits for."""

_MISSING_PLACES = range(MISSING + 1, MISSING + 1 + 2 * MOST_MISSING, 2)

_ALL_WAIT = "All ranks have begun this call and wait: one of them gets too little of a processor."


def _nothing() -> Missing:
    return ()


class Wakeups(Pauses):
    """Pauses of this rank in its calls, and wakeups of the others.

    All waiting of a session's programs goes through `pause`, which also finds peers that have
    failed, ended, or make another call.
    """

    def __init__(
        self,
        rank: int,
        headers: Sequence[Header],
        descriptors: Sequence[Descriptors],
        limit_s: float | None,
    ) -> None:
        events = [d.wakeup for d in descriptors]
        super().__init__(rank, headers, descriptors, events, ASLEEP, YIELDS)
        self.number = 0
        """The number of the call that this rank is in, or was in last."""
        self.call = CallIdentity(b"", 0)
        self.mark = 0
        self._limit_s = limit_s
        self._check: Callable[[], None] | None = None
        self._since = 0.0
        self._missing: Callable[[], Missing] = _nothing

    def begin(self, call: CallIdentity, check: Callable[[], None] | None = None) -> None:
        """Begin the next call; raise the error of a rank that has failed. `check` raises if the
        call can never end; it is called once, if this rank has been blocked for SUSPECT_S.
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
        self._check, self._missing = None, _nothing

    def resume(self) -> None:
        super().resume()
        self._since = 0.0

    def pause(
        self,
        explain: Callable[[], str],
        most_ms: int = LOOK_MS,
        wants: int = 1,
        missing: Callable[[], Missing] = _nothing,
    ) -> None:
        """Pause; a peer that posts wakes this rank once all words that are `missing` have the
        values beside them, any post where none are named.
        """
        self._missing = missing
        super().pause(explain, most_ms, wants)

    def _announce(self) -> None:
        """Publish what is missing. A peer that reads a half-written list may not wake this rank:
        it has posted before it read, and this rank looks for all posts after it has written.
        """
        missing = self._missing()
        if len(missing) > MOST_MISSING:
            missing = ()
        for place, (word, least) in zip(_MISSING_PLACES, missing, strict=False):
            self._own[place], self._own[place + 1] = word, least
        self._own[MISSING] = len(missing)

    def wake_if_ready(self, rank: int) -> None:
        """Wake a rank that sleeps, if nothing is missing there any more."""
        words = self.headers[rank].words
        for place in _MISSING_PLACES[: words[MISSING]]:
            if words[words[place]] < words[place + 1]:
                return
        words[ASLEEP] = 0
        self.wake(rank)

    def wait_until(self, is_done: Callable[[], bool], explain: Callable[[], str]) -> None:
        """Pause until a condition holds that a peer brings about, and wakes this rank for."""
        while not is_done():
            self.pause(explain)
        self.resume()

    def check_calls(self) -> None:
        """Compare this rank's call with the call of every rank that has begun it; MismatchError if
        they differ.
        """
        for rank, header in enumerate(self.headers):
            digest = header.digest_of(self.number)
            if digest is not None and digest != self.call.digest:
                theirs = CallIdentity(header.text_of(self.number).encode(), digest)
                raise mismatch({self.rank: (self.number, self.call), rank: (self.number, theirs)})

    def held_up(self, waits: str) -> ExecTimeoutError | None:
        """Return the error of a call that takes too long where ranks of this host hold it up, with
        the sentence of this rank's own wait behind it; None where they do not.
        """
        found = held_up(self.number, self.headers, self._processes)
        return found and ExecTimeoutError(f"{found.cause} {waits}", found.hint)

    def look(self) -> None:
        """Raise the error that this host shows now: a rank has failed, ended, or calls something
        else.
        """
        ready = (descriptor for descriptor, _ in self._poll.poll(0))
        self._ended.update(self._processes[d] for d in ready if d in self._processes)
        self._check_failed()
        self.check_calls()
        self._check_ended()

    def fail(self, error: BaseException) -> None:
        """Publish to all ranks that this one has failed, unless another has before."""
        self.resume()
        self.publish(error)

    def publish(self, error: BaseException) -> None:
        """Do the same from any thread: the thread of this rank that waits wakes up and raises."""
        if self._own[FAILED_BY]:
            return
        self.headers[self.rank].publish(error, self.rank)
        for header in self.headers:
            if not header.words[FAILED_BY]:
                header.words[FAILED_BY] = 1 + self.rank
        fence()
        for rank in range(len(self.headers)):
            self.wake(rank)

    def close(self) -> None:
        """Publish to ranks that wait for this one that it will make no more calls."""
        self._missing = _nothing
        self._own[CLOSED] = 1
        fence()
        for rank in range(len(self.headers)):
            self.wake_if_asleep(rank)

    def _sleep(self, explain: Callable[[], str], most_ms: int) -> None:
        self._since = self._since or time.monotonic()
        super()._sleep(explain, most_ms)

    def _look(self, explain: Callable[[], str]) -> None:
        self.check_calls()
        self._check_ended()
        blocked_s = time.monotonic() - self._since
        if blocked_s > SUSPECT_S and self._check is not None:
            check, self._check = self._check, None
            check()
        if self._limit_s is not None and blocked_s > self._limit_s:
            waits = f"{explain()} for {self._limit_s:g} s, longer than HCCL_EXEC_TIMEOUT allows."
            raise self.held_up(waits) or ExecTimeoutError(waits, _ALL_WAIT)

    def _check_ended(self) -> None:
        """Raise PeerLostError if a peer has ended or closed before it has done this call."""
        for rank, header in enumerate(self.headers):
            if header.words[CLOSED]:
                self._check_failed()  # what a rank has failed of it publishes before it closes
                self._check_done(rank, f"Rank {rank} has closed its communicator")
            elif rank in self._ended:
                self._check_done(rank, f"Rank {rank}'s process has ended")

    def _check_done(self, rank: int, what: str) -> None:
        words = self.headers[rank].words
        if words[DONE] < self.number:
            raise PeerLostError(
                f"{what} in call {self.number}, which rank {self.rank} is in."
                if words[CALL] == self.number
                else f"{what} before call {self.number}, which rank {self.rank} is in.",
                "Its own output says why. Start the job anew.",
            )


def mismatch(calls: Mapping[int, tuple[int, CallIdentity]]) -> MismatchError:
    """Return the error of ranks that make different calls, each with its number."""
    number = max(number for number, _ in calls.values())
    words = "; ".join(
        f"rank {rank} {call.text.decode(errors='replace')}"
        + (f" in call {theirs}" if theirs != number else "")
        for rank, (theirs, call) in sorted(calls.items())
    )
    return MismatchError(
        f"Ranks differ in call {number}: {words}.",
        "All ranks of a communicator make the same calls with the same arguments, in the same "
        "order.",
    )
