"""The session of a rank whose peers are on several hosts: shared memory inside a host, messages
between hosts.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from hccl_platform.distributed.bound_part import BoundPart
from hccl_platform.distributed.bound_script import (
    OPENING_BYTES,
    BoundScript,
    check_opening,
    write_opening,
)
from hccl_platform.distributed.messages import Messenger
from hccl_platform.distributed.one_sided import BoundStep, run_steps
from hccl_platform.distributed.session import SharedSession
from hccl_platform.lowering.call import CallIdentity
from hccl_platform.lowering.moves import Bytes
from hccl_platform.lowering.script import PACKET, script_of
from hccl_platform.processes.world import CONNECT_S
from hccl_py.errors import ExecTimeoutError, HcclError, PeerLostError
from hccl_py.plugins.platforms import Store
from hccl_py.program.program import Program

_SIZE = struct.Struct("<q")

_GONE_S, _LATE_S = 0.5, 2.0
"""Seconds that a rank which is missing another leaves to the host of the cause, which sees it and
says so: after a connection has closed, and after the time-out, which all do not have at once.
"""

T = TypeVar("T")


class MessageSession(SharedSession):
    """Memory and notifies of one rank and of its host's ranks, and messages to all others.

    `hosts` has the number of every rank's host.
    """

    def __init__(
        self,
        rank: int,
        hosts: Sequence[int],
        store: Store,
        key: str,
        ccl_bytes: int,
        messenger: Messenger,
        limit_s: float | None = None,
        settings: str = "",
        connect_s: float = CONNECT_S,
    ) -> None:
        here = [other for other, host in enumerate(hosts) if host == hosts[rank]]
        super().__init__(
            rank, len(hosts), store, key, ccl_bytes, limit_s, settings, here, connect_s
        )
        self._hosts, self._messenger = tuple(hosts), messenger

    def open_mailboxes(self) -> None:
        """Return None: some ranks share no memory with this one."""

    def close(self) -> None:
        super().close()
        self._messenger.close()

    def _bound(self, tag: str, program: Program, half: int) -> BoundPart:
        script = script_of(program, self._rank, self._hosts)
        return BoundScript(tag, program, script, self._context, half)

    def _execute(self, part: BoundPart, groups: Sequence[Sequence[BoundStep]]) -> None:
        assert isinstance(part, BoundScript)
        words = self._words[self._rank]
        for level, steps in enumerate(groups):
            part.exchange(level, self._wakeups.number, self._messenger)
            run_steps(steps, self._counts, words, self._wakeups, part.explain(level))

    def _call(
        self, call: CallIdentity, work: Callable[[], T], check: Callable[[], None] | None = None
    ) -> T:
        return super()._call(call, lambda: self._settled(work), check)

    def _settled(self, work: Callable[[], T]) -> T:
        """Do the work; where another rank ends it, raise that rank's error: what this host shows,
        else what a rank elsewhere has published, else what this rank has met itself.
        """
        try:
            return work()
        except PeerLostError as lost:
            raise self._seen() or self._messenger.published(_GONE_S) or lost from None
        except ExecTimeoutError as late:
            raise self._held_up(late) or self._messenger.published(_LATE_S) or late from None

    def _seen(self) -> HcclError | None:
        try:
            self._wakeups.look()
        except HcclError as error:
            return error
        return None

    def _held_up(self, late: ExecTimeoutError) -> ExecTimeoutError | None:
        found = self._wakeups.held_up(late.message)
        return late if found and late.hint == found.hint else found

    def _fail(self, error: BaseException) -> None:
        super()._fail(error)
        self._messenger.fail(error)

    def _gather(self, data: bytes) -> list[bytes]:
        """Exchange the values of all ranks: first their sizes, with the identity of the call."""
        number, call = self._wakeups.number, self._wakeups.call
        others = [rank for rank in range(len(self._hosts)) if rank != self._rank]
        opening = np.zeros(OPENING_BYTES + _SIZE.size, np.uint8)
        write_opening(opening, number, call)
        _SIZE.pack_into(opening.data, OPENING_BYTES, len(data))
        openings = {rank: np.zeros(OPENING_BYTES + PACKET, np.uint8) for rank in others}
        self._exchange(opening, openings)
        for rank, theirs in openings.items():
            check_opening(theirs, rank, self._rank, number, call)
        sizes = {r: _SIZE.unpack_from(o.data, OPENING_BYTES)[0] for r, o in openings.items()}
        into = {rank: np.zeros(size, np.uint8) for rank, size in sizes.items()}
        self._exchange(np.frombuffer(bytearray(data), np.uint8), into)
        into[self._rank] = np.frombuffer(data, np.uint8)
        return [into[rank].tobytes() for rank in range(len(self._hosts))]

    def _exchange(self, data: Bytes, into: Mapping[int, Bytes]) -> None:
        """Send data to all others, and receive theirs; there is no message for no data."""
        works = [(r, self._messenger.irecv(r, theirs)) for r, theirs in into.items() if len(theirs)]
        works += [(r, self._messenger.isend(r, data)) for r in into if len(data)]
        self._messenger.wait(works)
