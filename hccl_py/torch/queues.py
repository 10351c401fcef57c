"""Queues of calls: one for the collectives of a group, one for each way between two ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hccl_py.communicator.communicator import Communicator
from hccl_py.communicator.pending import CallQueue
from hccl_py.torch.work import TorchWork

Call = Callable[[Communicator], None]


class TorchQueue:
    """Runs calls one after another on a communicator that is opened for the first one.

    A call that its caller waits for anyway runs in the caller's thread, others in a worker.
    """

    def __init__(self, name: str, open_communicator: Callable[[], Communicator]) -> None:
        self._name, self._open = name, open_communicator
        self._communicator: Communicator | None = None
        self._calls = CallQueue()
        self.has_failed = False
        """True if a call has failed so that no other can be made."""

    def open(self) -> Communicator:
        """Open the communicator, if none has; return it."""
        if self._communicator is None:
            self._communicator = self._open()
        return self._communicator

    def submit(self, call: Call, work: TorchWork, *, in_background: bool) -> TorchWork:
        """Run a call after those before it; return its work, which has ended unless the call is in
        the background.
        """

        def run() -> Any:
            work.run(lambda: call(self.open()))
            self.has_failed |= work.ends_group

        if not in_background:
            self._calls.run(run)
            return work
        self._calls.start(self._name, run).add_done_callback(lambda _: work.drop())
        return work

    def close(self) -> None:
        """Wait for all submitted calls, then close the communicator."""
        self._calls.end()
        self._calls.run(lambda: None)
        self._release()

    def abort(self) -> None:
        """Fail the calls that have not begun, end the others, and close the communicator."""
        self._calls.fail_pending()
        if self._communicator is not None:
            self._communicator.abort(f"A rank has given up the process group of {self._name}.")
        self.close()

    def _release(self) -> None:
        self._calls.join()
        if self._communicator is not None:
            self._communicator.close()
