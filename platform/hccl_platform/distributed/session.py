"""The session of one rank whose peers are processes of the same host."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from hccl_platform.distributed.bound_part import BoundPart, BoundRun, RankContext
from hccl_platform.distributed.fences import order_accesses
from hccl_platform.distributed.header import GATHERED, Header
from hccl_platform.distributed.mailboxes import RingMailboxes
from hccl_platform.distributed.one_sided import BoundStep, Counts, run_steps
from hccl_platform.distributed.rendezvous import close_descriptors, exchange_descriptors
from hccl_platform.distributed.rings import RING_BYTES, ByteRing
from hccl_platform.distributed.shared_memory import (
    GATHER_BYTES,
    NOTIFIES,
    Notifies,
    Regions,
    SharedMemory,
)
from hccl_platform.distributed.wakeups import Wakeups
from hccl_platform.lowering.call import CallIdentity
from hccl_platform.lowering.memory import user_arrays
from hccl_platform.lowering.part import part_of
from hccl_platform.lowering.reducing import Reducer
from hccl_platform.lowering.session_state import SessionState
from hccl_platform.processes.world import CONNECT_S
from hccl_py.errors import ParameterError
from hccl_py.plugins.platforms import DONE, Store, Work
from hccl_py.plugins.resources import ResourceResponse
from hccl_py.program.balance import check_balance
from hccl_py.program.program import Program

T = TypeVar("T")

_GATHERS = CallIdentity.of("gathers values of the hosts")
_LENGTH_BYTES = 8


class SharedSession:
    """Memory and notifies of one rank, and mappings of its peers'.

    All ranks make the same calls in the same order. An error of one rank ends the session of all:
    it names the first rank that failed, and the session cannot be used any more.
    """

    def __init__(
        self,
        rank: int,
        size: int,
        store: Store,
        key: str,
        ccl_bytes: int,
        limit_s: float | None = None,
        settings: str = "",
        host_ranks: Sequence[int] = (),
        connect_s: float = CONNECT_S,
    ) -> None:
        """`host_ranks` are the ranks of this host, by default all."""
        self._rank = rank
        self._state = SessionState(is_of_process=True)
        self._order = threading.RLock()
        settings = settings or f"CCL buffers of {ccl_bytes >> 20} MB"
        self._descriptors = exchange_descriptors(
            rank, size, host_ranks or range(size), store, key, settings, connect_s
        )
        memory = SharedMemory([d.memory for d in self._descriptors], Regions(size, ccl_bytes))
        words = [memory.words(r) for r in range(size)]
        self._counts = Counts(size * NOTIFIES)
        self._context = RankContext(memory, Notifies(), Reducer(), words, self._counts)
        self._memory, self._words = memory, words
        headers = [Header(own) for own in words]
        self._wakeups = Wakeups(rank, headers, self._descriptors, limit_s)
        self._limit_s = limit_s
        self._mailboxes: RingMailboxes | None = None
        self._gathers = 0
        self._parts: WeakKeyDictionary[Program, dict[tuple[str, int], BoundPart]]
        self._parts = WeakKeyDictionary()

    @property
    def local_ranks(self) -> range:
        return range(self._rank, self._rank + 1)

    def allocate(self, tag: str, program: Program) -> ResourceResponse:
        return self._state.response(tag, program)

    def expect(self, tag: str, program: Program, runs: int) -> None:
        self._state.check()
        for dtype, size in self._part(tag, program).reduced.items():
            self._context.reducer.expect(size, dtype, runs)

    def run(
        self,
        tag: str,
        program: Program,
        inputs: Sequence[npt.NDArray[Any]],
        outputs: Sequence[npt.NDArray[Any]],
        stream: object = None,
    ) -> Work:
        self.bind(tag, program, inputs, outputs)()
        return DONE

    def bind(
        self,
        tag: str,
        program: Program,
        inputs: Sequence[npt.NDArray[Any]],
        outputs: Sequence[npt.NDArray[Any]],
    ) -> Callable[[], None]:
        with self._order:
            self._state.check()
            written = self._part(tag, program).part.moves.written_slots
            into, out = user_arrays(program, self.local_ranks, inputs, outputs, written).values()
        runs: dict[int, BoundRun] = {}

        def call() -> None:
            with self._order:
                self._state.check()
                half = self._state.next_half(tag, program)
                if half not in runs:
                    part = self._part(tag, program, half)
                    runs[half] = BoundRun(part, program, into, out, self._execute)
                run = runs[half]
                self._call(run.part.call, run, run.check)

        return call

    def gather(self, data: bytes) -> list[bytes]:
        with self._order:
            self._state.check()
            if len(data) > GATHER_BYTES - _LENGTH_BYTES:
                raise ParameterError(
                    f"{len(data)} bytes are too many to be gathered among hosts.",
                    f"Gather at most {GATHER_BYTES - _LENGTH_BYTES}.",
                )
            return self._call(_GATHERS, lambda: self._gather(data))

    def open_mailboxes(self) -> RingMailboxes | None:
        self._state.check()
        with self._order:
            if self._mailboxes is None:
                self._mailboxes = RingMailboxes(
                    self._rank,
                    self._wakeups.headers,
                    self._descriptors,
                    self._limit_s,
                    self._ring,
                    self._wakeups.publish,
                )
            return self._mailboxes

    def abort(self, error: BaseException) -> None:
        if not self._state.is_closed and self._state.is_in_owner:
            self._wakeups.publish(error)

    def close(self) -> None:
        if not self._state.close():
            return
        if self._state.is_in_owner:
            self._wakeups.close()
            if self._mailboxes is not None:
                self._mailboxes.close()
        self._mailboxes = None
        self._parts.clear()
        for descriptors in set(self._descriptors):
            close_descriptors(descriptors)
        self._descriptors.clear()
        self._words.clear()
        self._wakeups.headers.clear()
        self._memory.close()

    def _execute(self, part: BoundPart, groups: Sequence[Sequence[BoundStep]]) -> None:
        """Run the steps of a bound part."""
        words = self._words[self._rank]
        for group, steps in enumerate(groups):
            run_steps(steps, self._counts, words, self._wakeups, part.explain(group))

    def _gather(self, data: bytes) -> list[bytes]:
        """Write this rank's value over the one before the last, which all ranks have read by now;
        then read the values of all ranks.
        """
        self._gathers += 1
        number = self._wakeups.number
        own = self._gather_buffer(self._rank, len(data))
        own[:_LENGTH_BYTES].view(np.int64)[0] = len(data)
        own[_LENGTH_BYTES:] = np.frombuffer(data, np.uint8)
        order_accesses()
        self._words[self._rank][GATHERED] = number
        for peer in range(len(self._words)):
            self._wakeups.wake(peer)
        return [self._gathered(peer, number) for peer in range(len(self._words))]

    def _gathered(self, peer: int, number: int) -> bytes:
        """Return a rank's value in the `number`-th call."""
        words = self._words[peer]
        self._wakeups.wait_until(
            lambda: words[GATHERED] >= number,
            lambda: f"Rank {self._rank} has waited for the value of rank {peer}",
        )
        order_accesses()
        length = int(self._gather_buffer(peer, 0)[:_LENGTH_BYTES].view(np.int64)[0])
        return self._gather_buffer(peer, length)[_LENGTH_BYTES:].tobytes()

    def _gather_buffer(self, rank: int, size: int) -> npt.NDArray[np.uint8]:
        at = self._memory.regions.gathers + self._gathers % 2 * GATHER_BYTES
        return self._memory.bytes_at(rank, at, _LENGTH_BYTES + size)

    def _ring(self, owner: int, sender: int) -> ByteRing:
        at = self._memory.regions.ring_of(sender)
        return ByteRing(self._memory.bytes_at(owner, at, RING_BYTES))

    def _part(self, tag: str, program: Program, half: int = 0) -> BoundPart:
        parts = self._parts.setdefault(program, {})
        if (tag, half) not in parts:
            parts[tag, half] = self._bound(tag, program, half)
        return parts[tag, half]

    def _bound(self, tag: str, program: Program, half: int) -> BoundPart:
        check_balance(program)
        return BoundPart(tag, program, part_of(program, self._rank), self._context, half)

    def _call(
        self, call: CallIdentity, work: Callable[[], T], check: Callable[[], None] | None = None
    ) -> T:
        """Make a call; an exception, also an interrupt, ends the session of all ranks."""
        try:
            self._wakeups.begin(call, check)
            result = work()
            self._wakeups.end()
        except BaseException as error:
            self._state.error = error
            self._fail(error)
            raise
        return result

    def _fail(self, error: BaseException) -> None:
        """Publish the error to all ranks."""
        self._wakeups.fail(error)
