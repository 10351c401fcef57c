"""torch's stores as platforms use a store."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import torch.distributed as dist

from hccl_py.errors import ExecTimeoutError, PeerLostError

__all__ = ["TorchStore"]


class TorchStore:
    """A store of torch.distributed, such as its TCPStore; `prefix` keeps its keys apart."""

    def __init__(self, store: Any, prefix: str) -> None:
        self.torch_store = dist.PrefixStore(prefix, store)

    def set(self, key: str, value: bytes) -> None:
        self.torch_store.set(key, value)

    def get(self, key: str, timeout_s: float) -> bytes:
        try:
            self.torch_store.wait([key], timedelta(seconds=timeout_s))
        except RuntimeError as error:
            first = str(error).partition("\n")[0]
            if "imed out" in first or "imeout" in first:
                raise ExecTimeoutError(
                    f"Nobody set {key!r} in the job's store within {timeout_s:g} s.",
                    "A process of the job has not come this far: its own output says why.",
                ) from None
            raise PeerLostError(
                f"The job's store does not answer: {first}",
                "The process that serves it, rank 0's or torchrun's, has ended.",
            ) from None
        return bytes(self.torch_store.get(key))
