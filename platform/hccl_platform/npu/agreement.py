"""Agreement of a group's processes through the job's store, before devices can communicate."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

from hccl_py.errors import ExecTimeoutError, PeerLostError
from hccl_py.plugins.platforms import Store

_AT_ONCE_S = 0.01
_LOOK_S = 0.5
"""Seconds between two looks of a waiting rank for a rank that has failed."""


class Agreement:
    """Rounds in which every rank gives a value and receives those of all ranks.

    All ranks make the same rounds in the same order. A rank that fails leaves the reason under a
    key of its own.
    """

    def __init__(self, store: Store, key: str, rank: int, size: int, limit_s: float) -> None:
        self.rank, self.size = rank, size
        self._store, self._key, self._limit_s = store, key, limit_s
        self._round = 0

    def exchange(self, what: str, data: bytes) -> list[bytes]:
        """Return the values of all ranks; ExecTimeoutError names a rank that gives none, and `what`
        this rank waits for.
        """
        self._round += 1
        self._store.set(f"{self._key}/{self._round}/{self.rank}", data)
        end = time.monotonic() + self._limit_s
        return [self._received(rank, what, end) for rank in range(self.size)]

    def _received(self, rank: int, what: str, end: float) -> bytes:
        """Return a rank's value of this round; PeerLostError if a rank has failed meanwhile."""
        while True:
            left_s = end - time.monotonic()
            look_s = max(min(left_s, _LOOK_S), _AT_ONCE_S)
            found = self._get(f"{self._round}/{rank}", look_s)
            if found is not None:
                return found
            self.check_peers()
            if self._get(f"left/{rank}") is not None:
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
        """Exchange values as JSON."""
        return [json.loads(data) for data in self.exchange(what, json.dumps(value).encode())]

    def all(self, what: str, value: bool) -> bool:
        """True if `value` is true at every rank."""
        return all(self.gather(what, value))

    def fail(self, error: BaseException) -> None:
        """Publish the error of this rank to all ranks, by its first line."""
        text = str(error).partition("\n")[0]
        self._store.set(f"{self._key}/failed/{self.rank}", text.encode())
        self._store.set(f"{self._key}/failed", str(self.rank).encode())

    def check_peers(self) -> None:
        """Raise PeerLostError if another rank has failed."""
        failed = self._get("failed")
        if failed is None or int(failed) == self.rank:
            return
        text = self._get(f"failed/{int(failed)}")
        if text is not None:
            message = f"Rank {int(failed)} has failed: {text.decode()}"
            raise PeerLostError(message, "Start the job anew.")

    def leave(self, ranks: Sequence[int], seconds: float) -> None:
        """Wait until these ranks have left too, at most so long."""
        self._store.set(f"{self._key}/left/{self.rank}", b"")
        for rank in ranks:
            if self._get(f"left/{rank}", seconds) is None:
                return

    def _get(self, name: str, seconds: float = _AT_ONCE_S) -> bytes | None:
        """Return a value of the group in the store; None if there is none after so long."""
        try:
            return self._store.get(f"{self._key}/{name}", seconds)
        except ExecTimeoutError:
            return None
