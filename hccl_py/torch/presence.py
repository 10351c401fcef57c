"""Watches the processes of a group until they share memory.

Every process writes its id to the group's store. A process that waits for others checks now and
then that they still run, if they are on this machine: on another one that cannot be seen.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from typing import Any

from hccl_py.errors import PeerLostError
from hccl_py.torch.store import answering

LOOK_S = 0.1
"""Seconds from one look at the processes to the next."""

_FIRST = "hccl_py/first to end"

_STATE, _STARTED = 0, 19
"""Fields of /proc/PID/stat behind the name: what it is doing, and when it started."""

_ENDED = "ZX"
"""States of a process that has ended, but not yet been waited for."""


class Presence:
    """The processes of a group of torch's, by rank; this one is `rank`. A thread holds the `gate`
    while it uses the store.
    """

    def __init__(self, store: Any, rank: int, gate: AbstractContextManager[object]) -> None:
        self._store = store
        self._here: dict[int, tuple[int, str]] = {}
        self._elsewhere = {rank}
        self._gate, self._next_s = gate, 0.0
        own = os.getpid()
        with answering(gate):
            self._store.set(_key(rank), f"{_machine()} {own} {_start_of(own)}")

    def ended(self, ranks: Iterable[int]) -> list[int]:
        """Return those of these ranks whose processes have ended; none soon after the last look."""
        with answering(self._gate):
            now = time.monotonic()
            if now < self._next_s:
                return []
            self._next_s = now + LOOK_S
            return [rank for rank in ranks if self._has_ended(rank)]

    def check(self, ranks: Iterable[int]) -> None:
        """Raise PeerLostError where the process of one of these ranks has ended. The error names
        the process that was missed first, as others end because of it.
        """
        ended = self.ended(ranks)
        if not ended:
            return
        with answering(self._gate):
            if not self._store.check([_FIRST]):
                self._store.set(_FIRST, str(ended[0]))
            first = int(self._store.get(_FIRST))
        raise PeerLostError(
            f"Rank {first}'s process has ended before all ranks had come.",
            "Its own output says why. Start the job anew.",
        )

    def _has_ended(self, rank: int) -> bool:
        if rank in self._elsewhere:
            return False
        if rank not in self._here:
            if not self._store.check([_key(rank)]):
                return False
            machine, process, start = self._store.get(_key(rank)).decode().rsplit(" ", 2)
            if machine != _machine():
                self._elsewhere.add(rank)
                return False
            self._here[rank] = int(process), start
        process_id, start = self._here[rank]
        return _start_of(process_id) != start


def _key(rank: int) -> str:
    return f"hccl_py/process/{rank}"


def _start_of(process: int) -> str:
    """Return the start time of a process, which tells it from later ones; empty once ended."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text("utf-8", "replace").rpartition(")")[2]
    except (FileNotFoundError, ProcessLookupError):
        return ""
    found = fields.split()
    return "" if found[_STATE] in _ENDED else found[_STARTED]


@cache
def _machine() -> str:
    """Return a name of this machine, or of the container on it."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    return f"{boot} {os.readlink('/proc/self/ns/pid')}"
