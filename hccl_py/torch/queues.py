"""Queues of calls: one for the collectives of a group, one for each way between two ranks."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from hccl_py.communicator import Communicator
from hccl_py.torch.work import TorchWork

__all__ = ["Call", "CallQueue"]

Call = Callable[[Communicator], None]


class CallQueue:
    """Runs calls one after another on a communicator that is opened for the first one.

    A call that its caller waits for anyway runs in the caller's thread if nothing is before it;
    others run on a thread that starts with the first of them.
    """

    def __init__(self, name: str, open_communicator: Callable[[], Communicator]) -> None:
        self._name, self._open = name, open_communicator
        self._communicator: Communicator | None = None
        self._calls: deque[tuple[Call, TorchWork]] = deque()
        self._changed = threading.Condition()
        self._is_busy = self._is_closed = False
        self._thread: threading.Thread | None = None

    def submit(self, call: Call, work: TorchWork, *, in_background: bool) -> TorchWork:
        """Run a call after those before it; return its work."""
        with self._changed:
            if self._is_closed:
                raise RuntimeError("hccl_py: the process group is closed.")
            if in_background or self._is_busy or self._calls:
                self._calls.append((call, work))
                self._start()
                self._changed.notify_all()
                return work
            self._is_busy = True
        self._run(call, work)
        return work

    def close(self) -> None:
        """Let what was submitted end, then close the communicator."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        if self._communicator is not None:
            self._communicator.close()

    def abort(self) -> None:
        """Fail what has not begun, and close the communicator under what has."""
        with self._changed:
            self._is_closed = True
            left, self._calls = list(self._calls), deque()
            self._changed.notify_all()
        for _, work in left:
            work.fail(RuntimeError("hccl_py: the process group was aborted."))
        if self._communicator is not None:
            self._communicator.close()

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name=self._name, daemon=True)
            self._thread.start()

    def _serve(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(
                    lambda: (self._calls or self._is_closed) and not self._is_busy
                )
                if not self._calls:
                    return
                call, work = self._calls.popleft()
                self._is_busy = True
            self._run(call, work)

    def _run(self, call: Call, work: TorchWork) -> None:
        def on_communicator() -> None:
            if self._communicator is None:
                self._communicator = self._open()
            call(self._communicator)

        try:
            work.run(on_communicator)
        finally:
            with self._changed:
                self._is_busy = False
                self._changed.notify_all()
