"""torch's stores as platforms use a store."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch.distributed as dist

from hccl_py.errors import ExecTimeoutError, PeerLostError

RESTARTS = "TORCHELASTIC_RESTART_COUNT"
"""The variable in which torchrun counts the restarts of a job."""

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 2e-4, 1e-2


def store_of_attempt(store: dist.Store) -> dist.Store:
    """Return the part of a job's store for this attempt: torchrun's store outlives the processes of
    an attempt, and must not tell those of the next one where the dead ones were.
    """
    attempt = os.environ.get(RESTARTS, "")
    return dist.PrefixStore(f"hccl_py/attempt/{attempt}", store) if attempt else store


@contextmanager
def answering(gate: AbstractContextManager[object]) -> Iterator[None]:
    """Hold the gate while a store is asked; PeerLostError if it does not answer."""
    with gate:
        try:
            yield
        except RuntimeError as error:
            raise PeerLostError(
                f"The job's store does not answer: {str(error).partition(chr(10))[0]}",
                "The process that serves it, rank 0's or torchrun's, has ended.",
            ) from None


class TorchStore:
    """A store of torch.distributed, such as its TCPStore; `prefix` keeps its keys apart. A wait
    for a key calls `look` again and again, which raises where no process can set it any more.

    A thread with the `gate` keeps others out of the store: a thread that is in it when the process
    ends would end it with SIGABRT.
    """

    def __init__(
        self,
        store: Any,
        prefix: str,
        look: Callable[[], None] = lambda: None,
        gate: AbstractContextManager[object] | None = None,
    ) -> None:
        self.torch_store = dist.PrefixStore(prefix, store)
        self.look = look
        self._gate = gate or nullcontext()

    def set(self, key: str, value: bytes) -> None:
        with answering(self._gate):
            self.torch_store.set(key, value)

    def get(self, key: str, timeout_s: float) -> bytes:
        """Look for the key again and again: a wait of torch's would keep the connection, and all
        other threads from using it.
        """
        end, pause = time.monotonic() + timeout_s, _FIRST_PAUSE_S
        while not self._has(key):
            self.look()
            if time.monotonic() > end:
                raise ExecTimeoutError(
                    f"No process set {key!r} in the job's store within {timeout_s:g} s.",
                    "A process of the job has not come this far: its own output says why.",
                )
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)
        with answering(self._gate):
            return bytes(self.torch_store.get(key))

    def _has(self, key: str) -> bool:
        with answering(self._gate):
            return bool(self.torch_store.check([key]))
