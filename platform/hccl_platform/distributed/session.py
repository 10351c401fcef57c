"""A session of one rank whose peers are processes of the same host."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from hccl_platform.distributed.bells import Bells
from hccl_platform.distributed.bound import BoundPart
from hccl_platform.distributed.fences import order_accesses
from hccl_platform.distributed.header import LETTER, Header
from hccl_platform.distributed.memory import (
    LETTER_BYTES,
    NOTIFIES,
    Notifies,
    Regions,
    SharedMemory,
)
from hccl_platform.distributed.one_sided import Counts, Queue, run_queues
from hccl_platform.distributed.rendezvous import Descriptors, exchange, make_descriptors
from hccl_platform.lowering.call import Call
from hccl_platform.lowering.halves import Halves
from hccl_platform.lowering.part import USER_BUFFERS, part_of
from hccl_platform.lowering.reducing import Reducer
from hccl_platform.lowering.responses import Responses
from hccl_platform.processes.world import CONNECT_S, check_process
from hccl_py.errors import HcclError, ParameterError
from hccl_py.plugins.platforms import DONE, Store, Work
from hccl_py.plugins.resources import ResourceResponse
from hccl_py.program.balance import check_balance
from hccl_py.program.program import Program

T = TypeVar("T")

_GATHERS = Call.of("gathers values of the hosts")
_LETTER_HEAD = 8


class SharedSession:
    """Memory and notifies of one rank, and what it sees of its peers'.

    All ranks make the same calls in the same order. What goes wrong in one of them ends all: an
    error names the first rank, and the session cannot be used any more.
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
        mates: Sequence[int] = (),
        connect_s: float = CONNECT_S,
    ) -> None:
        self._rank, self._process = rank, os.getpid()
        self._error: BaseException | None = None
        self._is_closed = False
        self._order = threading.RLock()
        own = make_descriptors(rank)
        settings = settings or f"CCL buffers of {ccl_bytes >> 20} MB"
        mates = mates or range(size)
        try:
            self._descriptors = _met(rank, size, mates, store, key, own, settings, connect_s)
        except BaseException:
            _close(own)
            raise
        regions = Regions(size, ccl_bytes)
        self._memory = SharedMemory([d.memory for d in self._descriptors], regions)
        self._words = [self._memory.words(r) for r in range(size)]
        headers = [Header(words) for words in self._words]
        self._bells = Bells(rank, headers, self._descriptors, limit_s)
        self._notifies, self._counts = Notifies(), Counts(size * NOTIFIES)
        self._reducer = Reducer()
        self._letters = 0
        self._halves = Halves()
        self._parts: WeakKeyDictionary[Program, dict[tuple[str, int], BoundPart]]
        self._parts = WeakKeyDictionary()
        self._responses = Responses()

    @property
    def local_ranks(self) -> range:
        return range(self._rank, self._rank + 1)

    def allocate(self, tag: str, program: Program) -> ResourceResponse:
        self._check_usable()
        return self._responses.of(tag, program)

    def expect(self, tag: str, program: Program, runs: int) -> None:
        self._check_usable()
        for dtype, size in self._part(tag, program).reduced.items():
            self._reducer.expect(size, dtype, runs)

    def run(
        self,
        tag: str,
        program: Program,
        inputs: Sequence[npt.NDArray[Any]],
        outputs: Sequence[npt.NDArray[Any]],
        stream: object = None,
    ) -> Work:
        with self._order:
            self._check_usable()
            part = self._part(tag, program, self._halves.next(tag, program))
            into, out = self._checked(part, program, inputs, outputs)

            def work() -> None:
                self._memory.regions.provide(tag, program)
                queues = part.bind(into, out)
                is_good = False
                try:
                    with np.errstate(all="ignore"):
                        self._execute(part, queues)
                    is_good = True
                finally:
                    part.release(out if is_good else None)

            self._call(part.call, work, lambda: program.linked.check(program))
        return DONE

    def gather(self, data: bytes) -> list[bytes]:
        with self._order:
            self._check_usable()
            if len(data) > LETTER_BYTES - _LETTER_HEAD:
                raise ParameterError(
                    f"{len(data)} bytes are too many to be gathered among hosts.",
                    f"Gather at most {LETTER_BYTES - _LETTER_HEAD}.",
                )
            return self._call(_GATHERS, lambda: self._gather(data))

    def abort(self, error: BaseException) -> None:
        if not self._is_closed and os.getpid() == self._process:
            self._bells.tell(error)

    def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        if os.getpid() == self._process:
            self._bells.close()
        self._parts.clear()
        self._responses.clear()
        for descriptors in set(self._descriptors):
            _close(descriptors)
        self._descriptors.clear()
        self._words.clear()
        self._bells.headers.clear()
        self._memory.close()

    def _execute(self, part: BoundPart, queues: Sequence[Queue]) -> None:
        """Run what is bound."""
        words = self._words[self._rank]
        run_queues(queues, self._counts, part.local, words, self._bells, part.explain)

    def _gather(self, data: bytes) -> list[bytes]:
        """Put a letter where the one before the last was, which all have read by now."""
        self._letters += 1
        number, size = self._bells.number, len(self._words)
        own = self._letter(self._rank, len(data))
        own[:_LETTER_HEAD].view(np.int64)[0] = len(data)
        own[_LETTER_HEAD:] = np.frombuffer(data, np.uint8)
        order_accesses()
        self._words[self._rank][LETTER] = number
        for peer in range(size):
            self._bells.ring(peer)
        found = []
        for peer, words in enumerate(self._words):
            self._bells.wait_until(
                lambda words=words: words[LETTER] >= number,  # type: ignore[misc]
                lambda peer=peer: (  # type: ignore[misc]
                    f"Rank {self._rank} has waited for the value of rank {peer}"
                ),
            )
            order_accesses()
            length = int(self._letter(peer, 0)[:_LETTER_HEAD].view(np.int64)[0])
            found.append(self._letter(peer, length)[_LETTER_HEAD:].tobytes())
        return found

    def _letter(self, rank: int, size: int) -> npt.NDArray[np.uint8]:
        at = self._memory.regions.letters + self._letters % 2 * LETTER_BYTES
        return self._memory.bytes_at(rank, at, _LETTER_HEAD + size)

    def _part(self, tag: str, program: Program, half: int = 0) -> BoundPart:
        parts = self._parts.setdefault(program, {})
        if (tag, half) not in parts:
            parts[tag, half] = self._bound(tag, program, half)
        return parts[tag, half]

    def _bound(self, tag: str, program: Program, half: int) -> BoundPart:
        check_balance(program)
        part = part_of(program, self._rank)
        shared = (self._memory, self._notifies, self._reducer, self._words)
        return BoundPart(tag, program, part, *shared, half)

    def _call(
        self, call: Call, work: Callable[[], T], check: Callable[[], None] | None = None
    ) -> T:
        """Make a call: what it raises, an interrupt too, ends all ranks of the group."""
        try:
            self._bells.begin(call, check)
            result = work()
            self._bells.end()
        except BaseException as error:
            self._error = error
            self._fail(error)
            raise
        return result

    def _fail(self, error: BaseException) -> None:
        """Let all ranks know."""
        self._bells.fail(error)

    def _checked(
        self,
        part: BoundPart,
        program: Program,
        inputs: Sequence[npt.NDArray[Any]],
        outputs: Sequence[npt.NDArray[Any]],
    ) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        for name, arrays, size in zip(
            ("input", "output"), (inputs, outputs), part.sizes, strict=True
        ):
            if len(arrays) != 1:
                raise ParameterError(
                    f"There are {len(arrays)} {name}s for rank {self._rank}.", "Give one array."
                )
            if arrays[0].nbytes != size:
                raise ParameterError(
                    f"Rank {self._rank}'s {name} has {arrays[0].nbytes} bytes, "
                    f"the program needs {size}.",
                    "Record a program for this count and data type.",
                )
        for name, array in zip(USER_BUFFERS, (inputs[0], outputs[0]), strict=True):
            slot = self._rank * len(program.buffers) + program.buffers.index(name)
            if slot in part.part.written_slots and not array.flags.writeable:
                raise ParameterError(
                    f"{program.executor} writes rank {self._rank}'s {name}, "
                    "and that array is read-only.",
                    "Give an array that can be written.",
                )
        return inputs[0], outputs[0]

    def _check_usable(self) -> None:
        if self._is_closed:
            raise ParameterError("The session is closed.", "Open a new one.")
        check_process(self._process)
        if self._error is not None:
            text = str(self._error).splitlines()
            raise HcclError(
                f"The session has failed: {text[0] if text else type(self._error).__name__}",
                "Close it, and start the job anew.",
            )


def _close(descriptors: Descriptors) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _met(
    rank: int,
    size: int,
    mates: Sequence[int],
    store: Store,
    key: str,
    own: Descriptors,
    settings: str,
    connect_s: float,
) -> list[Descriptors]:
    """Return the descriptors of all ranks. For those of other hosts, which share no memory with
    this one and are in step with it by messages, its own stand in.
    """
    found = exchange(rank, mates, store, f"{key}/{mates[0]}", own, settings, connect_s)
    descriptors = [own] * size
    for mate, theirs in zip(mates, found, strict=True):
        descriptors[mate] = theirs
    return descriptors
