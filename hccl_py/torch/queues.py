"""Queues of calls: one for the collectives of a group, one for each way between two ranks."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from hccl_py.communicator.pending import CallQueue
from hccl_py.torch.repeats import TensorCommunicator
from hccl_py.torch.work import TorchWork

Call = Callable[[TensorCommunicator], None]


class _Submitted:
    """A call with the work that its caller waits for."""

    def __init__(self, queue: TorchQueue, call: Call, work: TorchWork) -> None:
        self._queue, self._call, self._work = queue, call, work

    def make(self) -> None:
        """Make the call, and end its work; raise interrupts and exits."""
        queue, work = self._queue, self._work
        work.run(lambda: self._call(queue.open()))
        queue.has_failed |= work.ends_group

    def run(self) -> Callable[[], None]:
        """Make the call in the worker, which goes on after an exit: the work says so."""
        with suppress(BaseException):
            self.make()
        return _nothing

    def fail(self, error: BaseException) -> None:
        """End the work of a call that was never made."""
        self._work.drop()


def _nothing() -> None:
    """Do nothing: the work has ended."""


class TorchQueue:
    """Runs calls one after another on a communicator that is opened for the first one.

    A call that its caller waits for anyway runs in the caller's thread, others in a worker.
    """

    def __init__(self, name: str, open_communicator: Callable[[CallQueue], TensorCommunicator]):
        self._name, self._open = name, open_communicator
        self._communicator: TensorCommunicator | None = None
        self._calls = CallQueue()
        """The queue of the communicator, too."""
        self.has_failed = False
        """True if a call has failed so that no other can be made."""

    def open(self) -> TensorCommunicator:
        """Open the communicator, if none has; return it."""
        if self._communicator is None:
            self._communicator = self._open(self._calls)
        return self._communicator

    def submit(self, call: Call, work: TorchWork, *, in_background: bool) -> TorchWork:
        """Run a call after those before it; return its work, which has ended unless the call is in
        the background.
        """

        submitted = _Submitted(self, call, work)
        if in_background:
            self._calls.add(submitted)
        else:
            self._calls.run(submitted.make)
        return work

    def close(self) -> None:
        """Wait for all submitted calls, then close the communicator."""
        self._calls.end()
        self._calls.run(_nothing)
        self._calls.join()
        if self._communicator is not None:
            self._communicator.close()

    def abort(self) -> None:
        """Fail the calls that have not begun, end the others, and close the communicator."""
        self._calls.fail_pending()
        if self._communicator is not None:
            self._communicator.abort(f"A rank has given up the process group of {self._name}.")
        self.close()
