"""Messages over MPI, on a communicator of the session's own.

MPI does not report a rank that has failed. So a rank that fails sends the reason to all others, and
a rank that waits looks for such a message. If a process dies, mpiexec ends the job.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from zlib import crc32

from hccl_platform.distributed.failures import MOST_BYTES, as_text, from_text
from hccl_platform.distributed.messages.gloo import late
from hccl_platform.lowering.moves import Bytes
from hccl_platform.processes.world import World
from hccl_py.errors import HcclError
from hccl_py.plugins.platforms import Group

_DATA, _FAILED = 0, 1
_YIELDS = 1000
"""Yields of a waiting rank before it sleeps between looks."""

_SLEEP_S = 0.0002


class MpiMessenger:
    """Messages of one session; MPI keeps those of a pair in order."""

    def __init__(self, world: World, group: Group, key: str, limit_s: float | None) -> None:
        from mpi4py import MPI

        members = world.mpi.Get_group().Incl(list(group.world_ranks))
        self._limit_s, self._has_failed = limit_s, False
        self._failure: HcclError | None = None
        self._all: Any = MPI.Request.Testall
        self._byte, self._status = MPI.BYTE, MPI.Status
        self._communicator = world.mpi.Create_group(members, tag=crc32(key.encode()) >> 17)
        self._rank = self._communicator.Get_rank()

    def isend(self, rank: int, data: Bytes) -> Any:
        return self._communicator.Isend([data, self._byte], rank, _DATA)

    def irecv(self, rank: int, into: Bytes) -> Any:
        return self._communicator.Irecv([into, self._byte], rank, _DATA)

    def wait(self, works: Sequence[tuple[int, Any]]) -> None:
        requests, pauses, since = [work for _, work in works], 0, time.monotonic()
        while not self._all(requests):
            pauses += 1
            if pauses < _YIELDS:
                os.sched_yield()
                continue
            time.sleep(_SLEEP_S)
            if failure := self.published(0):
                raise failure
            if self._limit_s is not None and time.monotonic() - since > self._limit_s:
                open_ranks = [rank for rank, work in works if not work.Test()]
                raise late(self._rank, next(iter(open_ranks), self._rank), self._limit_s)

    def published(self, seconds: float) -> HcclError | None:
        end = time.monotonic() + seconds
        while self._failure is None:
            if self._communicator.Iprobe(tag=_FAILED):
                text, status = bytearray(MOST_BYTES), self._status()
                self._communicator.Recv([text, self._byte], tag=_FAILED, status=status)
                self._failure = from_text(bytes(text[: status.Get_count()]))
            elif time.monotonic() >= end:
                break
            else:
                time.sleep(_SLEEP_S)
        return self._failure

    def fail(self, error: BaseException) -> None:
        self._has_failed = True  # Free waits for the others, which may never call it
        text = as_text(error, self._rank)
        with suppress(Exception):  # mpiexec ends ranks that cannot be reached
            for rank in range(self._communicator.Get_size()):
                if rank != self._rank:
                    self._communicator.Isend([text, self._byte], rank, _FAILED)

    def close(self) -> None:
        if self._communicator and not self._has_failed:
            self._communicator.Free()
