"""What the processes of a group tell each other before their devices can: by the job's store."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

from hccl_py.errors import ExecTimeoutError, PeerLostError
from hccl_py.plugins.platforms import Store

_AT_ONCE_S = 0.01
_LOOK_S = 0.5
"""How often a rank that waits for another looks whether one has failed."""


class Agreement:
    """Rounds in which every rank says something and hears all others.

    All ranks make the same rounds in the same order. Whoever fails says so under a key of its own.
    """

    def __init__(self, store: Store, key: str, rank: int, size: int, limit_s: float) -> None:
        self.rank, self.size = rank, size
        self._store, self._key, self._limit_s = store, key, limit_s
        self._round = 0

    def exchange(self, what: str, data: bytes) -> list[bytes]:
        """Return what all ranks say; ExecTimeoutError names who does not, and for `what`."""
        self._round += 1
        self._store.set(f"{self._key}/{self._round}/{self.rank}", data)
        end = time.monotonic() + self._limit_s
        return [self._heard(rank, what, end) for rank in range(self.size)]

    def _heard(self, rank: int, what: str, end: float) -> bytes:
        """Return what a rank says in this round; PeerLostError where one has failed meanwhile."""
        while True:
            left_s = end - time.monotonic()
            look_s = max(min(left_s, _LOOK_S), _AT_ONCE_S)
            try:
                return self._store.get(f"{self._key}/{self._round}/{rank}", look_s)
            except ExecTimeoutError:
                failure = self.failure()
            if failure is not None and failure[0] != self.rank:
                raise PeerLostError(
                    f"Rank {failure[0]} has failed: {failure[1]}", "Start the job anew."
                )
            if self._has_left(rank):
                raise PeerLostError(
                    f"Rank {rank} has closed its communicator, and rank {self.rank} waits for it "
                    f"{what}.",
                    "All ranks make the same calls in the same order.",
                )
            if left_s <= 0:
                raise ExecTimeoutError(
                    f"Rank {self.rank} has waited {self._limit_s:g} s for rank {rank} {what}.",
                    "All ranks make the same calls in the same order; see whether it runs.",
                )

    def gather(self, what: str, value: Any) -> list[Any]:
        """Exchange values that JSON has."""
        return [json.loads(data) for data in self.exchange(what, json.dumps(value).encode())]

    def all(self, what: str, value: bool) -> bool:
        """Whether something is so at every rank."""
        return all(self.gather(what, value))

    def fail(self, text: str) -> None:
        """Let all ranks know why this one fails."""
        self._store.set(f"{self._key}/failed/{self.rank}", text.encode())
        self._store.set(f"{self._key}/failed", str(self.rank).encode())

    def failure(self) -> tuple[int, str] | None:
        """Return a rank that has failed, and why, if one has."""
        try:
            rank = int(self._store.get(f"{self._key}/failed", _AT_ONCE_S))
            return rank, self._store.get(f"{self._key}/failed/{rank}", _AT_ONCE_S).decode()
        except ExecTimeoutError:
            return None

    def _has_left(self, rank: int) -> bool:
        try:
            self._store.get(f"{self._key}/left/{rank}", _AT_ONCE_S)
        except ExecTimeoutError:
            return False
        return True

    def leave(self, ranks: Sequence[int], seconds: float) -> None:
        """Wait until these ranks have left too, at most so long."""
        self._store.set(f"{self._key}/left/{self.rank}", b"")
        for rank in ranks:
            try:
                self._store.get(f"{self._key}/left/{rank}", seconds)
            except ExecTimeoutError:
                return
