"""The reason why a rank has failed, as text for the other ranks."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TypeVar

from hccl_py import errors
from hccl_py.errors import ExecTimeoutError, HcclError, PeerLostError
from hccl_py.plugins.platforms import Store

T = TypeVar("T")

MOST_BYTES = 4000
"""Longest text of a reason, in bytes."""

ANSWER_S = 1.0
"""Seconds in which a store answers, unless the process that serves it is stopped."""
_LOOK_S = 0.01
_ITS_OUTPUT = "Its own output says more."


def as_text(error: BaseException, rank: int) -> bytes:
    """Return the error that made a rank fail, as text for the others."""
    if isinstance(error, HcclError):
        parts = [type(error).__name__, error.message, error.hint]
    else:
        text = f"{type(error).__name__}: {error}".rstrip(": ")
        parts = [PeerLostError.__name__, f"Rank {rank} has failed: {text}", _ITS_OUTPUT]
    return b"\0".join(part.encode()[: MOST_BYTES // 4] for part in parts)


def from_text(text: bytes) -> HcclError:
    """Return the error of a text, of the same class."""
    name, message, hint = (part.decode(errors="ignore") for part in text.split(b"\0"))
    kind = getattr(errors, name, PeerLostError)
    error: HcclError = kind(message, hint)
    return error


class Failures:
    """The reason in the job's store, left by the ranks of a group that have failed.

    The process that serves the store may be the one that is stopped, and then a request never ends:
    requests are made in a thread, and none after one that has not ended in time.
    """

    def __init__(self, store: Store, key: str, rank: int) -> None:
        self._store, self._rank = store, rank
        self._key = f"{key}/failed"
        self._suspected = f"{self._key}/suspected"
        self._hangs = False

    def publish(self, error: BaseException) -> None:
        """Leave the reason why this rank has failed, and a mark that it knows one."""

        def leave() -> None:
            self._store.set(self._key, as_text(error, self._rank))
            self._store.set(f"{self._key}/{self._rank}", b"")

        self._request(leave, 0)

    def suspect(self, error: BaseException) -> None:
        """Leave a reason that counts where no rank leaves a better one: `published` returns it once
        its seconds are over.
        """
        self._request(lambda: self._store.set(self._suspected, as_text(error, self._rank)), 0)

    def published(self, seconds: float) -> HcclError | None:
        """Return the reason that a rank has left, or leaves within so many seconds, or that the
        store does not answer; else what a rank suspects; else None.
        """

        def look() -> bytes | None:
            end = time.monotonic() + seconds
            return self._left(self._key, end) or self._left(self._suspected, end)

        text = self._request(look, seconds)
        if self._hangs:
            return _UNANSWERED
        return from_text(text) if text else None

    def wait_for(self, ranks: Iterable[int], seconds: float) -> None:
        """Wait for these ranks to know a reason: the store may go with this process."""
        end = time.monotonic() + seconds

        def wait() -> None:
            for rank in ranks:
                self._left(f"{self._key}/{rank}", end)

        self._request(wait, seconds)

    def _left(self, key: str, end: float) -> bytes | None:
        """Return a rank's text under a key, None if it is not there by the end. A rank that ends
        meanwhile cuts a wait of the store short, and does not matter.
        """
        while True:
            rest = end - time.monotonic()
            with suppress(HcclError):
                return self._store.get(key, max(rest, _LOOK_S))
            if rest < 0:
                return None
            time.sleep(_LOOK_S)

    def _request(self, ask: Callable[[], T], seconds: float) -> T | None:
        """Return the answer to a request of so many seconds; None if it fails, or never ends."""
        found: list[T] = []

        def work() -> None:
            with suppress(HcclError):  # no reason, or the store has gone with its process
                found.append(ask())

        if not self._hangs:
            thread = threading.Thread(target=work, daemon=True)
            thread.start()
            thread.join(seconds + ANSWER_S)
            self._hangs = thread.is_alive()
        return found[0] if found else None


_UNANSWERED = ExecTimeoutError(
    "The job's store does not answer: the process that serves it, rank 0's or torchrun's, is "
    "stopped, or gets too little of a processor.",
    "Let that process go on with `kill -CONT`, or start the job anew.",
)
