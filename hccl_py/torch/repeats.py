"""Calls that a program makes again, on the same memory: planned and bound to it once.

A training step reduces the same buckets every time. A call's plan and its steps, bound to memory,
are kept under the addresses of its tensors, so that the next one goes straight to the session.
"""

from __future__ import annotations

from typing import NamedTuple

from hccl_py.communicator.collectives import averaged
from hccl_py.communicator.communicator import Communicator
from hccl_py.communicator.domain import Domain
from hccl_py.communicator.pending import BoundCall, CallQueue
from hccl_py.torch.tensor_arrays import Place
from hccl_py.torch.trace import CallTrace, note

REPEATS = 256
"""Calls that a communicator keeps; then the oldest is dropped."""


class CallKey(NamedTuple):
    """The op of a call, where its tensors are, and its other parameters; a place is None where
    there is no tensor, or a copy takes its part.
    """

    op: str
    into: Place | None
    out: Place | None
    reduce: str | None = None
    root: int | None = None


class Repeat(NamedTuple):
    """A call that can be made again, with the trace of each."""

    call: BoundCall
    trace: CallTrace
    is_average: bool

    def run(self) -> None:
        """Make the call."""
        self.call.run()
        if self.is_average:
            averaged(self.call.result.outputs, self.trace.program.ranks)
        note(self.trace)


class TensorCommunicator(Communicator):
    """A communicator of one local rank that keeps calls on tensors for the next time. Its calls
    take their turns in `calls`, the queue of its caller.
    """

    def __init__(self, domain: Domain, calls: CallQueue) -> None:
        super().__init__(domain=domain)
        self._calls = calls
        self._repeats: dict[CallKey, Repeat] = {}

    def again(self, key: CallKey) -> bool:
        """Make a call again; False if it is not known."""
        repeat = self._repeats.get(key)
        if repeat is None:
            return False
        repeat.run()
        return True

    def keep(self, key: CallKey, repeat: Repeat) -> None:
        """Keep a call for the next time."""
        if len(self._repeats) == REPEATS:
            del self._repeats[next(iter(self._repeats))]
        self._repeats[key] = repeat

    def close(self) -> None:
        """Close, and let go of the calls."""
        super().close()
        self._repeats.clear()
