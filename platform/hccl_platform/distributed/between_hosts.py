"""A session whose ranks are on several hosts: shared memory inside a host, messages between."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from hccl_platform.distributed.bound import BoundPart
from hccl_platform.distributed.messages import Messages
from hccl_platform.distributed.one_sided import Queue, run_queues
from hccl_platform.distributed.script import BoundScript
from hccl_platform.distributed.session import SharedSession
from hccl_platform.lowering.script import script_of
from hccl_py.platforms import Store
from hccl_py.program.program import Program

__all__ = ["MessageSession"]

_SIZE = struct.Struct("<q")


class MessageSession(SharedSession):
    """Memory and notifies of one rank and of those on its host, and messages to all others.

    `hosts` has the number of every rank's host.
    """

    def __init__(
        self,
        rank: int,
        hosts: Sequence[int],
        store: Store,
        key: str,
        ccl_bytes: int,
        messages: Messages,
        limit_s: float | None = None,
        settings: str = "",
    ) -> None:
        mates = [mate for mate, host in enumerate(hosts) if host == hosts[rank]]
        super().__init__(rank, len(hosts), store, key, ccl_bytes, limit_s, settings, mates)
        self._hosts, self._messages = tuple(hosts), messages

    def close(self) -> None:
        super().close()
        self._messages.close()

    def _bound(self, tag: str, program: Program) -> BoundPart:
        script = script_of(program, self._rank, self._hosts)
        shared = (self._memory, self._notifies, self._reducer, self._words)
        return BoundScript(tag, program, script, *shared)

    def _execute(self, part: BoundPart, queues: Sequence[Queue]) -> None:
        assert isinstance(part, BoundScript)
        words = self._words[self._rank]
        for level, queue in enumerate(queues):
            part.exchange(level, self._bells.number, self._messages)
            if queue:
                run_queues([queue], self._counts, 0, words, self._bells, part.explain_level(level))

    def _fail(self, error: BaseException) -> None:
        super()._fail(error)
        self._messages.fail(error)

    def _gather(self, data: bytes) -> list[bytes]:
        """Send what this rank gives to all others: its size first."""
        sizes = self._all_to_all(_SIZE.pack(len(data)), [_SIZE.size] * len(self._hosts))
        return self._all_to_all(data, [_SIZE.unpack(size)[0] for size in sizes])

    def _all_to_all(self, data: bytes, sizes: Sequence[int]) -> list[bytes]:
        own = np.frombuffer(bytearray(data), np.uint8)
        others = [rank for rank in range(len(sizes)) if rank != self._rank]
        into = [np.zeros(size, np.uint8) for size in sizes]
        works = [(r, self._messages.irecv(r, into[r])) for r in others if sizes[r]]
        if data:
            works += [(r, self._messages.isend(r, own)) for r in others]
        self._messages.wait(works)
        return [data if r == self._rank else a.tobytes() for r, a in enumerate(into)]
