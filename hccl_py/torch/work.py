"""Work: the handle of a call that torch gives its user."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch.futures import Future

from hccl_py.errors import DeadlockError, ExecTimeoutError, HcclError, MismatchError, PeerLostError
from hccl_py.plugins.platforms import Mailboxes, MailboxMessage

_ENDING = threading.Lock()
"""Held where a work ends, and where its future is made: one of the two fills the future."""

_LAST_ERRORS = (DeadlockError, ExecTimeoutError, MismatchError, PeerLostError)


class TorchWork(dist.Work):  # type: ignore[misc]
    """A call that waits in its queue, runs, or has ended; `result()` has its outputs."""

    def __init__(self, outputs: Any) -> None:
        super().__init__()
        self.source = -1
        self._outputs = outputs
        self._running = threading.Lock()  # held until the call has ended: the cheapest event
        self._running.acquire()
        self._has_ended = False
        self._error: Exception | None = None
        self._future: Future[Any] | None = None

    def run(self, call: Callable[[], None]) -> None:
        """Run the call and end, with its error if it has one."""
        try:
            call()
        except Exception as error:
            self.fail(as_torch_error(error))
        except BaseException as error:
            self.fail(RuntimeError(f"hccl_py: {type(error).__name__}"))
            raise
        else:
            self._end()

    def drop(self) -> None:
        """End with an error, if the call was never run."""
        if not self.is_completed():
            self.fail(RuntimeError("hccl_py: the process group was closed before this call."))

    def fail(self, error: Exception) -> None:
        """End with an error."""
        self._error = error
        self._end()

    def _end(self) -> None:
        with _ENDING:
            self._has_ended, future = True, self._future
        self._running.release()
        if future is not None:
            self._fill(future)

    def _fill(self, future: Future[Any]) -> None:
        if self._error is None:
            future.set_result(self._outputs)
        else:
            future.set_exception(self._error)

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait until the call has ended, at most as long as `timeout`."""
        given = timeout.total_seconds() if timeout else 0.0
        if not self._has_ended_in(given if given > 0 else None):
            raise RuntimeError(f"hccl_py: Timed out after {given} s (EI0002).")
        if self._error is not None:
            raise self._error
        return True

    def _has_ended_in(self, seconds: float | None) -> bool:
        """Wait for the end, at most for so long."""
        if not self._running.acquire(timeout=-1 if seconds is None else seconds):
            return False
        self._running.release()  # for others that wait
        return True

    def get_future(self) -> Future[Any]:
        """Return torch's future, which costs as much as a small call: few callers ask for it."""
        with _ENDING:
            is_new, ended = self._future is None, self._has_ended
            self._future = self._future or Future()
        if is_new and ended:
            self._fill(self._future)
        return self._future

    def is_completed(self) -> bool:
        return self._has_ended

    @property
    def ends_group(self) -> bool:
        """True if the call has failed so that the group cannot be used any more."""
        return self._error is not None and isinstance(self._error.__cause__, _LAST_ERRORS)

    def is_success(self) -> bool:
        return self.is_completed() and self._error is None

    def exception(self) -> Exception | None:
        return self._error

    def result(self) -> Any:
        return self._outputs

    def synchronize(self) -> None:
        self.wait()

    def source_rank(self) -> int:
        """Return the rank that sent the message of a receive."""
        return self.source

    _source_rank = source_rank


class MessageWork(TorchWork):
    """A message: the thread that waits for it moves its bytes. `landed` puts the bytes of a receive
    into its tensor.
    """

    def __init__(
        self, tensor: torch.Tensor, mailboxes: Mailboxes, landed: Callable[[], None]
    ) -> None:
        super().__init__([tensor])
        self.message: MailboxMessage | None = None
        self._mailboxes, self._landed = mailboxes, landed

    def at_end(self, message: MailboxMessage) -> None:
        """End as the message has."""
        if isinstance(message.error, Exception):
            self.fail(as_torch_error(message.error))
        elif message.error is not None:
            self.fail(RuntimeError(f"hccl_py: {type(message.error).__name__}"))
        else:
            self.source = -1 if message.peer is None else message.peer
            self.run(self._landed)

    def _has_ended_in(self, seconds: float | None) -> bool:
        return self._mailboxes.wait(self.message, seconds)


class JoinedWork(dist.Work):  # type: ignore[misc]
    """Several calls that were made at once."""

    def __init__(self, works: Sequence[TorchWork]) -> None:
        super().__init__()
        self._works = works

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait until all have ended, each at most as long as `timeout`."""
        return all(work.wait(timeout) for work in self._works)

    def is_completed(self) -> bool:
        return all(work.is_completed() for work in self._works)

    def is_success(self) -> bool:
        return all(work.is_success() for work in self._works)

    def synchronize(self) -> None:
        self.wait()


def as_torch_error(error: Exception) -> Exception:
    """Return an error as torch's callers expect it: their own classes as they are, ours as
    DistBackendError with our words; torch looks for "Timed out" where time was over.
    """
    if not isinstance(error, HcclError):
        return error
    code = f"{error.code}: " if error.code else ""
    if isinstance(error, ExecTimeoutError):
        code = f"Timed out ({error.code}): "
    found: Exception = dist.DistBackendError(f"hccl_py: {code}{error}")
    found.__cause__ = error
    return found
