"""Devices of one kind by torch's device-generic API: streams, events and the place of tensors.

No other module names a kind of device. Two differ from the rest: torch.cpu does everything at once
and takes no device argument, and plain events of NPUs do not cross devices.
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from typing import Any, TypeAlias

import numpy as np
import torch

from hccl_py.errors import NotSupportedError

Stream: TypeAlias = Any
Event: TypeAlias = Any
Tensor: TypeAlias = Any


class HostEvent:
    """A timed event by the host's clock, for devices that do everything at once."""

    def record(self, stream: Stream) -> None:
        """Take the time."""
        self._at_s = time.perf_counter()

    def elapsed_time(self, later: HostEvent) -> float:
        """Return the milliseconds from this event to a later one."""
        return (later._at_s - self._at_s) * 1e3


class Devices:
    """All devices of a kind, by number from 0. `module` has their streams and events, torch's own
    unless one is given; `memory` is the kind of device that tensors are on.
    """

    def __init__(self, kind: str, module: Any = None, memory: str | None = None) -> None:
        self.kind = kind
        self._module: Any = torch.get_device_module(kind) if module is None else module
        self._memory = memory or kind
        self._is_cpu = self._module is torch.cpu
        self.count: int = self._module.device_count()

    @property
    def is_asynchronous(self) -> bool:
        """True if work goes on after it was issued."""
        return not self._is_cpu

    def device(self, index: int) -> torch.device:
        """Return the torch device that the tensors of a device are on."""
        return torch.device("cpu") if self._memory == "cpu" else torch.device(self._memory, index)

    def zeros(self, index: int, size: int) -> Tensor:
        """Return a tensor of zeroed bytes on a device."""
        device = self.device(index)
        if device.type == "cpu":  # by numpy, untouched pages take no memory
            return torch.from_numpy(np.zeros(size, np.uint8))
        return torch.zeros(size, dtype=torch.uint8, device=device)

    def stream(self, index: int) -> Stream:
        """Return a new stream."""
        return self._module.Stream() if self._is_cpu else self._module.Stream(device=index)

    def current_stream(self, index: int) -> Stream:
        """Return the stream that the caller puts work of a device on."""
        return self._module.current_stream(*([] if self._is_cpu else [index]))

    def on(self, stream: Stream) -> AbstractContextManager[Any]:
        """Put the work of the block on a stream, as far as it is for the stream's device."""
        context: AbstractContextManager[Any] = self._module.stream(stream)
        return context

    def event(self, *, crosses: bool = False) -> Event:
        """Return a new event; one that `crosses` is waited for on another device."""
        if crosses and self.kind == "npu":
            return self._module.Event(interprocess=True)
        return self._module.Event()

    def timed_event(self) -> Event:
        """Return a new event with `elapsed_time(later)`, in milliseconds."""
        return HostEvent() if self._is_cpu else self._module.Event(enable_timing=True)

    def synchronize(self) -> None:
        """Wait until all work that was issued is done; raise its errors."""
        if not self._is_cpu:
            for index in range(self.count):
                self._module.synchronize(index)


def devices_of(kind: str | None) -> Devices:
    """Return the devices of a kind; None for the accelerator that torch has, else the CPU."""
    if kind is None:
        kind = next((k for k in ("npu", "cuda") if _is_there(k)), "cpu")
    elif not _is_there(kind):
        package = {"npu": "torch_npu and CANN", "cuda": "a torch that is built for CUDA"}[kind]
        raise NotSupportedError(
            f"torch {torch.__version__} finds no {kind} device on this machine.",
            f"Install {package} on a machine that has one, or take device cpu.",
        )
    return Devices(kind)


def _is_there(kind: str) -> bool:
    if kind == "npu":
        try:
            import torch_npu  # noqa: F401 - adds torch.npu
        except (ImportError, OSError, RuntimeError):
            return False
    module: Any = torch.get_device_module(kind)
    return bool(module.is_available())
