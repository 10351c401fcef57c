"""torch's stores as platforms use a store."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch.distributed as dist

from hccl_py.errors import ExecTimeoutError, PeerLostError

__all__ = ["TorchStore"]

_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 2e-4, 1e-2


class TorchStore:
    """A store of torch.distributed, such as its TCPStore; `prefix` keeps its keys apart. Who waits
    for a key gives up when `is_over` says so.
    """

    def __init__(
        self, store: Any, prefix: str, is_over: Callable[[], bool] = lambda: False
    ) -> None:
        self.torch_store = dist.PrefixStore(prefix, store)
        self._is_over = is_over

    def set(self, key: str, value: bytes) -> None:
        self.torch_store.set(key, value)

    def get(self, key: str, timeout_s: float) -> bytes:
        """Look for the key again and again: a wait of torch's would keep the connection, and all
        other threads from using it.
        """
        end, pause = time.monotonic() + timeout_s, _FIRST_PAUSE_S
        try:
            while not self.torch_store.check([key]):
                if self._is_over():
                    raise PeerLostError(
                        f"The process group was closed while it waited for {key!r}.",
                        "Wait for calls before the group is destroyed.",
                    )
                if time.monotonic() > end:
                    raise ExecTimeoutError(
                        f"Nobody set {key!r} in the job's store within {timeout_s:g} s.",
                        "A process of the job has not come this far: its own output says why.",
                    )
                time.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE_S)
            return bytes(self.torch_store.get(key))
        except RuntimeError as error:
            raise PeerLostError(
                f"The job's store does not answer: {str(error).partition(chr(10))[0]}",
                "The process that serves it, rank 0's or torchrun's, has ended.",
            ) from None
