"""Messages over gloo: a process group of torch.distributed, whose addresses go through the job's
store.

Gloo connects every two ranks when the session opens. The other end of a connection that closes is
told at once; a rank that fails closes all of its own, and leaves the reason in the store. A
time-out closes them inside gloo, before the rank has asked whether another knows the cause: so it
leaves what it suspects first.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from hccl_platform.distributed.failures import Failures
from hccl_platform.lowering.moves import Bytes
from hccl_platform.processes.world import World, missing_library
from hccl_py.errors import ExecTimeoutError, HcclError, PeerLostError
from hccl_py.plugins.platforms import Group

_FOREVER_S = 10.0**8
_TAG = 0
_FAREWELL_S, _LATE_FAREWELL_S = 0.5, 2.0
"""Longest that a rank waits for the others to know why it has failed, if the job's store may end
with its process: after a time-out longer, as the others' waits began later.
"""


class GlooMessenger:
    """Messages of one session; gloo keeps those of a pair in order."""

    def __init__(self, world: World, group: Group, key: str, limit_s: float | None) -> None:
        try:
            import torch.distributed as dist
            from torch import from_numpy
        except ImportError as error:
            why = "Ranks of several hosts send messages over gloo"
            raise missing_library("torch", "torch", why) from error
        self._rank = group.world_ranks.index(world.rank)
        self._limit_s = _FOREVER_S if limit_s is None else limit_s
        self._failures = Failures(world.store, key, self._rank)
        self._tensor = from_numpy
        self._others = [r for r in range(len(group.world_ranks)) if r != self._rank]
        self._serves = world.rank == 0
        self._group: Any = dist.ProcessGroupGloo(
            _store_for_torch(dist, world, f"{key}/gloo"),
            self._rank,
            len(group.world_ranks),
            timedelta(seconds=world.connect_s),
        )

    def isend(self, rank: int, data: Bytes) -> Any:
        if not data.flags.writeable:
            data = data.copy()  # torch has no read-only tensors
        try:
            return self._group.send([self._tensor(data)], rank, _TAG)
        except RuntimeError as error:
            raise _lost(rank, error) from None

    def irecv(self, rank: int, into: Bytes) -> Any:
        try:
            return self._group.recv([self._tensor(into)], rank, _TAG)
        except RuntimeError as error:
            raise _lost(rank, error) from None

    def wait(self, works: Sequence[tuple[int, Any]]) -> None:
        end = time.monotonic() + self._limit_s
        for rank, work in works:
            try:
                work.wait(timedelta(seconds=max(end - time.monotonic(), 0.001)))
            except RuntimeError as error:
                if "Timed out" in str(error):
                    waited = late(self._rank, rank, self._limit_s)
                    self._failures.suspect(waited)
                    raise waited from None
                raise _lost(rank, error) from None

    def published(self, seconds: float) -> HcclError | None:
        return self._failures.published(seconds)

    def fail(self, error: BaseException) -> None:
        self._failures.publish(error)
        self.close()
        if self._serves:
            late = isinstance(error, ExecTimeoutError)
            self._failures.wait_for(self._others, _LATE_FAREWELL_S if late else _FAREWELL_S)

    def close(self) -> None:
        self._group = None


def _lost(rank: int, error: RuntimeError) -> PeerLostError:
    seen = str(error).partition("\n")[0]
    return PeerLostError(
        f"Rank {rank} has gone: {seen}", "Its own output says why. Start the job anew."
    )


def late(own: int, rank: int, limit_s: float) -> ExecTimeoutError:
    """Return the error of a message that does not arrive."""
    return ExecTimeoutError(
        f"Rank {own} has waited for a message to or from rank {rank} for {limit_s:g} s, longer "
        "than HCCL_EXEC_TIMEOUT allows.",
        f"Rank {rank} is busy, stopped, or in another call.",
    )


def _store_for_torch(dist: Any, world: World, prefix: str) -> Any:
    """Return the job's store as a store of torch."""
    store = world.store

    class TorchView(dist.Store):  # type: ignore[misc]
        def set(self, key: str, value: bytes | str) -> None:
            store.set(f"{prefix}/{key}", value.encode() if isinstance(value, str) else value)

        def get(self, key: str) -> bytes:
            return store.get(f"{prefix}/{key}", world.connect_s)

        def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
            for key in keys:
                seconds = world.connect_s if timeout is None else timeout.total_seconds()
                store.get(f"{prefix}/{key}", seconds)

    return TorchView()
