"""torch's stores as platforms use a store."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch.distributed as dist

from hccl_py.errors import ExecTimeoutError, PeerLostError

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 2e-4, 1e-2


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
        with self._gate:
            self.torch_store.set(key, value)

    def get(self, key: str, timeout_s: float) -> bytes:
        """Look for the key again and again: a wait of torch's would keep the connection, and all
        other threads from using it.
        """
        end, pause = time.monotonic() + timeout_s, _FIRST_PAUSE_S
        try:
            while not self._has(key):
                self.look()
                if time.monotonic() > end:
                    raise ExecTimeoutError(
                        f"No process set {key!r} in the job's store within {timeout_s:g} s.",
                        "A process of the job has not come this far: its own output says why.",
                    )
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_S)
            with self._gate:
                return bytes(self.torch_store.get(key))
        except RuntimeError as error:
            raise PeerLostError(
                f"The job's store does not answer: {str(error).partition(chr(10))[0]}",
                "The process that serves it, rank 0's or torchrun's, has ended.",
            ) from None

    def _has(self, key: str) -> bool:
        with self._gate:
            return bool(self.torch_store.check([key]))
